import type { Chunk } from '../core/chunks.ts';
import { isObject } from '../core/loose.ts';

/** What a `data-question` part tells, or a `data-client-tool` part: what a turn waits for from its clients. */
export type Question = {
  questionId: string;
  /** `open` until somebody has answered or nobody did; sources may know other ends. */
  status: unknown;
  answer?: unknown;
  /** Milliseconds since 1970. */
  expiresAt?: unknown;
  /** An `AnswerBy`, unless the source got it wrong. Without it, whoever may send may answer. */
  answerBy?: unknown;
  /** The tool call that waits for the answer, where the source says so. */
  toolCallId?: unknown;
  /** The answer is the output of that call, which a client runs. */
  isClientTool?: true;
};

const CLIENT_TOOL_STATES: Record<string, string> = {
  waiting: 'open',
  done: 'answered',
  failed: 'answered',
};

/** Whether its time is over, also if nobody has said so yet. */
export function hasExpired({ expiresAt }: Question): boolean {
  return typeof expiresAt === 'number' && expiresAt <= Date.now();
}

/**
 * The question in a chunk, if there is one: by the id of its part, and open unless it says not. A call that a client
 * runs is a question under the id of the call.
 */
export function questionOf(chunk: Chunk): Question | undefined {
  if (chunk.type === 'data-client-tool' && isObject(chunk.data) && chunk.id !== undefined) {
    const { status, expiresAt, answerBy } = chunk.data;
    const asked = { questionId: chunk.id, toolCallId: chunk.id, isClientTool: true } as const;
    return { ...asked, status: CLIENT_TOOL_STATES[String(status)] ?? status, expiresAt, answerBy };
  }
  if (chunk.type !== 'data-question' || !isObject(chunk.data)) return undefined;
  const { questionId, status = 'open', answer, expiresAt, answerBy, toolCallId } = chunk.data;
  const id = chunk.id ?? questionId;
  if (typeof id !== 'string') return undefined;
  return { questionId: id, status, answer, expiresAt, answerBy, toolCallId };
}
