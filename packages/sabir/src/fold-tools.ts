/**
 * The tool calls of a message being folded: which part a chunk belongs to, and what a part keeps
 * from one state to the next.
 *
 * A call id belongs to a step: in another step it is another call, though an answer still finds
 * the call of an earlier one. A step can hold an id twice, as a static and as a dynamic tool.
 */
import type { ProviderMetadata } from './chunks.ts';
import { define, type MessageDraft, type Part } from './message-draft.ts';
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
  toolCallId: string;
  toolName?: string;
  input?: unknown;
  output?: unknown;
  errorText?: string;
  preliminary?: boolean;
  providerExecuted?: boolean;
  dynamic?: boolean;
  providerMetadata?: ProviderMetadata;
  title?: string;
  toolMetadata?: unknown;
  inputEncoding?: 'json' | 'text';
};

type StreamingInput = {
  chunk: ToolChunk;
  text: string;
  /** What the parser has not read yet: it reads only when somebody looks. */
  pending: string;
  parser: PartialJson | undefined;
  at: number;
};

const isDynamic = (part: Part | undefined) => part?.type === 'dynamic-tool';
const isTool = (part: Part) => isDynamic(part) || part.type.startsWith('tool-');
const nameOf = (part: Part) =>
  (isDynamic(part) ? part.toolName : part.type.slice('tool-'.length)) as string;

export class ToolFold {
  readonly #draft: MessageDraft;
  readonly #inputs = new Map<string, StreamingInput>();
  readonly #unread = new Set<StreamingInput>();
  readonly #ofStep = new Map<string, number[]>();
  readonly #last = new Map<string, number>();

  constructor(draft: MessageDraft) {
    this.#draft = draft;
    this.#index();
    // The clients go on with the inputs that a continued message was in the middle of.
    for (const [toolCallId, places] of this.#ofStep) {
      for (const at of places) {
        const part = draft.parts[at] as Part;
        if (part.state !== 'input-streaming') continue;
        const chunk = { ...part, toolCallId, toolName: nameOf(part), dynamic: isDynamic(part) };
        this.#stream(chunk, at, String(part.rawInput ?? ''));
      }
    }
  }

