/**
 * The tool calls of a message being folded: which part a chunk belongs to, and what a part keeps
 * from one state to the next.
 *
 * A call id belongs to a step: in another step it is another call, though an answer still finds
 * the call of an earlier one. A step can hold an id twice, as a static and as a dynamic tool.
 */
import type { ProviderMetadata } from './chunks.ts';
import { copy, type Part } from './message-part.ts';
import { createPartialJson, type PartialJson } from './partial-json.ts';

/**
 * The states of a folded tool part. `UIMessage` names only those that AI SDK 5 has too; the
 * approval states come from chunks that 5 does not know.
 */
type AnyToolState =
  | 'input-streaming'
  | 'input-available'
  | 'approval-requested'
  | 'approval-responded'
  | 'output-available'
  | 'output-error'
  | 'output-denied';

/** A tool part in any state, of any AI SDK major: `part as AnyToolPart`. */
export type AnyToolPart = {
  type: `tool-${string}` | 'dynamic-tool';
  toolCallId: string;
  /** Only of a `dynamic-tool`. */
  toolName?: string;
  state: AnyToolState;
  input?: unknown;
  /** The input as it was written, while it still streams. */
  rawInput?: string;
  output?: unknown;
  errorText?: string;
  preliminary?: boolean;
  providerExecuted?: boolean;
  title?: string;
  approval?: { id: string; approved?: boolean; reason?: string; requestReason?: string };
  callProviderMetadata?: ProviderMetadata;
  resultProviderMetadata?: ProviderMetadata;
};

/** The fields of all tool chunks, with those that AI SDK 7 sends beyond our own. */
type ToolChunk = {
  type: string;
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  rawInput?: unknown;
  inputTextDelta?: unknown;
  inputEncoding?: 'json' | 'text';
  dynamic?: boolean;
  approvalId?: string;
  approvalDescriptor?: unknown;
  inputSchemaInput?: unknown;
  reason?: string;
  isAutomatic?: boolean;
  signature?: string;
  providerExecuted?: boolean | null;
  providerMetadata?: ProviderMetadata | null;
};

type StreamingInput = { chunk: ToolChunk; text: string; json: PartialJson };

/** What a chunk brings into a part, by the state that it brings the part into. */
const FIELDS = {
  'input-streaming': ['inputEncoding', 'title', 'toolMetadata', 'providerExecuted'],
  'input-available': ['input', 'title', 'toolMetadata', 'providerExecuted'],
  'output-available': ['input', 'output', 'preliminary', 'toolMetadata', 'providerExecuted'],
  'output-error': ['input', 'errorText', 'rawInput', 'toolMetadata', 'providerExecuted'],
};

const isDynamic = (part: Part) => part.type === 'dynamic-tool';
const isTool = (part: Part) => isDynamic(part) || part.type.startsWith('tool-');
const nameOf = (part: Part) => (part.toolName ?? part.type.slice('tool-'.length)) as string;

export type ToolFold = {
  push(chunk: ToolChunk): void;
  /** Parses what has streamed in since somebody looked. To be called before anybody looks. */
  readInputs(): void;
};

/**
 * The fold of the tool chunks and of `start-step`, for the parts that there are. `put` writes a
 * part, at the end if no place is given, and gives its place; `own` gives a part to write into.
 */
