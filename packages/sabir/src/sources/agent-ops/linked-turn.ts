import type { Loose } from '../../core/loose.ts';
import {
  hasFinish,
  isObject,
  isString,
  isTurnError,
  isTurnMessage,
  otherTypes,
  SHAPES,
  statusKindOf,
} from './event-shapes.ts';
import type { EventOf, SessionMessage, SessionStatus, TurnEventType } from './events.ts';
import type { Match, TurnMatcher } from './match-turn.ts';
import type { AgentOpsOptions } from './options.ts';

/**
 * The turn of a prompt, on the socket of a server that says which prompt each turn answers: nothing
 * is guessed, and an event that names neither our turn nor our prompt is not about us. Owns the
 * prompt's place in the queue.
 */
export function createLinkedTurn(
  promptId: string,
  givenId: string | undefined,
  dialect: AgentOpsOptions['dialect'] = 'auto',
): TurnMatcher {
  const ignored = otherTypes(dialect);
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
    const given = Number.isSafeInteger(position) && (position as number) > 0 ? Number(position) : 1;
    // While the agent is only being started, no prompt is in front of the first.
    const ahead = reason === 'waking' ? given - 1 : given;
    place = ahead > 0 ? ahead : undefined;
  }

  function readPlaces({ queue, queueReason }: Loose): void {
    if (!Array.isArray(queue)) return;
    const ours = queue.find((one: Loose | null | undefined) => one?.promptId === promptId);
    if (ours) wait(ours.position, queueReason);
    else leave();
  }

  function announce(id: string, answered: unknown): Match {
    const isOurs = answered === undefined ? id === turnId : answered === promptId;
    if (!isOurs) return 'other';
    turnId = id;
    begin();
    return 'begun';
  }

  function isTurn(id: unknown): boolean {
    if (!isString(id) || id !== turnId) return false;
    begin();
    return true;
  }

  function readSnapshot(message: SessionMessage): Match {
    const { id, role, parts, promptId: answered } = message;
    const isOfTurn = role === undefined || role === 'assistant';
    if (!isOfTurn || (parts != null && !Array.isArray(parts))) return 'other';
    if (role && answered === promptId) announce(id, answered);
    if (!isTurn(id)) return 'other';
    return hasFinish(message) ? 'ended' : 'ours';
  }

  function readMessage(message: SessionMessage): Match {
    const { id, role, promptId: answered } = message;
    const isOfTurn = role === 'assistant' && (isTurnMessage(message) || id === turnId);
    const match = isOfTurn ? announce(id, answered) : 'other';
    return match === 'begun' && hasFinish(message) ? 'ended' : match;
  }

  function readInit({ session, data }: EventOf<'init'>): Match {
    if (isObject(data)) readPlaces(data);
    const messages: unknown = session?.messages;
    const matches = (Array.isArray(messages) ? messages : [])
      .filter((message) => isObject(message) && isString(message.id) && message.id !== '')
      .map(readSnapshot);
    if (matches.includes('ended')) return 'ended';
    return matches.includes('ours') ? 'ours' : 'other';
  }

  function readStatus(status: SessionStatus): Match {
    const { promptQueued, promptId: queued, queuePosition, queueReason } = status;
    if (promptQueued && queued === promptId) wait(queuePosition, queueReason);
    if (status.promptWithdrawn === promptId) return isBegun ? 'other' : 'ended';
    const kind = statusKindOf(status);
    if (kind === 'queue') return isWaiting ? 'queued' : 'queue';
    // The server names the turn that ends, and sends a lost prompt to another runner as the same turn.
    return kind === undefined ? 'ours' : 'other';
  }

  function isAbout({ turnId: ofTurn, promptId: ofPrompt, messageId }: Loose): boolean {
    if (ofTurn != null) return ofTurn === turnId;
    const named = ofPrompt ?? messageId;
    // One agent does one thing at a time: while our turn runs, that is what it speaks of.
    return named == null ? isBegun : named === promptId;
  }

  function apply(type: TurnEventType, event: Loose): Match {
    if (type.startsWith('message.part.')) return isTurn(event.turnId) ? 'ours' : 'other';
    switch (type) {
      case 'usage-report':
      case 'question':
      case 'interactive_prompt':
        return isTurn(event.turnId) ? 'ours' : 'other';
      case 'message.create':
        return announce(event.turnId as string, event.promptId);
      case 'message.finalize':
      case 'aborted':
        return isString(event.turnId) && event.turnId === turnId ? 'ended' : 'other';
      case 'complete':
        return isBegun && event.messageId === promptId ? 'ended' : 'other';
      case 'init':
        return readInit(event as EventOf<'init'>);
      case 'message':
        return readMessage(event.data as SessionMessage);
      case 'message.updated':
        return readSnapshot(event.data as SessionMessage);
      case 'chunk':
        return isTurn(event.messageId) ? 'ours' : 'other';
      case 'agentStatus':
        return isAbout(event) ? 'ours' : 'other';
      case 'status':
        return isObject(event.data) ? readStatus(event.data) : 'other';
      case 'error':
        return isTurnError(event as EventOf<'error'>) && isAbout(event) ? 'cut' : 'other';
      case 'queue.state':
        if (isObject(event.data)) readPlaces(event.data);
        return 'queue';
      case 'queue.withdrawn': {
        const isOurs = isObject(event.data) && event.data.promptId === promptId;
        return isOurs && !isBegun ? 'ended' : 'other';
      }
      default:
        return 'ours';
    }
  }

  return {
    get isWaiting() {
      return isWaiting;
    },
    get place() {
      return place;
    },
    match(event) {
      try {
        const { type, turnId: id, promptId: answered } = (event ?? {}) as Loose;
        if (!isString(type) || !Object.hasOwn(SHAPES, type)) return 'ours';
        // Any event that names our prompt and a turn says which turn is ours.
        if (answered === promptId && isString(id) && id !== '') turnId ??= id;
        if (!SHAPES[type as TurnEventType](event as Loose)) return 'ours';
        if (ignored?.has(type)) return 'other';
        return apply(type as TurnEventType, event as Loose);
      } catch {
        // A getter of the event threw. The translator reads it too, and counts it.
        return 'ours';
      }
    },
  };
}