  #index(): void {
    this.#ofStep.clear();
    this.#last.clear();
    this.#draft.parts.forEach((part, at) => {
      if (part.type === 'step-start') this.#ofStep.clear();
      else if (isTool(part)) this.#note(part.toolCallId as string, at);
    });
  }

  #note(toolCallId: string, at: number): void {
    const places = this.#ofStep.get(toolCallId);
    if (places) places.push(at);
    else this.#ofStep.set(toolCallId, [at]);
    this.#last.set(toolCallId, at);
  }

  #stream(chunk: ToolChunk, at: number, text: string): void {
    const input = { chunk, text, pending: text, parser: undefined, at };
    this.#inputs.set(chunk.toolCallId, input);
  }

  #placeOf(toolCallId: string): number | undefined {
    return this.#ofStep.get(toolCallId)?.[0] ?? this.#last.get(toolCallId);
  }

  #placeInStep(chunk: ToolChunk): number | undefined {
    const { parts } = this.#draft;
    const isWanted = (at: number) => isDynamic(parts[at]) === (chunk.dynamic === true);
    return this.#ofStep.get(chunk.toolCallId)?.find(isWanted);
  }

  /** Writes a part anew: what only its old state had goes; title, approval and metadata stay. */
  #write(
    at: number | undefined,
    state: AnyToolState,
    dynamic: boolean,
    { toolCallId, toolName, providerExecuted, providerMetadata, title, toolMetadata }: ToolChunk,
    fields: object,
  ): number {
    for (const unread of this.#unread) if (unread.at === at) this.#unread.delete(unread);
    const old = (at === undefined ? {} : this.#draft.parts[at]) as Part;
    const { input, output, errorText, rawInput, inputEncoding, preliminary, ...kept } = old;
    const isAnswer = state === 'output-available' || state === 'output-error';
    const type = dynamic ? 'dynamic-tool' : `tool-${toolName}`;
    const part = define(
      { ...kept, type, toolCallId, state },
      {
        ...fields,
        toolName: dynamic ? toolName : undefined,
        title,
        toolMetadata,
        providerExecuted: providerExecuted ?? undefined,
        [isAnswer ? 'resultProviderMetadata' : 'callProviderMetadata']:
          providerMetadata ?? undefined,
      },
    );
    if (at !== undefined) {
      this.#draft.put(at, part);
      return at;
    }
    const added = this.#draft.add(part);
    this.#note(toolCallId, added);
    return added;
  }

  startInput(chunk: ToolChunk): void {
    const { inputEncoding } = chunk;
    const at = this.#placeInStep(chunk);
    const place = this.#write(at, 'input-streaming', chunk.dynamic === true, chunk, {
      inputEncoding,
    });
    this.#stream(chunk, place, '');
  }

  addInput(toolCallId: string, delta: string): void {
    const input = this.#inputs.get(toolCallId);
    if (input === undefined || typeof delta !== 'string') return;
    const { chunk } = input;
    let at = this.#placeInStep(chunk);
    if (at !== input.at) {
      // In another step the text goes on in a part of its own, and needs a tree of its own.
      this.readInputs();
      input.parser = undefined;
      input.pending = input.text;
    }
    input.text += delta;
    input.pending += delta;
    if (at === undefined || this.#draft.parts[at]?.state !== 'input-streaming') {
      const { inputEncoding, toolName, title, toolMetadata } = chunk;
      const said = { toolCallId, toolName, title, toolMetadata } as ToolChunk;
      at = this.#write(at, 'input-streaming', chunk.dynamic === true, said, { inputEncoding });
    }
    this.#draft.own(at).rawInput = input.text;
    input.at = at;
    this.#unread.add(input);
  }

  /** Parses what has streamed in since the last look. */
  readInputs(): void {
    for (const input of this.#unread) {
      const part = this.#draft.own(input.at);
      delete part.input;
      if (input.chunk.inputEncoding === 'text') part.input = input.text;
      else {
        input.parser ??= createPartialJson();
        input.parser.push(input.pending);
        input.pending = '';
        define(part, { input: input.parser.value });
      }
    }
    this.#unread.clear();
  }

  setInput(chunk: ToolChunk): void {
    const { input } = chunk;
    const at = this.#placeInStep(chunk);
    this.#write(at, 'input-available', chunk.dynamic === true, chunk, { input });
  }

  failInput(chunk: ToolChunk): void {
    const { input, errorText, title: _, ...said } = chunk;
    const at = this.#ofStep.get(chunk.toolCallId)?.[0];
    // A call that is there already decides which kind it is.
    const dynamic = at === undefined ? chunk.dynamic === true : isDynamic(this.#draft.parts[at]);
    this.#write(at, 'output-error', dynamic, said, { input, errorText });
  }

  answer(chunk: ToolChunk, state: 'output-available' | 'output-error'): void {
    const at = this.#placeOf(chunk.toolCallId);
    if (at === undefined) return;
    this.readInputs();
    const part = this.#draft.parts[at] as Part;
    const dynamic = isDynamic(part);
    const { output, errorText, preliminary, title: _, ...said } = chunk;
    const { input, rawInput } = part;
    said.toolName = nameOf(part);
    if (state === 'output-available')
      this.#write(at, state, dynamic, said, { input, output, preliminary });
    else
      this.#write(at, state, dynamic, said, {
        input,
        errorText,
        rawInput: dynamic ? undefined : rawInput,
      });
  }

  /** The part of a call, to be written into. */
  own(toolCallId: string): Part | undefined {
    const at = this.#placeOf(toolCallId);
    return at === undefined ? undefined : this.#draft.own(at);
  }

  ownByApproval(approvalId: string): Part | undefined {
    const at = this.#draft.parts.findIndex(
      (part) => isTool(part) && (part as Partial<AnyToolPart>).approval?.id === approvalId,
    );
    return at < 0 ? undefined : this.#draft.own(at);
  }

  startStep(): void {
    this.#ofStep.clear();
  }

  /** To be called after parts were taken away. */
  reset(): void {
    this.#inputs.clear();
    this.#unread.clear();
    this.#index();
  }
}