export function createToolFold(
  parts: readonly Part[],
  put: (part: Part, at?: number) => number,
  own: (at?: number) => Part | undefined,
): ToolFold {
  const inputs = new Map<unknown, StreamingInput>();
  // By their places, the inputs that have grown since somebody looked.
  const unread = new Map<number | undefined, StreamingInput>();
  // The places of a call in the last step that has it.
  const calls = new Map<unknown, number[]>();
  let stepAt = 0;

  const inStep = (toolCallId: unknown) =>
    (calls.get(toolCallId) ?? []).filter((at) => at >= stepAt);

  const placeOf = (toolCallId: unknown) => inStep(toolCallId)[0] ?? calls.get(toolCallId)?.at(-1);

  const placeInStep = ({ toolCallId, dynamic }: ToolChunk) =>
    calls.get(toolCallId)?.find((at) => at >= stepAt && isDynamic(parts[at] as Part) === !!dynamic);

  function note(toolCallId: unknown, at: number): void {
    calls.set(toolCallId, [...inStep(toolCallId), at]);
  }

  function stream(chunk: ToolChunk, text: string): StreamingInput {
    const input = { chunk, text, json: createPartialJson(text) };
    inputs.set(chunk.toolCallId, input);
    return input;
  }

  parts.forEach((part, at) => {
    if (part.type === 'step-start') {
      stepAt = at;
      inputs.clear();
    } else if (isTool(part)) {
      const chunk = { ...part, toolName: nameOf(part), dynamic: isDynamic(part) };
      note(part.toolCallId, at);
      // The clients go on with the inputs that a continued message was in the middle of.
      if (part.state === 'input-streaming') stream(chunk, `${part.rawInput ?? ''}`);
    }
  });

  /** Writes a part anew: what only its old state had goes; title, approval and metadata stay. */
  function write(place: number | undefined, state: keyof typeof FIELDS, chunk: ToolChunk): number {
    const { toolCallId, toolName } = chunk;
    const old = parts[place as number];
    const { input, output, errorText, rawInput, inputEncoding, preliminary, ...kept } =
      old ?? ({} as Part);
    // A call that is there already decides which kind it is.
    const dynamic = old ? isDynamic(old) : chunk.dynamic;
    const type = dynamic ? 'dynamic-tool' : `tool-${toolName}`;
    const part = { ...kept, type, toolCallId, state };
    copy(part, chunk, FIELDS[state]);
    copy(part, {
      toolName: dynamic ? toolName : null,
      [state.startsWith('output') ? 'resultProviderMetadata' : 'callProviderMetadata']:
        chunk.providerMetadata,
    });
    unread.delete(place);
    const at = put(part, place);
    if (!old) note(toolCallId, at);
    return at;
  }

  function addInput({ toolCallId, inputTextDelta }: ToolChunk): void {
    let input = inputs.get(toolCallId);
    if (!input || typeof inputTextDelta !== 'string') return;
    let at = placeInStep(input.chunk);
    if (parts[at as number]?.state !== 'input-streaming') {
      // The text goes on in a part of its own, and needs a tree of its own.
      readInputs();
      const said = { ...input.chunk, providerExecuted: null, providerMetadata: null };
      at = write(at, 'input-streaming', said);
      input = stream(said, input.text);
    }
    input.text += inputTextDelta;
    input.json.push(inputTextDelta);
    (own(at) as Part).rawInput = input.text;
    unread.set(at, input);
  }

  function readInputs(): void {
    for (const [at, { chunk, text, json }] of unread) {
      const part = own(at) as Part;
      part.input = chunk.inputEncoding === 'text' ? text : json.value;
      if (part.input === undefined) delete part.input;
    }
    unread.clear();
  }

  function answer(chunk: ToolChunk, state: 'output-available' | 'output-error'): void {
    const at = placeOf(chunk.toolCallId);
    readInputs();
    const part = parts[at as number];
    if (!part) return;
    write(at, state, {
      ...chunk,
      toolName: nameOf(part),
      input: part.input,
      rawInput: isDynamic(part) ? undefined : part.rawInput,
    });
  }

  function settle(at: number | undefined, fields: object): void {
    copy(own(at) ?? {}, fields);
  }

  return {
    readInputs,
    push(chunk) {
      const { type, toolCallId, approvalId } = chunk;
      if (type === 'tool-input-delta') addInput(chunk);
      else if (type === 'tool-input-start') {
        write(placeInStep(chunk), 'input-streaming', chunk);
        stream(chunk, '');
      } else if (type === 'tool-input-available') {
        write(placeInStep(chunk), 'input-available', chunk);
      } else if (type === 'tool-input-error') write(inStep(toolCallId)[0], 'output-error', chunk);
      else if (type === 'tool-output-available') answer(chunk, 'output-available');
      else if (type === 'tool-output-error') answer(chunk, 'output-error');
      else if (type === 'tool-output-denied')
        settle(placeOf(toolCallId), { state: 'output-denied' });
      else if (type === 'tool-approval-request') {
        const approval = {
          id: approvalId,
          descriptor: chunk.approvalDescriptor,
          inputSchemaInput: chunk.inputSchemaInput,
          requestReason: chunk.reason,
          isAutomatic: chunk.isAutomatic || null,
          signature: chunk.signature,
        };
        settle(placeOf(toolCallId), { state: 'approval-requested', approval: copy({}, approval) });
      } else if (type === 'tool-approval-response') {
        const at = parts.findIndex(
          (part) => isTool(part) && (part as AnyToolPart).approval?.id === approvalId,
        );
        settle(at, {
          state: 'approval-responded',
          approval: copy({ ...(parts[at]?.approval as object) }, chunk, ['approved', 'reason']),
          providerExecuted: chunk.providerExecuted,
          callProviderMetadata: chunk.providerMetadata,
        });
      } else if (type === 'start-step') stepAt = put({ type: 'step-start' });
    },
  };
}
