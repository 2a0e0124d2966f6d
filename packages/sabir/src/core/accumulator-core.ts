import type { Chunk } from './chunks.ts';
import { RUN_FAILED, TURN_LOST } from './errors.ts';
import { toJsonSafe } from './json.ts';
import type { MessageMetadata, TurnOutcome } from './outcome.ts';

export type ToolCallOptions = {
  /** The tool runs where the agent runs; without it a client would try to run it itself. */
  providerExecuted?: boolean;
  dynamic?: boolean;
};

export type OpenTool = {
  name: string;
  flags: ToolCallOptions;
  phase: 'input' | 'called' | 'approval';
};
type Block = 'text' | 'reasoning';

/** What a tool that never answered is closed with, so that nothing spins for ever. */
const NO_RESULT = 'The tool gave no result.';

/**
 * The one state machine: decides every start, end and id of a message. It owns which parts are
 * open; it holds no message and no text.
 *
 * Always true, whatever is called in whatever order:
 * - `start` with the message id comes first, `finish` last, each exactly once;
 * - at most one text or reasoning block is open; each block has an id of its own;
 * - a delta follows its start, an end follows its deltas, output follows its call;
 * - everything that a step opened to stream into is closed before `finish-step`;
 * - values are something JSON can carry.
 *
 * Calls that would break this do nothing. Chunks collect until `take()`. What is here is what every
 * source needs; `accumulator.ts` has the rest, so that a bundle pays for it only where it is used.
 *
 * @param mintPrefix What the ids of calls begin with that have none. With the message's id they are unique between messages.
 */
