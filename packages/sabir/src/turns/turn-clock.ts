import { type ErrorKind, TOOL_SILENT, UPSTREAM_SILENT } from '../core/errors.ts';
import { monotonicNow, startTimer, steadyNow } from '../core/timers.ts';
import type { TurnWriter } from './log.ts';
import type { TurnTiming } from './turn-options.ts';

type TurnClockOptions = {
  writer: TurnWriter;
  timing: TurnTiming;
  /** When the log was last given something. */
  writtenAt(): number;
  onRenewError(error: unknown): void;
  /** Expires the questions that are due. */
  expireQuestions(now: number): void;
  /** The agent is not expected to say anything: its prompt waits, or people have to answer. */
  isSilenceExpected(): boolean;
  isToolWorking(): boolean;
  onSilence(why: ErrorKind): void;
};

const TICK_MS = 1_000;

/** The clock of a running turn: renews its lease, expires its questions and notices a silent agent. */
export function createTurnClock(options: TurnClockOptions) {
  const { writer, timing } = options;
  const { renewMs } = writer;
  /** By the monotonic clock: neither a step of the wall clock nor a sleep of this machine is the agent's silence. */
  let lastEventAt = monotonicNow();
  let renewedAt = steadyNow();
  /** The agent has said something since the last tick: the clock is read once a tick, not once an event. */
  let isAlive = false;

  function renew(): void {
    if (steadyNow() < Math.max(options.writtenAt(), renewedAt) + renewMs) return;
    renewedAt = steadyNow();
    writer.renew().catch(options.onRenewError);
  }

  const tickMs = Math.min(TICK_MS, renewMs / 2, Math.max(timing.idleMs / 4, 10));
  const timer = startTimer(tickMs, () => {
    renew();
    options.expireQuestions(Date.now());
    const now = monotonicNow();
    if (isAlive || options.isSilenceExpected()) {
      isAlive = false;
      lastEventAt = now;
      return;
    }
    const isToolWorking = options.isToolWorking();
    if (now - lastEventAt < (isToolWorking ? timing.toolLimitMs : timing.idleMs)) return;
    options.onSilence(isToolWorking ? TOOL_SILENT : UPSTREAM_SILENT);
  });

  return {
    /** The agent has said something. */
    heard(): void {
      isAlive = true;
    },
    /** The agent's time begins anew. */
    restart(): void {
      lastEventAt = monotonicNow();
    },
    clear: () => timer.clear(),
  };
}
