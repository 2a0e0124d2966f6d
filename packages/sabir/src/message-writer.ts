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

/** What is said of a tool call: the fields of chunks, which events of the contract have too. */
type ToolFields = {
  toolCallId?: unknown;
  toolName?: unknown;
  input?: unknown;
  rawInput?: unknown;
  inputEncoding?: unknown;
  dynamic?: unknown;
  providerExecuted?: unknown;
  providerMetadata?: unknown;
};

/** What is said of an approval, asked for or given. */
type ApprovalFields = ToolFields & {
  approvalId?: unknown;
  approved?: unknown;
  reason?: unknown;
  approvalDescriptor?: unknown;
  inputSchemaInput?: unknown;
  isAutomatic?: unknown;
  signature?: unknown;
};

/** What goes into a part, by the state that the part comes into. */
const FIELDS = {
  'input-streaming': ['inputEncoding', 'title', 'toolMetadata', 'providerExecuted'],
  'input-available': ['input', 'title', 'toolMetadata', 'providerExecuted'],
  'output-available': ['input', 'output', 'preliminary', 'toolMetadata', 'providerExecuted'],
  'output-error': ['input', 'errorText', 'rawInput', 'toolMetadata', 'providerExecuted'],
};
export type WrittenState = keyof typeof FIELDS;

/** The input of a call as it was written so far, and what that means. */
type Input = { text: string; json: PartialJson; isText: boolean };

export const isDynamic = (part: Part) => part.type === 'dynamic-tool';
export const nameOf = (part: Part) => part.toolName ?? part.type.slice('tool-'.length);

/**
 * Takes over the named fields, or all there are. One without a value is absent, not `undefined`,
 * and of all fields only inputs and outputs have `null` for a value.
 */
export function copy<T extends object>(target: T, source: object, names = Object.keys(source)): T {
  for (const name of names) {
    const value = (source as Part)[name];
    if (value !== undefined && (value !== null || /put$/.test(name)))
      (target as Part)[name] = value;
  }
  return target;
}

// Neither an array nor a date.
const isMergeable = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';

function merge(base: object, overrides: object): object {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(overrides)) {
    if (value === undefined || /^(__proto__|constructor|prototype)$/.test(key)) continue;
    merged[key] =
      isMergeable(merged[key]) && isMergeable(value) ? merge(merged[key], value) : value;
  }
  return merged;
}

export type MessageWriter = {
  readonly parts: Part[];
  /** Everything but the parts. */
  readonly head: UIMessage;
  /** Puts a part behind the others, or in the place of one; gives its place. */
  put(part: Part, at?: number): number;
  /** Takes parts off the end. */
  truncate(length: number): void;
  /** The part of a place, if there is one, to be written into. */
  own(at?: number): Part | undefined;
  startText(part: Part, said: object): number;
  /** Goes on with a text, or ends it. */
  writeText(
    at: number | undefined,
    said: { delta?: unknown; providerMetadata?: unknown },
    isEnd?: boolean,
  ): void;
  addMetadata(added: unknown): void;
  /** Writes a call's part anew: what only its old state had goes; title, approval and metadata stay. */
  writeTool(at: number | undefined, state: WrittenState, said: ToolFields): number;
  /** Writes the part of a call that was answered, if there is one. */
  answerTool(at: number | undefined, state: WrittenState, said: ToolFields): void;
  /** Somebody is asked whether the call in this place may be made. */
  askApproval(at: number | undefined, said: ApprovalFields): void;
  giveApproval(said: ApprovalFields): void;
  /** Goes on with the input of the call in this place, from this text where that is said. */
  addInput(at: number, delta: string, before?: string): void;
  /** Parses what has streamed in since somebody looked. */
  readInputs(): void;
  /** The message so far; the same object until something changes it. */
  readonly message: UIMessage;
};

