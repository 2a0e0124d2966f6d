import type { Loose } from '../../core/loose.ts';
import {
  isNamed,
  isObject,
  isString,
  isTurnError,
  otherTypes,
  soundTypeOf,
  statusKindOf,
} from './event-shapes.ts';
import type { EventOf, SessionStatus, TurnEventType } from './events.ts';
import type { AgentOpsOptions } from './options.ts';
import type { TurnMatcher } from './turn-matcher.ts';

/**
 * The turn of a prompt, on the socket of a server that says which prompt each turn answers: nothing
 * is guessed, and an event that names neither our turn nor our prompt is not about us. Owns the
 * prompt's place in the queue.
 */
export function createLinkedTurn(
  promptId: string,
  givenId: string | undefined,
  dialect: AgentOpsOptions['dialect'] = 'auto',
): TurnMatcher & { readonly place: number | undefined } {
  const ignored = otherTypes(dialect);
  let turnId = givenId;
  let isBegun = false;
  let isWaiting = false;
  /** From 1, while the prompt waits behind others. */
  let place: number | undefined;

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

  function readPlaces(data: unknown): true {
    const { queue, queueReason } = Object(data) as Loose;
    if (!Array.isArray(queue)) return true;
    const ours = queue.find((one: Loose | null | undefined) => one?.promptId === promptId);
    if (ours) wait(ours.position, queueReason);
    else leave();
    return true;
  }

  function isTurn(id: unknown): boolean {
    if (!isString(id) || id !== turnId) return false;
    isBegun = true;
    leave();
    return true;
  }

  function announces(id: unknown, answered: unknown): boolean {
    if (answered === promptId && isString(id)) turnId = id;
    return (answered === undefined || answered === promptId) && isTurn(id);
  }

  function isOfMessage({ id, role, parts, promptId: answered }: Loose): boolean {
    if (parts != null && !Array.isArray(parts)) return false;
    if (role === 'assistant' && answered === promptId) return announces(id, answered);
    return (role === undefined || role === 'assistant') && isTurn(id);
  }

  function readInit({ session, data }: EventOf<'init'>): boolean {
    const messages: unknown = session?.messages;
    if (Array.isArray(messages)) messages.filter(isObject).forEach(isOfMessage);
    // The translator finds the message of our turn, if it is there.
    return readPlaces(data);
  }

  function isOfStatus(status: SessionStatus): boolean {
    const { promptQueued, promptId: queued, queuePosition, queueReason } = status;
    if (promptQueued && queued === promptId) wait(queuePosition, queueReason);
    if (status.promptWithdrawn === promptId) return !isBegun;
    const kind = statusKindOf(status);
    // The server names the turn that ends, and sends a lost prompt to another runner as the same turn.
    return kind === undefined || (kind === 'queue' && isWaiting);
  }

  function isAbout({ turnId: ofTurn, promptId: ofPrompt, messageId }: Loose): boolean {
    if (ofTurn != null) return ofTurn === turnId;
    const named = ofPrompt ?? messageId;
    // One agent does one thing at a time: while our turn runs, that is what it speaks of.
    return named == null ? isBegun : named === promptId;
  }

  /** All other events name their turn. */
  const rules: { [Type in TurnEventType]?: (event: EventOf<Type>) => boolean } = {
    'message.create': (event) => announces(event.turnId, event.promptId),
    complete: ({ messageId }) => isBegun && messageId === promptId,
    init: readInit,
    message: ({ data }) => isOfMessage(data),
    'message.updated': ({ data }) => isOfMessage(data),
    chunk: ({ messageId }) => isTurn(messageId),
    agentStatus: isAbout,
    status: ({ data }) => isObject(data) && isOfStatus(data),
    error: (event) => isTurnError(event) && isAbout(event),
    'queue.state': ({ data }) => readPlaces(data),
    'queue.withdrawn': ({ data }) => !isBegun && isObject(data) && data.promptId === promptId,
    interactive_prompt_resolved: () => true,
    interactive_prompt_expired: () => true,
  };

  return {
    get isWaiting() {
      return isWaiting;
    },
    get place() {
      return place;
    },
    match(event) {
      const type = soundTypeOf(event);
      if (!type) return 'ours';
      const named = event as Loose;
      // Any event that names our prompt and a turn says which turn is ours.
      if (named.promptId === promptId && isNamed(named.turnId)) turnId ??= named.turnId;
      if (ignored?.has(type)) return 'other';
      // The table pairs each type with its own event; TypeScript cannot follow the pairing.
      const isOurs = rules[type as 'error']?.(named as EventOf<'error'>) ?? isTurn(named.turnId);
      return isOurs ? 'ours' : 'other';
    },
  };
}