export function createAccumulatorCore(messageId: string, mintPrefix = `${messageId}-call-`) {
  let chunks: Chunk[] = [];
  let isStarted = false;
  let isEnded = false;
  let isInStep = false;
  let block: Block | undefined;
  let blockId = '';
  let blocks = 0;
  let minted = 0;
  let repairs = 0;
  const openTools = new Map<string, OpenTool>();
  const answered = new Set<string>();

  function json(value: unknown): unknown {
    const safe = toJsonSafe(value);
    if (safe !== value && value !== undefined) repairs++;
    return safe;
  }

  function start(): void {
    if (!isStarted) chunks.push({ type: 'start', messageId });
    isStarted = true;
  }

  /** Every write goes through here: the first one is preceded by `start`, none follows the end. */
  function write(chunk: Chunk): void {
    if (isEnded) return;
    start();
    // An array that begins with something in it does not make room for sixteen more.
    if (chunks.length > 0) chunks.push(chunk);
    else chunks = [chunk];
  }

  function isKnown(toolCallId: string): boolean {
    return (
      openTools.has(toolCallId) || answered.has(toolCallId) || toolCallId.startsWith(mintPrefix)
    );
  }

  function answer(toolCallId: string, chunk: Chunk): void {
    openTools.delete(toolCallId);
    // A minted id never comes again, so that a long turn does not have to remember it.
    if (!toolCallId.startsWith(mintPrefix)) answered.add(toolCallId);
    write(chunk);
  }

  function delta(kind: Block, text: string): void {
    if (text === '' || isEnded) return;
    if (block !== kind) {
      closeBlock();
      block = kind;
      blockId = `${kind}-${++blocks}`;
      write({ type: `${kind}-start`, id: blockId });
    }
    // Not put together: a string made anew for each delta is slow to compare and has to be kept.
    write({ type: kind === 'text' ? 'text-delta' : 'reasoning-delta', id: blockId, delta: text });
  }

  /** Ends the open text or reasoning block; the next delta begins a new part. */
  function closeBlock(): void {
    if (block) write({ type: `${block}-end`, id: blockId });
    block = undefined;
  }

  /** A block, and inputs that still stream: 7 would double an input completed in another step. */
  function closeStreaming(): void {
    closeBlock();
    for (const [toolCallId, { phase }] of openTools) if (phase === 'input') toolError(toolCallId);
  }

  function finishStep(): void {
    if (!isInStep) return;
    closeStreaming();
    isInStep = false;
    write({ type: 'finish-step' });
  }

  function toolError(toolCallId: string, errorText: string = NO_RESULT): void {
    const open = openTools.get(toolCallId);
    if (open)
      answer(toolCallId, { type: 'tool-output-error', toolCallId, errorText, ...open.flags });
  }

  /** Closes the open parts in their order: text and reasoning, then tools, then the step. */
  function closeParts(keepApprovals = false): void {
    closeBlock();
    for (const [toolCallId, { phase }] of openTools) {
      if (phase !== 'approval' || !keepApprovals) toolError(toolCallId);
    }
    finishStep();
  }

  const accumulator = {
    get isEnded() {
      return isEnded;
    },
    /** The kind of block that is open for deltas, if one is. */
    get openBlock() {
      return block;
    },
    /** How many values had to be changed so that JSON can carry them. */
    get repairs() {
      return repairs;
    },
    /** What was written since the last call. */
    take(): Chunk[] {
      const taken = chunks;
      chunks = [];
      return taken;
    },
    start,
    startStep(): void {
      finishStep();
      closeStreaming();
      isInStep = !isEnded;
      write({ type: 'start-step' });
    },
    finishStep,
    delta,
    closeBlock,
    closeParts,
    /** A call whose input is complete. A source without call ids lets one be minted. */
    toolInput(
      givenId: string | undefined,
      toolName: string,
      input: unknown,
      flags: ToolCallOptions = {},
    ): string {
      const toolCallId = givenId ?? `${mintPrefix}${++minted}`;
      const open = openTools.get(toolCallId);
      const isTaken = open ? open.phase !== 'input' : givenId !== undefined && isKnown(givenId);
      if (isTaken || isEnded) return toolCallId;
      closeBlock();
      // A call keeps the name and the flags it began with.
      const call: OpenTool = { name: toolName, flags, ...open, phase: 'called' };
      openTools.set(toolCallId, call);
      write({
        type: 'tool-input-available',
        toolCallId,
        toolName: call.name,
        input: json(input),
        ...call.flags,
      });
      return toolCallId;
    },
    toolOutput(toolCallId: string, output: unknown): void {
      const open = openTools.get(toolCallId);
      if (!open) return;
      answer(toolCallId, {
        type: 'tool-output-available',
        toolCallId,
        output: json(output),
        ...open.flags,
      });
    },
    toolError,
    data(name: string, data: unknown, options?: { id?: string; transient?: boolean }): void {
      write({ type: `data-${name}`, ...options, data: json(data) });
    },
    /** The one end. `errorText` is what a person is shown of a failed or lost turn. */
    end(outcome?: TurnOutcome, metadata: MessageMetadata = {}, errorText?: string): void {
      if (isEnded) return;
      const status = outcome?.status;
      closeParts(status === 'paused');
      const messageMetadata = json(toMetadata(outcome, metadata)) as MessageMetadata;
      if (status === 'failed' || status === 'lost') {
        // A client reads nothing behind an error, so the metadata goes before it.
        write({ type: 'message-metadata', messageMetadata });
        const { userMessage } = status === 'lost' ? TURN_LOST : RUN_FAILED;
        write({ type: 'error', errorText: errorText || userMessage });
        write({ type: 'finish', finishReason: 'error' });
      } else {
        const finishReason = status === 'finished' ? (outcome?.finishReason ?? 'stop') : 'other';
        const isEmpty = Object.keys(messageMetadata).length === 0;
        write({ type: 'finish', finishReason, ...(isEmpty ? undefined : { messageMetadata }) });
      }
      isEnded = true;
      openTools.clear();
      answered.clear();
    },
  };

  // The internals are for accumulator.ts alone: with them an invalid sequence could be written.
  return { accumulator, internals: { openTools, isKnown, answer, write, json } };
}

function toMetadata(outcome: TurnOutcome | undefined, metadata: MessageMetadata): MessageMetadata {
  if (!outcome) return metadata;
  const { status, ...rest } = outcome;
  const { reason, code, usage }: MessageMetadata = rest;
  const all: MessageMetadata = { outcome: status, ...metadata };
  if (reason) all.reason = reason;
  if (code) all.code = code;
  if (usage) all.usage = usage;
  return all;
}
