/**
 * Events → chunks for the fold, which takes no harm from what fits nowhere. What goes to a client
 * of the AI SDK has to keep to its law as well: that is `decode.ts`.
 */
import type { Chunk } from '../chunks.ts';
import type { StreamEvent } from './events.ts';

type Data = Record<string, unknown>;

/** Reads the events of one message. */
export function createReader(push: (chunk: Chunk) => void): (event: StreamEvent) => void {
  /** Blocks and tool calls that have begun. */
  const open = new Set<unknown>();
  /** The block of a server that does not name its blocks: it ends where another part begins. */
  let unnamed: string | undefined;
  let minted = 0;

  function write(type: string, fields: Data): void {
    push({ ...fields, type } as Chunk);
  }

  function tell(type: string, messageMetadata: unknown, fields?: Data): void {
    write(type, { ...fields, messageMetadata });
  }

  function endBlock(key: unknown, fields?: Data): void {
    const [kind, id] = String(key).split('\n');
    if (id !== undefined && open.delete(key)) write(`${kind}-end`, { ...fields, id });
  }

  function block(kind: string, verb: string | undefined, data: Data): void {
    if (data.partId == null && !unnamed?.startsWith(kind)) {
      endBlock(unnamed);
      unnamed = `${kind}\n${++minted}`;
    }
    const key = data.partId == null ? unnamed : `${kind}\n${data.partId}`;
    const id = key?.slice(kind.length + 1);
    if (verb === 'end') endBlock(key, data);
    else if (!open.has(key)) {
      open.add(key);
      write(`${kind}-start`, { ...data, id });
    }
    if (verb === 'delta') write(`${kind}-delta`, { ...data, id });
  }

  function tool(verb: string | undefined, data: Data): void {
    const { toolCallId, toolName, state, delta, approved } = data;
    const isNew = !open.has(toolCallId);
    if (verb === 'approval') {
      write(`tool-approval-${approved === undefined ? 'request' : 'response'}`, data);
    } else if (verb === 'delta') {
      // Without a name there is no part to show: the call brings both, and the whole input.
      if (isNew && !toolName) return;
      if (isNew || data.restart) write('tool-input-start', data);
      open.add(toolCallId);
      if (delta) write('tool-input-delta', { toolCallId, inputTextDelta: delta });
    } else {
      // One of the turn before, which this one goes on with, is in the message already.
      if ((isNew && !data.continued) || verb === 'call') {
        write('tool-input-available', { toolName: 'unknown', input: {}, ...data });
      }
      open.add(toolCallId);
      if (verb === 'call') return;
      const isError = state === 'output-error' || (!state && data.errorText !== undefined);
      const kind = isError ? 'error' : state === 'output-denied' ? 'denied' : 'available';
      write(data.inputError ? 'tool-input-error' : `tool-output-${kind}`, data);
    }
  }

  return ({ type, data }) => {
    const { messageId, metadata, ...rest } = Object(data) as Data;
    const [what, verb] = type.split('.');
    if (what === 'message' && verb !== 'delta') {
      if (verb === 'end') for (const key of open) endBlock(key);
      tell(verb === 'start' ? 'start' : 'message-metadata', metadata, { messageId });
    } else if (what === 'message' || what === 'text') block('text', verb, rest);
    else if (what === 'reasoning') block(what, verb, rest);
    else {
      endBlock(unnamed);
      unnamed = undefined;
      const { name, ...data } = rest;
      if (what === 'tool') tool(verb, rest);
      else if (what === 'source') write('source-url', rest);
      else if (what === 'step') write(`${rest.state}-step`, {});
      else if (what === 'part') push(Object(rest.part));
      else if (what === 'question') write('data-question', { id: rest.questionId, data: rest });
      else if (what === 'data') write(`data-${name}`, data);
      else tell('message-metadata', metadata ?? (rest.usage && { usage: rest.usage }));
    }
  };
}
