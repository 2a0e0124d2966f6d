import type { Loose } from '../../core/loose.ts';
import type { SessionStatus } from './events.ts';
import type { TurnFinder } from './turn-finder.ts';

/**
 * The turn of a prompt, on the socket of a server that says which prompt each turn answers: nothing
 * is guessed, and what names neither our turn nor our prompt is not about us. Owns the prompt's
 * place in the queue.
 */
export function createLinkedTurn(promptId: string, givenId: string | undefined): TurnFinder {
  let turnId = givenId;
  let isBegun = false;
  let isWaiting = false;
  /** From 1, while the prompt waits behind others. */
  let place: number | undefined;

  function begin(): void {
    isBegun = true;
    leave();
  }

  function leave(): void {
    isWaiting = false;
    place = undefined;
  }

  function wait(position: unknown, reason: unknown): void {
    if (isBegun) return;
    isWaiting = true;
    const told = Number.isSafeInteger(position) && (position as number) > 0 ? Number(position) : 1;
    // While the agent is only being started, nobody is in front of the first.
    const ahead = reason === 'waking' ? told - 1 : told;
    place = ahead > 0 ? ahead : undefined;
  }

  return {
    get turnId() {
      return turnId;
    },
    get isWaiting() {
      return isWaiting;
    },
    get place() {
      return place;
    },
    isOurChannel: () => true,
    learn({ turnId: id, promptId: answered }) {
      if (answered === promptId && typeof id === 'string' && id !== '') turnId ??= id;
    },
    announce(id, { promptId: answered }) {
      const isOurs = answered === undefined ? id === turnId : answered === promptId;
      if (!isOurs) return false;
      turnId = id;
      begin();
      return true;
    },
    isOurs(id) {
      if (typeof id !== 'string' || id !== turnId) return false;
      begin();
      return true;
    },
    takesEnd: (id) => typeof id === 'string' && id === turnId,
    takeComplete: (messageId) => isBegun && messageId === promptId,
    isAboutUs({ turnId: ofTurn, promptId: ofPrompt, messageId }) {
      if (ofTurn != null) return ofTurn === turnId;
      const named = ofPrompt ?? messageId;
      // One agent does one thing at a time: while our turn runs, that is what it speaks of.
      return named == null ? isBegun : named === promptId;
    },
    isWithdrawn: (id) => !isBegun && id === promptId,
    readQueue({ promptQueued, queuePosition, promptId: queued, queueReason }: SessionStatus) {
      if (promptQueued && queued === promptId) wait(queuePosition, queueReason);
    },
    readPlaces(queue, reason) {
      if (!Array.isArray(queue)) return;
      const ours = queue.find((one: Loose | null | undefined) => one?.promptId === promptId);
      if (ours) wait(ours.position, reason);
      else leave();
    },
    // Of other turns and prompts there is nothing to know.
    sawOther: () => undefined,
    sawOtherEnd: () => undefined,
    sawPrompt: () => undefined,
    sawStatus: () => undefined,
    // A prompt that is sent to the runner again is answered with the same turn.
    orphan: () => undefined,
  };
}
