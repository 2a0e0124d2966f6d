import type { Chunk } from '../core/chunks.ts';
import type { Loose } from '../core/loose.ts';
import type { LoggedChunk, TurnInfo } from '../turns/log.ts';
import { hasExpired, questionOf } from '../turns/question.ts';
import type { AgUiInterrupt } from '../wires/ag-ui/events.ts';
import {
  type AgUiRun,
  agUiEncoderOf,
  encodePausedRun,
  encodeRunStarted,
} from '../wires/ag-ui/frames.ts';
import type { Pausing, PausingOptions } from './pausing.ts';
import { type Cursor, parseCursor } from './visit.ts';

/** What a turn waits for, and the number of the chunk that asked. */
type Open = { seq: number; data: Loose; isClientTool: boolean };

/**
 * An AG-UI client is asked by the end of its run, and answers with the next one. So the run ends with the chunk that
 * asks, and the turn goes on waiting. A viewer that may not answer stays. Calls of `tools`, which the client has named as its own, are
 * left to it; everything else is an interrupt.
 */
export function createInterrupts(
  { turn, after, answered, mayAnswer }: PausingOptions,
  run: AgUiRun,
  tools: ReadonlySet<unknown> = new Set(),
): Pausing {
  // Knows what is open: chunks that neither open nor close anything are not shown to it.
  const toEvents = agUiEncoderOf(turn, run);
  const open = new Map<string, Open>();
  /** The names of the tools whose calls have no result. */
  const calls = new Map<string, string>();
  let pausedAt = 0;

  function see({ seq, chunk }: LoggedChunk): void {
    if (chunk.type === 'finish') open.clear();
    if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') {
      calls.set(chunk.toolCallId, chunk.toolName);
    }
    const settled = callWithResult(chunk);
    if (settled !== undefined) calls.delete(settled);
    const question = questionOf(chunk);
    if (!question) return;
    const { questionId, status, isClientTool = false } = question;
    if (status !== 'open') open.delete(questionId);
    else if (!answered?.has(questionId) && mayAnswer(question) && !hasExpired(question)) {
      open.set(questionId, { seq, data: (chunk as { data: Loose }).data, isClientTool });
    }
  }

  const isOwnTool = (callId: string, { isClientTool }: Open) =>
    isClientTool && tools.has(calls.get(callId));

  return {
    opening: answered && encodeRunStarted(turn, run, after),
    needsAll: true,
    pauseIn(entries) {
      entries.forEach(see);
      const [first] = entries;
      const last = entries.at(-1);
      // What was asked before the cursor and is open still: its interrupt was lost, or its answer left out.
      const isPausing = first && last && last.seq >= after && open.size > 0;
      // Not behind the chunk that asks: an answer that has no cursor continues there.
      const asked = Array.from(open.values(), ({ seq }) => seq);
      if (isPausing) pausedAt = Math.max(after, first.seq - 1, ...asked);
      for (const { seq, chunk } of entries) {
        if (!isPausing || seq <= pausedAt) toEvents(chunk);
      }
      return isPausing ? pausedAt : undefined;
    },
    end() {
      const waiting = [...open];
      const own = waiting.filter((one) => isOwnTool(...one));
      if (own.length < waiting.length) {
        const interrupts = waiting
          .filter((one) => !own.includes(one))
          .map(([questionId, asked]) => toInterrupt(turn, pausedAt, questionId, asked));
        return encodePausedRun(turn, toEvents, { type: 'interrupt', interrupts });
      }
      // assistant-ui before 0.0.58 goes on only if the outcome is left out, and clients before AG-UI 1.0 do not know the names of
      // calls. Without names, a client takes all calls of the run that have no result.
      const isUnnamed = run.isBefore1 || (!answered && own.length === calls.size);
      const pendingToolCallIds = own.map(([callId]) => callId);
      const outcome = { type: 'success', pendingToolCallIds } as const;
      return encodePausedRun(turn, toEvents, isUnnamed ? undefined : outcome);
    },
  };
}

/** The call that a chunk gives its result, if it does. */
function callWithResult(chunk: Chunk): string | undefined {
  const isOutput = chunk.type === 'tool-output-available' && chunk.preliminary !== true;
  const isEnd = chunk.type === 'tool-output-error' || chunk.type === 'tool-output-denied';
  return isOutput || isEnd ? chunk.toolCallId : undefined;
}

function toInterrupt(
  { turnId }: TurnInfo,
  cursor: number,
  questionId: string,
  { data, isClientTool }: Open,
): AgUiInterrupt {
  const { text, expiresAt, options } = data;
  const toolCallId = isClientTool ? questionId : data.toolCallId;
  const isOfCall = typeof toolCallId === 'string';
  // AG-UI's names: its clients show an approval for `tool_call`. It has none for a tool that the client runs.
  const reason = isOfCall ? 'tool_call' : 'input_required';
  const choices = Array.isArray(options) && { enum: options };
  return {
    id: `${turnId}:${cursor}@${questionId}`,
    reason: isClientTool ? 'tool_output' : reason,
    ...(typeof text === 'string' && { message: text }),
    ...(isOfCall && { toolCallId }),
    ...(choices && { responseSchema: { type: 'string', ...choices } }),
    ...(isDate(expiresAt) && { expiresAt: new Date(expiresAt).toISOString() }),
    metadata: { ...data, questionId },
  };
}

/** The question behind an interrupt's id, and where its run ended; undefined if it is no id of ours. */
export function questionOfInterrupt(
  interruptId: string,
): { questionId: string; cursor: Cursor } | undefined {
  const [, said = '', questionId] = /^([^@]+)@(.+)$/s.exec(interruptId) ?? [];
  const cursor = parseCursor(said);
  return questionId && cursor ? { questionId, cursor } : undefined;
}

/** Within what a `Date` can be. */
function isDate(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= 8.64e15;
}
