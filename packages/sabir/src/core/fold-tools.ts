/**
 * The tool calls of a message being folded: which part a chunk belongs to, and what a part keeps
 * from one state to the next.
 *
 * A call id belongs to a step: in another step it is another call, though an answer still finds
 * the call of an earlier one. A step can hold an id twice, as a static and as a dynamic tool.
 */
import type { ProviderMetadata } from './chunks.ts';
import { copy } from './merge-metadata.ts';
import { isDynamic, type MessageWriter, type Part } from './message-writer.ts';

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

/** What goes into a part, by the state that the part comes into. */
const FIELDS = {
  'input-streaming': ['inputEncoding', 'title', 'toolMetadata', 'providerExecuted'],
  'input-available': ['input', 'title', 'toolMetadata', 'providerExecuted'],
  'output-available': ['output', 'preliminary', 'toolMetadata', 'providerExecuted'],
  'output-error': ['input', 'errorText', 'rawInput', 'toolMetadata', 'providerExecuted'],
};
type WrittenState = keyof typeof FIELDS;

/** What an input began with, and what was written of it so far. */
type StreamingInput = { chunk: ToolChunk; text: string };

const nameOf = (part: Part) => part.toolName ?? part.type.slice('tool-'.length);
const isTool = (part: Part) =>
  isDynamic(part) || (typeof part.type === 'string' && part.type.startsWith('tool-'));

/** The fold of the tool chunks and of `start-step`, for the parts that there are. */
export function createToolFold(writer: MessageWriter): (chunk: ToolChunk) => void {
  const { parts, own } = writer;
  const inputs = new Map<unknown, StreamingInput>();
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

  function stream(chunk: ToolChunk, text: string): void {
    inputs.set(chunk.toolCallId, { chunk, text });
  }

  parts.forEach((part, at) => {
    if (part.type === 'step-start') {
      stepAt = at;
      inputs.clear();
    } else if (isTool(part)) {
      const chunk = { ...part, toolName: nameOf(part) as string, dynamic: isDynamic(part) };
      note(part.toolCallId, at);
      // The clients go on with the inputs that a continued message was in the middle of.
      if (part.state === 'input-streaming') stream(chunk, `${part.rawInput ?? ''}`);
    }
  });

  function write(
    place: number | undefined,
    state: WrittenState,
    chunk: ToolChunk,
    isAnswer = false,
  ): number {
    const { toolCallId, toolName, dynamic, providerMetadata } = chunk;
    const fields = { toolCallId, state };
    const metadata = state.startsWith('output') ? 'resultProviderMetadata' : 'callProviderMetadata';
    copy(fields, chunk, FIELDS[state]);
    copy(fields, { [metadata]: providerMetadata });
    const at = writer.tool(place, toolName, dynamic, fields, isAnswer);
    if (place === undefined) note(toolCallId, at);
    return at;
  }

  function answer(state: WrittenState, chunk: ToolChunk): void {
    const at = placeOf(chunk.toolCallId);
    if (at === undefined) return;
    const part = writer.message.parts[at] as Part;
    // As the clients do.
    const rawInput = isDynamic(part) ? undefined : part.rawInput;
    write(at, state, { ...chunk, rawInput }, true);
  }

  function askApproval(chunk: ToolChunk): void {
    const approval = {
      id: chunk.approvalId,
      descriptor: chunk.approvalDescriptor,
      inputSchemaInput: chunk.inputSchemaInput,
      requestReason: chunk.reason,
      isAutomatic: chunk.isAutomatic || null,
      signature: chunk.signature,
    };
    const state = 'approval-requested';
    copy(own(placeOf(chunk.toolCallId)), { state, approval: copy({}, approval) });
  }

  function giveApproval(chunk: ToolChunk): void {
    const isAsked = ({ approval }: Part) => (approval as Part)?.id === chunk.approvalId;
    const part = own(parts.findIndex(isAsked));
    copy(part, {
      state: 'approval-responded',
      approval: copy({ ...(part.approval as Part) }, chunk, ['approved', 'reason']),
      providerExecuted: chunk.providerExecuted,
      callProviderMetadata: chunk.providerMetadata,
    });
  }

  function addInput({ toolCallId, inputTextDelta }: ToolChunk): void {
    const input = inputs.get(toolCallId);
    if (!input || typeof inputTextDelta !== 'string') return;
    let at = placeInStep(input.chunk);
    if (at === undefined || parts[at]?.state !== 'input-streaming') {
      // The text goes on in a part of its own, and needs a tree of its own.
      input.chunk = { ...input.chunk, providerExecuted: null, providerMetadata: null };
      at = write(at, 'input-streaming', input.chunk);
    }
    own(at).rawInput ??= input.text;
    writer.input(at, inputTextDelta);
    input.text += inputTextDelta;
  }

  return (chunk) => {
    const { type, toolCallId, toolName } = chunk;
    // There are objects of which no string can be made, which is what a client would make of it.
    if (typeof toolName === 'object') return;
    if (type === 'tool-input-delta') addInput(chunk);
    else if (type === 'tool-input-start') {
      write(placeInStep(chunk), 'input-streaming', chunk);
      stream(chunk, '');
    } else if (type === 'tool-input-available') {
      write(placeInStep(chunk), 'input-available', chunk);
    } else if (type === 'tool-input-error') write(inStep(toolCallId)[0], 'output-error', chunk);
    else if (type === 'tool-output-available') answer('output-available', chunk);
    else if (type === 'tool-output-error') answer('output-error', chunk);
    else if (type === 'tool-output-denied') own(placeOf(toolCallId)).state = 'output-denied';
    else if (type === 'tool-approval-request') askApproval(chunk);
    else if (type === 'tool-approval-response') giveApproval(chunk);
    else if (type === 'start-step') stepAt = writer.put({ type: 'step-start' });
  };
}
