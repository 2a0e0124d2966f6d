import type { TurnOutcome } from '../../core/outcome.ts';
import type { TurnInfo } from '../log.ts';

/** A turn as `LOOK`, `BEGIN` and `SEIZE` tell of it. */
export type Known = {
  info: TurnInfo;
  /** Milliseconds until its lease runs out, by Redis's clock; none once it has ended. */
  leaseLeft: number;
  /** How long ago it ended. */
  endedAgo: number | undefined;
};

export function readInfo(turnId: string, now: unknown, fields: unknown): Known | undefined {
  const [sessionId, chatId, requestId, messageId, started, last, lease, ended, outcome] =
    fields as (string | null)[];
  if (typeof sessionId !== 'string' || typeof chatId !== 'string') return undefined;
  const endedAgo = ended ? Number(now) - Number(ended) : undefined;
  return {
    info: {
      turnId,
      sessionId,
      chatId,
      requestId: requestId ?? '',
      messageId: messageId ?? '',
      startedAt: Number(started),
      lastSeq: Number(last),
      // By the clock of this process, which it is compared with.
      ...(endedAgo !== undefined && { endedAt: Date.now() - endedAgo }),
      ...(outcome && { outcome: JSON.parse(outcome) as TurnOutcome }),
    },
    leaseLeft: Number(lease) - Number(now),
    endedAgo,
  };
}
