import type { TurnOutcome } from '../core/outcome.ts';
import { within } from '../core/within.ts';
import type { TurnInfo, TurnLog } from '../turns/log.ts';
import { isAskedBy } from './chat-post.ts';
import { chatKeyOf, type Place } from './chat-route.ts';
import type { Beginning } from './turn-host.ts';
import type { TurnRunner } from './turn-runner.ts';

/** Why the turn was stopped. */
const REASON = 'replaced';
/** How long a new turn waits for the end of those that it replaces. */
const WAIT_MS = 5_000;
const POLL_MS = 50;
/** A log without retention forgets a turn before its `onFinish` has run. */
const FORGOTTEN_MS = 500;
/** How long a gateway keeps the note that a replaced turn is over. */
const NOTE_MS = 2 * WAIT_MS;

/**
 * A chat without a session: a regenerate or an edit stops the turns that the same user has running there, and waits until
 * `onFinish` has run for them. A stock client's `stop()` only disconnects, so the turn would end behind the new one, and an
 * application would store it behind the new one.
 */
export function createReplacedTurns(log: TurnLog, runner: TurnRunner) {
  async function stop(turnId: string): Promise<boolean> {
    return log.command(turnId, { type: 'stop', reason: REASON });
  }

  /** The gateway that runs the turn leaves a note when it is over: `noteEnd`. */
  async function stopElsewhere({ turnId }: TurnInfo, signal: AbortSignal): Promise<void> {
    if (!(await stop(turnId))) return;
    let forgottenMs = 0;
    while (!signal.aborted) {
      if (await log.notes.take(noteOf(turnId))) {
        // The same request may wait at another gateway too.
        await log.notes.add(noteOf(turnId), NOTE_MS);
        return;
      }
      const turn = await log.get(turnId);
      // It ended by itself, before it was stopped.
      if (turn?.outcome && !isReplaced(turn.outcome)) return;
      // It may have done so, or its gateway is gone.
      if (!turn) forgottenMs += POLL_MS;
      if (forgottenMs > FORGOTTEN_MS) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  return {
    /** Gives the ids of the turns that ran in the chat. */
    async stop(post: Beginning, place: Place): Promise<ReadonlySet<string>> {
      const { logSession, logChat, sessionId, user } = place;
      const live = await log.live(logSession, logChat);
      const ran = new Set(live.map(({ turnId }) => turnId));
      // The same request came before: it attaches to its turn.
      if (live.some((turn) => isSameRequest(turn, post))) return ran;
      const chatKey = chatKeyOf(place);
      const here = runner
        .unstoredIn(sessionId)
        .filter(({ prompt }) => prompt.chatKey === chatKey && prompt.user.id === user.id);
      // The request of a turn that goes on after a restart does not name its user.
      const isMine = ({ requestId, userId }: TurnInfo) =>
        userId === undefined ? isAskedBy(requestId, user.id) : userId === user.id;
      const elsewhere = live.filter((turn) => isMine(turn) && !runner.turnHere(turn.turnId));
      const waiting = new AbortController();
      const ends = [
        ...here.map(async (turn) => {
          await stop(turn.prompt.turnId);
          await turn.done;
        }),
        ...elsewhere.map((turn) => stopElsewhere(turn, waiting.signal)),
      ];
      await within(WAIT_MS, Promise.all(ends)).finally(() => waiting.abort());
      return ran;
    },
  };
}

/** Whether this regenerate or edit began the turn. Where a client names its attempts, another attempt is another request. */
export function isSameRequest(turn: TurnInfo, { requestId, answerId }: Beginning): boolean {
  const isIt = turn.requestId.startsWith(requestId);
  return isIt && (answerId === undefined || turn.messageId === answerId);
}

/** For the gateway that has asked for the turn's end, after `onFinish`. */
export async function noteEnd(log: TurnLog, turnId: string, outcome: TurnOutcome): Promise<void> {
  if (log.outlivesProcess && isReplaced(outcome)) await log.notes.add(noteOf(turnId), NOTE_MS);
}

function isReplaced(outcome: TurnOutcome): boolean {
  return outcome.status === 'stopped' && outcome.reason === REASON;
}

function noteOf(turnId: string): string {
  return JSON.stringify(['replaced', turnId]);
}
