import type { Channel } from '../../translator.ts';
import type { Place, SessionStatus } from './events.ts';

/** An agent that says so works on a prompt; `idle` also comes while a question is open. */
const WORKING: ReadonlySet<unknown> = new Set(['thinking', 'streaming', 'tool_calling']);
const MAX_OTHERS = 1_000;

/**
 * Which of the turns on a session's socket is ours.
 *
 * Nothing links a prompt to its turn. Ours is the next one announced on our channel, unless the
 * session told that our prompt waits in a queue: then the one announced after ours left it. A turn
 * nobody announced was running before we came. Owns the queue and the ids of other people.
 */
export function createTurnFinder(channel: Channel | undefined, givenId: string | undefined) {
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

  /** Whether something said of a prompt, or under an id nobody knows, is said of ours. */
  function isAboutUs(messageId: unknown): boolean {
    if (isWaiting) return false;
    if (typeof messageId !== 'string' || messageId === turnId) return true;
    return promptId === undefined ? !others.has(messageId) : messageId === promptId;
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
    /** Whether an event that ends whatever runs ends our turn: it may be about the one before. */
    get isBegun() {
      return isBegun();
    },
    isOurChannel,
    /** A turn begins. True if it is ours. */
    announce(id: string, place: Place): boolean {
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
    /** Whether something is said in our turn; no id means the open one. */
    isOurs(id: unknown): boolean {
      if (id == null) return turnId !== undefined;
      if (id !== turnId) return false;
      isOrphaned = false;
      return true;
    },
    sawOther(id: unknown): void {
      addOther(id);
      othersRun = true;
    },
    sawOtherEnd(): void {
      othersRun = false;
      hasOtherEnded = true;
    },
    /** A person's message: ours, or once our turn runs, the prompt of somebody who waits. */
    sawPrompt(id: unknown): void {
      if (turnId !== undefined) addOther(id);
      else if (!isWaiting) hasPrompt = true;
    },
    sawStatus(status: string, messageId: unknown): void {
      if (turnId !== undefined || othersRun || !WORKING.has(status)) return;
      isWorking = true;
      isDispatched ||= hasPrompt;
      workedOn = typeof messageId === 'string' ? messageId : undefined;
    },
    isAboutUs,
    /** Whether a `complete` is ours: one follows the end of every turn. */
    takeComplete(messageId: unknown): boolean {
      const isOthers = hasOtherEnded && (promptId === undefined || messageId === undefined);
      hasOtherEnded = false;
      return !isOthers && isBegun() && isAboutUs(messageId);
    },
    readQueue({
      promptQueued,
      queuePosition,
      promptDequeued,
      remaining,
      runnerBusy,
      aborted,
      watchdogRecovery,
    }: SessionStatus): void {
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
    /** The runner is gone. The session sends our prompt again, and another turn answers it. */
    orphan(): void {
      isOrphaned = turnId !== undefined;
    },
  };
}
