/**
 * What each event of the contract means for a message; the writing is `message-writer.ts`. What goes
 * to a client of the AI SDK has to keep to its law as well: that is `decode.ts`.
 *
 * Knows nothing that the parts do not tell, so any message can be gone on with: a text has an `id`
 * while it streams.
 */
import type { MessageWriter, Part } from '../../core/message-writer.ts';
import type { StreamEvent } from './events.ts';

type Data = Record<string, unknown>;
type Approval = { approved?: unknown } | undefined;
/** In truth anything: it goes into a part where it says something. */
type Id = string | undefined;

/** Reads the events of one message. */
export function createReader(writer: MessageWriter): (event: StreamEvent) => void {
  const { parts, put, own } = writer;
  // From the end: what is spoken of is seldom far from it.
  const find = (is: (part: Part) => unknown) => parts.findLastIndex(is);

  function end(at: number): void {
    const part = own(at);
    part.state = 'done';
    if (part.type === 'text') delete part.id;
  }

  function block(type: string, data: Data, isEnd?: boolean): void {
    const { partId, delta, providerMetadata, citations } = data;
    const id = (partId || undefined) as Id;
    let at = find((part) => part.id === id && part.type === type && part.state === 'streaming');
    if (at < 0 && !isEnd) at = put({ type, ...(id && { id }), text: '', state: 'streaming' });
    const part = own(at);
    if (typeof delta === 'string') part.text += delta;
    if (providerMetadata) part.providerMetadata = providerMetadata;
    if (citations) part.citations = citations;
    if (isEnd) end(at);
  }

  function tool(verb: string | undefined, data: Data): void {
    // Some servers say the type of the event once more.
    const { type, delta, restart, continued, inputError, toolName, dynamic, ...said } = data;
    const { toolCallId, state, errorText, approval } = said as Data & { approval: Approval };
    let at = find((part) => toolCallId && part.toolCallId === toolCallId);
    if (verb === 'approval' || (state === 'output-denied' && at > -1)) {
      const part = own(at);
      // A response adds to its request; another request replaces both.
      if (approval?.approved != null) said.approval = { ...(part.approval as object), ...approval };
      Object.assign(part, said);
      return;
    }
    const isDelta = verb === 'delta';
    const isAnswer = verb === 'result' && !inputError;
    // In another step it is another call, but an answer finds that of an earlier one.
    if (!isAnswer && at < find((part) => part.type === 'step-start')) at = -1;
    if (!isDelta || restart || at < 0) {
      // Without a name there is no part to show: the call brings both, and the whole input.
      if (isDelta && !toolName) return;
      at = writer.tool(
        at,
        toolName ?? 'unknown',
        dynamic,
        {
          ...said,
          state: isDelta
            ? 'input-streaming'
            : verb === 'call'
              ? 'input-available'
              : (state ?? (errorText == null ? 'output-available' : 'output-error')),
        },
        isAnswer,
      );
    }
    if (delta) writer.input(at, `${delta}`);
  }

  function addData(name: unknown, id: Id, data: unknown): void {
    const type = `data-${name}`;
    const at = find((part) => id && part.type === type && part.id === id);
    put({ type, ...(id && { id }), data }, at);
  }

  function other(type: string, data: Data): void {
    const { messageId, ...said } = data;
    const { name, id, state, part, toolCallId, metadata, usage, transient, ...source } = said;
    const [what, verb] = type.split('.');
    if (what === 'tool') tool(verb, said);
    else if (what === 'text' || what === 'reasoning') block(what, said, verb === 'end');
    else if (what === 'source') put({ ...source, type: 'source-url' });
    else if (what === 'part') (part as Part)?.type && put(part as Part);
    else if (what === 'question') addData(what, said.questionId as Id, said);
    else if (what === 'data') transient || addData(name, id as Id, said.data);
    else if (state === 'start') put({ type: 'step-start' });
    else if (state === 'reset') {
      parts.length = find((one) => one.type === 'step-start') + 1;
      writer.change();
    } else {
      const added = metadata ?? (usage && { usage });
      if (added) writer.change({ metadata: { ...(writer.message.metadata as object), ...added } });
      if (verb === 'end') {
        parts.forEach((part, at) => {
          if (part.state === 'streaming') end(at);
        });
      }
    }
  }

  return ({ type, data }) => {
    // Nearly all are: the rest may take its time.
    if (type === 'message.delta') block('text', data as Data);
    else other(type, data as Data);
    // What has no name ends where another part begins.
    const at = parts.length - 2;
    const part = parts[at];
    if (part?.state === 'streaming' && !part.id) end(at);
  };
}
