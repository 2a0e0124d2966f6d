import type { Chunk } from '../core/chunks.ts';
import type { Loose } from '../core/loose.ts';
import type { TurnInfo } from '../turns/log.ts';
import { hasExpired, questionOf } from '../turns/question.ts';
import type { AgUiInterrupt } from '../wires/ag-ui/events.ts';
import {
  type AgUiRun,
  agUiEncoderOf,
  encodeInterrupts,
  encodeRunStarted,
} from '../wires/ag-ui/frames.ts';
import type { Pausing, PausingOptions } from './pausing.ts';
import { type Cursor, parseCursor } from './visit.ts';

/**
 * An AG-UI client is asked by the end of its run, and answers with the `resume` of the next one. So the run ends with
 * the chunks that ask, and the turn goes on waiting. A viewer that may not answer stays.
 */
export function createInterrupts(
  { turn, after, answered, mayAnswer }: PausingOptions,
  run: AgUiRun,
): Pausing {
  // Knows what is open: chunks that neither open nor close anything are not shown to it.
  const toEvents = agUiEncoderOf(turn, run);
  const open = new Map<string, Loose>();
  let pausedAt = 0;

  function see(chunk: Chunk): void {
    toEvents(chunk);
    if (chunk.type === 'finish') open.clear();
    const question = questionOf(chunk);
    if (!question) return;
    const { questionId, status } = question;
    if (status !== 'open') open.delete(questionId);
    else if (!answered?.has(questionId) && mayAnswer(question) && !hasExpired(question)) {
      open.set(questionId, (chunk as { data: Loose }).data);
    }
  }

  return {
    opening: answered && encodeRunStarted(turn, run, after),
    needsAll: true,
    pauseIn(entries) {
      for (const { chunk } of entries) see(chunk);
      const last = entries.at(-1);
      // What was asked before the cursor and is open still: its interrupt was lost, or its answer left out.
      if (!last || last.seq < after || open.size === 0) return undefined;
      pausedAt = last.seq;
      return pausedAt;
    },
    end: () =>
      encodeInterrupts(
        turn,
        toEvents,
        Array.from(open, ([questionId, data]) => toInterrupt(turn, pausedAt, questionId, data)),
      ),
  };
}

/** A call that a client runs waits for its output. */
const REASONS: Record<string, string> = { waiting: 'tool_output' };

function toInterrupt(
  { turnId }: TurnInfo,
  seq: number,
  questionId: string,
  data: Loose,
): AgUiInterrupt {
  const { text, toolCallId, expiresAt, options, status } = data;
  const choices = Array.isArray(options) && { enum: options };
  return {
    id: `${turnId}:${seq}@${questionId}`,
    reason:
      typeof toolCallId !== 'string' ? 'question' : (REASONS[String(status)] ?? 'tool_approval'),
    ...(typeof text === 'string' && { message: text }),
    ...(typeof toolCallId === 'string' && { toolCallId }),
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
