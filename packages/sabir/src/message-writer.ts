/**
 * A message being written: the one place where parts are made and changed. What a chunk means for
 * it says `fold.ts`, what an event of the contract means `contract/read.ts`.
 *
 * Every message given out stays as it was: a part is copied the first time it changes after
 * somebody looked, and parts that did not change are the same objects from one look to the next.
 * A delta costs the same however long the message is.
 */
import type { UIMessage } from './message.ts';
import { createPartialJson, type PartialJson } from './partial-json.ts';

/** A part of a message, of whatever kind. */
export type Part = { type: string } & Record<string, unknown>;

/** What is said of a tool call: which tool, and the fields that its part is to have, none without a value. */
export type ToolFields = {
  state: unknown;
  toolName?: unknown;
  dynamic?: unknown;
  [field: string]: unknown;
};

export const isDynamic = (part: Part) => part.type === 'dynamic-tool';

export type MessageWriter = {
  readonly parts: Part[];
  /** Puts a part in the place of one, or behind the others where it has none; gives its place. */
  put(part: Part, at?: number): number;
  /** The part of a place, if there is one, to be written into. */
  own(at?: number): Part | undefined;
  /** Everything but the parts. */
  change(changed: Partial<UIMessage>): void;
  /**
   * Writes a call's part anew: what only its old state had goes; title, approval and metadata stay.
   * An answer keeps the call's input too, and what it is called.
   */
  writeTool(at: number | undefined, said: ToolFields, isAnswer?: boolean): number;
  /** Goes on with the input of the call in this place, from the `rawInput` that there is. */
  addInput(at: number, delta: string): void;
  /** The message so far; the same object until something changes it. */
  readonly message: UIMessage;
};

/** An assistant's message given to it is continued; one of another role is not. */
export function createMessageWriter(message?: UIMessage, id = ''): MessageWriter {
  let shown: UIMessage =
    message?.role === 'assistant' ? message : { id, role: 'assistant', parts: [] };
  // What the next message will be; of `head` everything but its parts.
  let head = shown;
  const parts = [...shown.parts] as Part[];
  /** What the inputs mean that are being written, by their places. */
  const inputs = new Map<number, PartialJson>();
  let isChanged = false;

  function put(part: Part, at = -1): number {
    isChanged = true;
    if (at < 0) return parts.push(part) - 1;
    parts[at] = part;
    return at;
  }

  function own(at = -1): Part | undefined {
    // A part that anybody has seen is in the message shown last, in the same place.
    if (parts[at] && parts[at] === shown.parts[at]) put({ ...parts[at] }, at);
    return parts[at];
  }

  /** Parses what has streamed in since somebody looked. */
  function readInputs(): void {
    for (const [at, json] of inputs) {
      const part = parts[at];
      if (!part?.rawInput || part === shown.parts[at]) continue;
      const input = part.inputEncoding === 'text' ? part.rawInput : json.value;
      if (input !== undefined) part.input = input;
    }
  }

  return {
    parts,
    put,
    own,
    change(changed) {
      head = { ...head, ...changed };
      isChanged = true;
    },
    writeTool(place, { toolName, dynamic, ...said }, isAnswer) {
      readInputs();
      const old = parts[place as number];
      const { input, output, errorText, rawInput, inputEncoding, preliminary, ...kept } =
        old ?? ({} as Part);
      // A call that is there already decides which kind it is: only dynamic ones have the name.
      const kind = (old ? old.toolName : dynamic)
        ? { type: 'dynamic-tool', toolName }
        : { type: `tool-${toolName}` };
      const part: Part = { ...kept, ...(isAnswer ? { type: kept.type } : kind) };
      if (isAnswer && input !== undefined) part.input = input;
      const at = put(Object.assign(part, said), place);
      inputs.delete(at);
      return at;
    },
    addInput(at, delta) {
      const part = own(at) as Part;
      const before = (part.rawInput ?? '') as string;
      const json = inputs.get(at) ?? createPartialJson(before);
      inputs.set(at, json);
      json.push(delta);
      part.rawInput = before + delta;
    },
    get message() {
      readInputs();
      if (isChanged) shown = { ...head, parts: parts.slice() as UIMessage['parts'] };
      isChanged = false;
      return shown;
    },
  };
}
