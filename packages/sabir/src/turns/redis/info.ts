import type { TurnOutcome } from '../../core/outcome.ts';
import type { TurnInfo } from '../log.ts';
import { createTurnProgress, toldBy } from '../turn-progress.ts';

/** A turn as `LOOK`, `BEGIN` and `SEIZE` tell of it. */
export type Known = {
  info: TurnInfo;
  /** Milliseconds until its lease runs out, by Redis's clock; none once it has ended. */
  leaseLeft: number;
  /** How long ago it ended. */
  endedAgo: number | undefined;
  /** As the writer has stored it. */
  progress: string | undefined;
};

export function readInfo(turnId: string, now: unknown, fields: unknown): Known | undefined {
  const [sessionId, chatId, requestId, messageId, started, last, lease, ended, outcome, ...more] =
    fields as (string | null)[];
  const [progress, answered, userId] = more;
  if (typeof sessionId !== 'string' || typeof chatId !== 'string') return undefined;
  const endedAgo = ended ? Number(now) - Number(ended) : undefined;
  const lastSeq = Number(last);
  const answeredIds = new Set(answered ? fromLines(answered) : []);
  return {
    info: {
      turnId,
      sessionId,
      chatId,
      requestId: requestId ?? '',
      messageId: messageId ?? '',
      ...(userId && { userId }),
      startedAt: Number(started),
      lastSeq,
      ...toldBy(createTurnProgress(progress ?? undefined), {
        lastSeq,
        isEnded: endedAgo !== undefined,
        isAnswered: (id) => answeredIds.has(id),
      }),
      // By the clock of this process, which it is compared with.
      ...(endedAgo !== undefined && { endedAt: Date.now() - endedAgo }),
      ...(outcome && { outcome: JSON.parse(outcome) as TurnOutcome }),
    },
    leaseLeft: Number(lease) - Number(now),
    endedAgo,
    progress: progress ?? undefined,
  };
}

/** One more line of `answered`: any id fits, because JSON has no line breaks. */
export function toLine(questionId: string): string {
  return `${JSON.stringify(questionId)}\n`;
}

function fromLines(lines: string): string[] {
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as string);
}
