/**
 * A message being written: the one place where parts are made and changed. What a chunk means for
 * it says `fold.ts`, what an event of the contract means `wires/contract/read.ts`.
 *
 * Every message given out stays as it was: a part is copied the first time it changes after
 * somebody looked, and parts that did not change are the same objects from one look to the next.
 * A delta costs the same however long the message is.
 */
import type { UIMessage } from './message.ts';
import { createPartialJson, type PartialJson } from './partial-json.ts';

/** A part of a message, of whatever kind. */
export type Part = { type: string } & Record<string, unknown>;

export const isDynamic = (part: Part) => part.type === 'dynamic-tool';

export type MessageWriter = {
  readonly parts: Part[];
  /** Puts a part in the place of one, or behind the others where it has none; gives its place. */
  put(part: Part, at?: number): number;
  /** The part of a place, to be written into; where there is none, one that nobody sees. */
  own(at?: number): Part;
  /** Everything but the parts. */
  change(changed?: Partial<UIMessage>): void;
  /**
   * Writes a call's part anew: what only its old state had goes; title, approval and metadata stay.
   * An answer to a call that is there keeps its input too, and what it is called. Of the fields none
   * is without a value.
   */
  tool(
    at: number | undefined,
    toolName: unknown,
    dynamic: unknown,
    fields: Record<string, unknown>,
    isAnswer: boolean,
  ): number;
  /** Goes on with the input of the call in this place, from the `rawInput` that there is. */
  input(at: number, delta: string): void;
  /** The message so far; the same object until something changes it. */
  readonly message: UIMessage;
};

/** A message given to it is continued. */
export function createMessageWriter(
  id: string,
  shown: UIMessage = { id, role: 'assistant', parts: [] },
): MessageWriter {
  // What the next message will be, but for its parts: the one shown, until something changes.
  let head = shown;
  const parts = [...shown.parts] as Part[];
  /** What the inputs mean that are being written, by their places. */
  const inputs: PartialJson[] = [];

  function change(changed?: Partial<UIMessage>): void {
    head = { ...head, ...changed };
  }

  function put(part: Part, at = -1): number {
    if (at < 0) at = parts.length;
    change();
    parts[at] = part;
    return at;
  }

  function own(at: number): Part {
    // A part that anybody has seen is in the message shown last, in the same place.
    if (parts[at] && parts[at] === shown.parts[at]) put({ ...parts[at] }, at);
    return parts[at] ?? ({} as Part);
  }

  /** Parses what has streamed in since somebody looked. */
  function readInputs(): void {
    inputs.forEach((json, at) => {
      const part = parts[at];
      if (part?.rawInput && part !== shown.parts[at]) {
        const input = part.inputEncoding === 'text' ? part.rawInput : json.value;
        if (input !== undefined) part.input = input;
      }
    });
  }

  return {
    parts,
    put,
    own,
    change,
    tool(place, toolName, dynamic, fields, isAnswer) {
      readInputs();
      const old = parts[place as number];
      const { input, output, errorText, rawInput, inputEncoding, preliminary, ...kept } =
        old ?? ({} as Part);
      // A call that is there already decides which kind it is: only dynamic ones have the name.
      const hasName = old ? old.toolName : dynamic;
      const kind = hasName ? { type: 'dynamic-tool', toolName } : { type: `tool-${toolName}` };
      const added = isAnswer && old ? input !== undefined && { input } : kind;
      const at = put({ ...kept, ...added, ...fields } as Part, place);
      delete inputs[at];
      return at;
    },
    input(at, delta) {
      const part = own(at);
      const before = (part.rawInput ?? '') as string;
      inputs[at] ??= createPartialJson(before);
      inputs[at].push(delta);
      part.rawInput = before + delta;
    },
    get message() {
      readInputs();
      if (head !== shown) shown = head = { ...head, parts: parts.slice() as UIMessage['parts'] };
      return shown;
    },
  };
}
