import type { Channel } from '../../core/translator.ts';
import type { Place, SessionStatus } from './events.ts';

/** An agent that says so works on a prompt; `idle` also comes while a question is open. */
const WORKING: ReadonlySet<unknown> = new Set(['thinking', 'streaming', 'tool_calling']);
const MAX_OTHERS = 1_000;

/** What an event says of what it is about; only our own server says the last two. */
type About = { messageId?: unknown; turnId?: unknown; promptId?: unknown };

/** Which of the turns on a session's socket is ours. */
export type TurnFinder = {
  readonly turnId: string | undefined;
  readonly isWaiting: boolean;
  /** Of our prompt in the queue, from 1, where the server says which prompt is where. */
  readonly place: number | undefined;
  isOurChannel(place: Place): boolean;
  /** Whatever names our prompt and a turn says which turn is ours, also if that never begins. */
  learn(about: About): void;
  /** A turn begins. True if it is ours. */
  announce(id: string, said: Place & { promptId?: unknown }): boolean;
  /** Whether something is said in our turn; no id means the open one. */
  isOurs(id: unknown): boolean;
  /** Whether what ends a turn ends ours. Without an id it ends whichever runs: perhaps the one before. */
  takesEnd(id: unknown): boolean;
  /** Whether a `complete` is ours: one follows the end of every turn. */
  takeComplete(messageId: unknown): boolean;
  /** Whether something said of a prompt, or under an id nobody knows, is said of ours. */
  isAboutUs(about: About): boolean;
  /** Whether the prompt that was taken out of the queue is ours. */
  isWithdrawn(promptId: unknown): boolean;
  readQueue(status: SessionStatus): void;
  /** The places of all that wait. */
  readPlaces(queue: unknown, reason: unknown): void;
  sawOther(id: unknown): void;
  sawOtherEnd(): void;
  /** A person's message: ours, or once our turn runs, the prompt of somebody who waits. */
  sawPrompt(id: unknown): void;
  sawStatus(status: string, messageId: unknown): void;
  /** The runner is gone. The session sends our prompt again, and another turn answers it. */
  orphan(): void;
};

/**
 * Finds our turn on the socket of a server that says nothing of it.
 *
 * Nothing links a prompt to its turn. Ours is the next one announced on our channel, unless the
 * session told that our prompt waits in a queue: then the one announced after ours left it. A turn
 * nobody announced was running before we came. Owns the queue and the ids of other people.
 */
export function createTurnFinder(
  channel: Channel | undefined,
  givenId: string | undefined,
): TurnFinder {
  let turnId = givenId;
  let promptId: string | undefined;
  /** The prompt an agent said it works on; at the next announcement it is ours. */
  let workedOn: string | undefined;
  let isWaiting = false;
  let ahead = 0;
  let isWorking = false;
  let hasPrompt = false;
  /** Our prompt is known to run: whoever is queued now is somebody else. */
  let isDispatched = false;
  let othersRun = false;
  let hasOtherEnded = false;
  let isOrphaned = false;
  const others = new Set<string>();

  function forgetOthersTurn(): void {
    isWorking = false;
    workedOn = undefined;
    othersRun = false;
    hasOtherEnded = false;
  }

  function isOurChannel({ channelType, channelId }: Place): boolean {
    if (!channel) return true;
    const isType = channelType == null || channelType === channel.channelType;
    return isType && (channelId == null || channelId === channel.channelId);
  }

  function isBegun(): boolean {
    return turnId !== undefined || (isWorking && !othersRun);
  }

  function isAboutUs({ turnId: ofTurn, messageId }: About): boolean {
    if (isWaiting) return false;
    if (typeof ofTurn === 'string')
      return turnId === undefined ? !others.has(ofTurn) : ofTurn === turnId;
    if (typeof messageId !== 'string' || messageId === turnId) return true;
    return promptId === undefined ? !others.has(messageId) : messageId === promptId;
  }

  function isOurs(id: unknown): boolean {
    if (id == null) return turnId !== undefined;
    if (id !== turnId) return false;
    isOrphaned = false;
    return true;
  }

  function addOther(id: unknown): void {
    if (typeof id === 'string' && others.size < MAX_OTHERS) others.add(id);
  }

  return {
    get turnId() {
      return turnId;
    },
    get isWaiting() {
      return isWaiting;
    },
    place: undefined,
    isOurChannel,
    announce(id, place) {
      if (id === turnId) return true;
      const isExpected = turnId === undefined ? !isWaiting && !others.has(id) : isOrphaned;
      if (isExpected && isOurChannel(place)) {
        if (turnId !== undefined) addOther(turnId);
        turnId = id;
        promptId = workedOn;
        isOrphaned = false;
        return true;
      }
      addOther(id);
      othersRun = true;
      return false;
    },
    isOurs,
    takesEnd: (id) => (id == null ? isBegun() : isOurs(id)),
    sawOther(id) {
      addOther(id);
      othersRun = true;
    },
    sawOtherEnd() {
      othersRun = false;
      hasOtherEnded = true;
    },
    sawPrompt(id) {
      if (turnId !== undefined) addOther(id);
      else if (!isWaiting) hasPrompt = true;
    },
    sawStatus(status, messageId) {
      if (turnId !== undefined || othersRun || !WORKING.has(status)) return;
      isWorking = true;
      isDispatched ||= hasPrompt;
      workedOn = typeof messageId === 'string' ? messageId : undefined;
    },
    isAboutUs,
    takeComplete(messageId) {
      const isOthers = hasOtherEnded && (promptId === undefined || messageId === undefined);
      hasOtherEnded = false;
      return !isOthers && isBegun() && isAboutUs({ messageId });
    },
    isWithdrawn: () => isWaiting,
    // Nobody says which prompt is ours.
    readPlaces: () => undefined,
    learn: () => undefined,
    readQueue({
      promptQueued,
      queuePosition,
      promptDequeued,
      remaining,
      runnerBusy,
      aborted,
      watchdogRecovery,
    }) {
      if (turnId !== undefined) return;
      if (promptQueued && !isWaiting && !isDispatched) {
        isWaiting = true;
        ahead = typeof queuePosition === 'number' ? queuePosition : 1;
        forgetOthersTurn();
        return;
      }
      if (!isWaiting) return;
      if (promptDequeued) {
        ahead--;
        isWaiting = ahead > 0 && remaining !== 0;
      } else if (runnerBusy === false && !aborted && !watchdogRecovery) {
        // Nothing runs and nothing was sent: our place in the queue is worth nothing any more.
        isWaiting = false;
      }
      if (!isWaiting) forgetOthersTurn();
    },
    orphan() {
      isOrphaned = turnId !== undefined;
    },
  };
}
