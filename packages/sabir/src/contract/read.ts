/**
 * What each event of the contract means for a message; the writing is `message-writer.ts`. What goes
 * to a client of the AI SDK has to keep to its law as well: that is `decode.ts`.
 */
import { copy, type MessageWriter, type Part, type WrittenState } from '../message-writer.ts';
import type { StreamEvent } from './events.ts';

type Data = Record<string, unknown>;

/** Reads the events of one message. */
export function createReader(writer: MessageWriter): (event: StreamEvent) => void {
  const { put, own, writeText } = writer;
  /** Where blocks that are open, calls and data are; the last of those that have the same name. */
  const blocks = new Map<unknown, number>();
  const places = new Map<unknown, number>();
  /** The block of a server that does not name its blocks: it ends where another part begins. */
  let unnamed: string | undefined;
  /** Before the first part where no step has begun. */
  let stepAt = -1;

  function endBlock(key: unknown, data: Data = {}): void {
    writeText(blocks.get(key), data, true);
    blocks.delete(key);
  }

  function endUnnamed(): void {
    endBlock(unnamed);
    unnamed = undefined;
  }

  function block(type: string, verb: string | undefined, data: Data): void {
    const id = data.partId;
    if (id == null && !unnamed?.startsWith(type)) {
      endUnnamed();
      unnamed = type;
    }
    const key = id == null ? unnamed : `${type} ${id}`;
    if (verb === 'end') endBlock(key, data);
    else if (!blocks.has(key)) {
      const part = type === 'text' ? { type } : { type, id: id ?? key };
      blocks.set(key, writer.startText(part, data));
    }
    if (verb === 'delta') writeText(blocks.get(key), data);
  }

  function tool(verb: string | undefined, data: Data): void {
    const { toolCallId, state, delta, errorText, input = {} } = data;
    const known = places.get(toolCallId);
    // In another step it is another call, but an answer finds that of an earlier one.
    let at = known !== undefined && known > stepAt ? known : undefined;
    const write = (next: WrittenState) => {
      at = writer.writeTool(at, next, { toolName: 'unknown', ...data, input });
      places.set(toolCallId, at);
    };
    if (verb === 'delta') {
      // Without a name there is no part to show: the call brings both, and the whole input.
      if (at === undefined && !data.toolName) return;
      if (at === undefined || data.restart) write('input-streaming');
      if (delta) writer.addInput(at as number, `${delta}`);
    } else if (verb === 'call') write('input-available');
    else if (verb === 'approval') {
      if (state === 'approval-requested') writer.askApproval(known, data);
      else writer.giveApproval(data);
    } else if (data.inputError) write('output-error');
    else {
      at = known;
      if (at === undefined) write('input-available');
      const isError = state === 'output-error' || (!state && errorText !== undefined);
      if (state === 'output-denied') copy(own(at) ?? {}, { state });
      else writer.answerTool(at, isError ? 'output-error' : 'output-available', data);
    }
  }

  function addData(name: unknown, id: unknown, said: unknown): void {
    const type = `data-${name}`;
    const key = id == null ? {} : `${type} ${id}`;
    const part = own(places.get(key));
    if (part) part.data = said;
    else places.set(key, put(copy({ type, data: said }, { id })));
  }

  return ({ type, data }) => {
    const all = Object(data) as Data;
    // Nearly all are: the rest may take its time.
    if (type === 'message.delta') return block('text', 'delta', all);
    const { messageId: _, metadata, ...rest } = all;
    const [what, verb] = type.split('.');
    if (what === 'message') {
      if (verb === 'end') for (const key of blocks.keys()) endBlock(key);
      writer.addMetadata(metadata);
    } else if (what === 'text') block(what, verb, rest);
    else if (what === 'reasoning') block(what, verb, rest);
    // What is not kept is no part: the words go on behind it.
    else if (!rest.transient) {
      endUnnamed();
      const { name, id, state, part } = rest as Data & { part?: Part };
      if (what === 'tool') tool(verb, rest);
      else if (what === 'source') put(copy({ type: 'source-url' }, rest, SOURCE));
      else if (what === 'part') typeof part?.type === 'string' && put(part);
      else if (what === 'question') addData(what, rest.questionId, rest);
      else if (what === 'data') addData(name, id, rest.data);
      else if (what !== 'step')
        writer.addMetadata(metadata ?? (rest.usage && { usage: rest.usage }));
      else if (state === 'start') stepAt = put({ type: 'step-start' });
      else if (state === 'reset') {
        writer.truncate(stepAt + 1);
        for (const known of [blocks, places]) {
          for (const [key, at] of known) if (at > stepAt) known.delete(key);
        }
      }
    }
  };
}

const SOURCE = ['sourceId', 'url', 'title', 'providerMetadata'];