/** An assistant's message given to it is continued; one of another role is not. */
export function createMessageWriter(message?: UIMessage): MessageWriter {
  let shown: UIMessage =
    message?.role === 'assistant' ? message : { id: '', role: 'assistant', parts: [] };
  // What the next message will be; of `head` everything but its parts.
  const head = { ...shown };
  const parts = [...shown.parts] as Part[];
  const inputs = new Map<number, Input>();
  // The inputs that have grown since somebody looked.
  const unread = new Set<number>();
  let isChanged = false;

  function put(part: Part, at = parts.length): number {
    parts[at] = part;
    isChanged = true;
    return at;
  }

  function own(at = -1): Part | undefined {
    // A part that anybody has seen is in the message shown last, in the same place.
    if (parts[at] && parts[at] === shown.parts[at]) put({ ...parts[at] }, at);
    return parts[at];
  }

  function readInputs(): void {
    for (const at of unread) {
      const { text, json, isText } = inputs.get(at) as Input;
      const part = own(at) as Part;
      part.input = isText ? text : json.value;
      if (part.input === undefined) delete part.input;
    }
    unread.clear();
  }

  function writeTool(place: number | undefined, state: WrittenState, said: ToolFields): number {
    const { toolCallId, toolName } = said;
    const old = parts[place as number];
    const { input, output, errorText, rawInput, inputEncoding, preliminary, ...kept } =
      old ?? ({} as Part);
    // A call that is there already decides which kind it is.
    const dynamic = old ? isDynamic(old) : said.dynamic;
    const type = dynamic ? 'dynamic-tool' : `tool-${toolName}`;
    const part = { ...kept, type, toolCallId, state };
    copy(part, said, FIELDS[state]);
    copy(part, {
      toolName: dynamic ? toolName : null,
      [state.startsWith('output') ? 'resultProviderMetadata' : 'callProviderMetadata']:
        said.providerMetadata,
    });
    const at = put(part, place);
    unread.delete(at);
    inputs.delete(at);
    return at;
  }

  return {
    parts,
    head,
    put,
    own,
    readInputs,
    truncate(length) {
      parts.length = length;
      for (const at of inputs.keys()) {
        if (at < length) continue;
        inputs.delete(at);
        unread.delete(at);
      }
    },
    startText: (part, said) =>
      put(copy({ ...part, text: '', state: 'streaming' }, said, ['providerMetadata'])),
    writeText(at, said, isEnd) {
      const part = own(at);
      if (!part) return;
      if (said.providerMetadata) part.providerMetadata = said.providerMetadata;
      if (isEnd) {
        part.state = 'done';
        copy(part, said, ['citations']);
      } else if (typeof said.delta === 'string') part.text += said.delta;
    },
    addMetadata(added) {
      const { metadata } = head;
      if (added == null) return;
      if (metadata == null) head.metadata = added;
      else if (typeof metadata === 'object') head.metadata = merge(metadata, Object(added));
    },
    writeTool,
    answerTool(at, state, said) {
      readInputs();
      const part = parts[at as number];
      if (!part) return;
      const rawInput = isDynamic(part) ? undefined : part.rawInput;
      writeTool(at, state, { ...said, toolName: nameOf(part), input: part.input, rawInput });
    },
    askApproval(at, said) {
      const approval = {
        id: said.approvalId,
        descriptor: said.approvalDescriptor,
        inputSchemaInput: said.inputSchemaInput,
        requestReason: said.reason,
        isAutomatic: said.isAutomatic || null,
        signature: said.signature,
      };
      const state = 'approval-requested';
      copy(own(at) ?? {}, { state, approval: copy({}, approval) });
    },
    giveApproval(said) {
      const isAsked = ({ approval }: Part) => (approval as Part)?.id === said.approvalId;
      const part = own(parts.findIndex(isAsked));
      copy(part ?? {}, {
        state: 'approval-responded',
        approval: copy({ ...(part?.approval as Part) }, said, ['approved', 'reason']),
        providerExecuted: said.providerExecuted,
        callProviderMetadata: said.providerMetadata,
      });
    },
    addInput(at, delta, before = '') {
      let input = inputs.get(at);
      if (!input) {
        const isText = parts[at]?.inputEncoding === 'text';
        input = { text: before, json: createPartialJson(before), isText };
        inputs.set(at, input);
      }
      input.text += delta;
      input.json.push(delta);
      (own(at) as Part).rawInput = input.text;
      unread.add(at);
    },
    get message() {
      readInputs();
      if (
        isChanged ||
        parts.length < shown.parts.length ||
        head.id !== shown.id ||
        head.metadata !== shown.metadata
      ) {
        shown = { ...head, parts: parts.slice() as UIMessage['parts'] };
        isChanged = false;
      }
      return shown;
    },
  };
}
