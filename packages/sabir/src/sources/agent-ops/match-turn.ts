import type { Loose } from '../../core/loose.ts';
import type { Channel } from '../../core/translator.ts';
import {
  hasFinish,
  isObject,
  isString,
  isTurnError,
  otherTypes,
  soundnessOf,
  statusKindOf,
} from './event-shapes.ts';
import type { EventOf, Place, SessionMessage, SessionStatus, TurnEventType } from './events.ts';
import type { Match } from './match.ts';
import type { AgentOpsOptions } from './options.ts';
import { OtherTurns } from './other-turns.ts';
import { type AskingEvent, placeOfQuestion } from './questions.ts';
import { type ExpectedPrompt, SentPrompt } from './sent-prompt.ts';

type Abandoned = { prompt: SentPrompt; wantsStop: boolean };
type Rules = { [Type in TurnEventType]: (event: EventOf<Type>) => Match };

/** An agent in one of these works on a prompt; it is `idle` also while a question is open. */
const WORKING: ReadonlySet<unknown> = new Set(['thinking', 'streaming', 'tool_calling']);

/**
 * Finds the turn that answers our prompt among all turns on a session's socket.
 *
 * Nothing links a prompt to its turn. So one prompt is expected at a time, and its turn is the next
 * that begins on its channel; if the server queued the prompt, the next after it has left the queue.
 * A turn that was not announced ran before. A prompt that was given up before it began may begin
 * later, and then does so before the expected one.
 */
export function createTurnMatcher(
  dialect: AgentOpsOptions['dialect'] = 'auto',
  expected?: ExpectedPrompt,
) {
  const ignored = otherTypes(dialect);
  const channels = new Map<string, Channel>();
  const others = new OtherTurns();
  let prompt = expected && new SentPrompt(expected);
  /** Prompts of ours that were given up before they began, in the order they were sent. */
  let abandoned: Abandoned[] = [];
  let unwantedTurn: string | undefined;
  /** Prompts of others that were shown and whose turns have not begun. */
  let othersAsked = 0;
  let isLastAskOthers = false;
  /** A turn has ended under its name, and a `complete` that names no turn follows. */
  let isCompleteDue = false;
  let isRunnerThere = true;

  const isHere = (place: Place) => prompt?.isHere(place) ?? true;

  function noteChannel({ channelType, channelId }: Place): void {
    if (!isString(channelType) || !isString(channelId)) return;
    const key = JSON.stringify([channelType, channelId]);
    if (!channels.has(key)) channels.set(key, { channelType, channelId });
  }

  function readPart(id: unknown, place: Place): Match {
    if (prompt?.isTurn(id)) return 'ours';
    // A turn that is known already was announced, or is over.
    if (!others.has(id)) beginOther(id, place);
    return 'other';
  }

  function begin(id: string, place: Place, isOver = false): Match {
    if (prompt?.isTurn(id)) return isOver ? 'ended' : 'ours';
    noteChannel(place);
    // Some servers announce a turn in both dialects.
    if (others.has(id)) return 'other';
    const given = takeAbandoned(place);
    if (given) {
      others.begin(id, true);
      if (!given.wantsStop) return 'other';
      unwantedTurn = id;
      return 'unwanted-begun';
    }
    const isOurChannel = isHere(place);
    if (prompt && isOurChannel && prompt.isNext(othersAsked)) {
      others.add(prompt.turnId);
      others.end();
      prompt.turnId = id;
      prompt.isOrphaned = false;
      unwantedTurn = undefined;
      // A prompt that was sent before it would have begun before it.
      abandoned = [];
      return isOver ? 'ended' : 'begun';
    }
    othersAsked = Math.max(0, othersAsked - 1);
    beginOther(id, place);
    if (isOver) others.end(id);
    return isOurChannel && prompt?.isBegun ? 'overtaken' : 'other';
  }

  function beginOther(id: unknown, place: Place): void {
    others.begin(id, isHere(place));
    // If an agent works, it works on that turn.
    if (prompt) prompt.isWorkedOn = false;
  }

  /** Takes the given up prompt whose turn this must be: ours cannot begin before it. */
  function takeAbandoned(place: Place): Abandoned | undefined {
    const found = abandoned.find((one) => one.prompt.isHere(place));
    if (!found?.prompt.isNext(othersAsked)) return undefined;
    if (prompt?.isHere(place) && prompt.isAfter(found.prompt)) {
      abandoned = [];
      return undefined;
    }
    abandoned = abandoned.filter((one) => one !== found);
    return found;
  }

  function end(id: unknown, isClean: boolean): Match {
    if (prompt?.isTurn(id)) return isClean ? 'ended' : 'cut';
    return id == null && isUnannounced() ? 'unannounced' : endOther(id);
  }

  function isUnannounced(): boolean {
    return prompt?.isBegun === false && prompt.isWorkedOn && !others.isAny;
  }

  function endOther(id: unknown): Match {
    others.end(id);
    if (unwantedTurn === undefined || (id != null && id !== unwantedTurn)) return 'other';
    unwantedTurn = undefined;
    return 'unwanted-ended';
  }

  function finalize(id: unknown): Match {
    isCompleteDue = true;
    return end(id, id != null);
  }

  function complete({ messageId }: EventOf<'complete'>): Match {
    const isNamed = prompt?.isBegun && prompt.id !== undefined && messageId !== undefined;
    const isLate = isCompleteDue && !isNamed;
    isCompleteDue = false;
    if (isLate || !canBeOurs({ messageId })) return 'other';
    return end(undefined, true);
  }

  /** Whether the turn or the prompt that an event names can be ours. True if it names none. */
  function canBeOurs({ turnId, messageId }: { turnId?: unknown; messageId?: unknown }): boolean {
    if (!prompt?.isBegun) return !others.has(isString(turnId) ? turnId : messageId);
    if (isString(turnId)) return turnId === prompt.turnId;
    if (!isString(messageId) || messageId === prompt.turnId) return true;
    return prompt.id === undefined ? !others.has(messageId) : messageId === prompt.id;
  }

  /** An event that names no turn is of ours, unless our prompt still waits behind another. */
  function isOurs(event: EventOf<'agentStatus'> | EventOf<'error'>): boolean {
    const current = prompt;
    if (!current?.isHere(event) || !canBeOurs(event)) return false;
    if (current.isBegun) return true;
    if (current.isQueued || others.isHere) return false;
    return abandoned.every((one) => current.isAfter(one.prompt));
  }

  function readAgentStatus(event: EventOf<'agentStatus'>): Match {
    if (!isOurs(event)) return 'other';
    if (prompt?.isBegun === false && !others.isAny && WORKING.has(event.status)) {
      prompt.isWorkedOn = true;
      prompt.isDispatched ||= prompt.isShown;
      prompt.id = isString(event.messageId) ? event.messageId : undefined;
    }
    return 'ours';
  }

  function fail(event: EventOf<'error'>): Match {
    if (!isTurnError(event)) return 'other';
    // A prompt that fails before it begins does not begin.
    const isEarly = !prompt?.isBegun && !others.isHere && canBeOurs(event);
    if (isEarly && takeAbandoned(event)) return 'other';
    return isOurs(event) ? 'cut' : 'other';
  }

  function readStatus(status: SessionStatus): Match {
    readRunner(status);
    const kind = statusKindOf(status);
    if (kind === 'queue') return readQueue(status);
    if (kind === 'idle') return readIdle(status);
    if (kind === 'runner-lost') {
      others.end();
      if (prompt) prompt.isOrphaned = prompt.isBegun;
    }
    return prompt?.isBegun ? 'ours' : 'other';
  }

  function readRunner({ runnerConnected }: Loose): void {
    if (typeof runnerConnected !== 'boolean') return;
    isRunnerThere = runnerConnected;
    if (prompt && isRunnerThere) prompt.isWaking = false;
  }

  function readQueue(status: SessionStatus): Match {
    if (status.promptQueued) {
      if (!isLastAskOthers) prompt?.joinQueue(status, isRunnerThere);
    } else {
      prompt?.advance(status);
      others.end();
      unwantedTurn = undefined;
      isCompleteDue = false;
    }
    return prompt?.isBegun === false && prompt.isWaiting ? 'queued' : 'queue';
  }

  function readIdle({ aborted }: SessionStatus): Match {
    const wasUnannounced = isUnannounced();
    const match = endOther(undefined);
    othersAsked = 0;
    if (!prompt) return match;
    if (prompt.isBegun) return 'cut';
    // It may be the late end of an abort, which leaves the queue as it is. A session, which knows the
    // prompt's words, gives the prompt up if nothing follows; a translator alone takes the next turn.
    if (prompt.isQueued && prompt.content === undefined && !aborted) prompt.isQueueLost = true;
    if (match !== 'other') return match;
    if (wasUnannounced) return 'unannounced';
    const isKnown = prompt.isShown || prompt.queued !== undefined;
    return isKnown && !prompt.isWaking ? 'doubtful' : 'other';
  }

  /** The server shows a prompt, as a message or as pending: gives the one of ours that it is. */
  function findAsked(content: unknown): SentPrompt | undefined {
    const ours = [...abandoned.map((one) => one.prompt), ...(prompt ? [prompt] : [])];
    const asked = ours.find((one) => {
      return one.content === content && !one.isBegun && (!one.isShown || one.isKept);
    });
    if (asked) asked.isShown = true;
    isLastAskOthers = !asked || asked !== prompt;
    return asked;
  }

  function readUserMessage(message: SessionMessage): Match {
    noteChannel(message);
    if (prompt && prompt.content === undefined) {
      if (!prompt.isHere(message)) return 'other';
      if (prompt.isBegun) others.add(message.id);
      else prompt.isShown = true;
      return 'other';
    }
    const asked = findAsked(message.content);
    if (!asked) {
      othersAsked++;
      others.add(message.id);
    } else if (asked.isKept) {
      asked.isKept = false;
      asked.queued = 0;
    }
    return 'other';
  }

  function readMessage(message: SessionMessage): Match {
    const { id, role, parts, content } = message;
    // A turn begins with an empty message. A message with text but no parts is no turn.
    const isTurn = Array.isArray(parts) || (parts == null && !content) || id === prompt?.turnId;
    return role === 'assistant' && isTurn ? begin(id, message, hasFinish(message)) : 'other';
  }

  function readSnapshot(message: SessionMessage): Match {
    const { id, role, parts } = message;
    const isTurn = role === undefined || role === 'assistant';
    if (!isTurn || (parts != null && !Array.isArray(parts))) return 'other';
    if (hasFinish(message)) return finalize(id);
    // A message without a role may be a transcript, which is no turn.
    return role || id === prompt?.turnId ? readPart(id, message) : 'other';
  }

  function readInit({ session }: EventOf<'init'>): Match {
    const ours = messagesOf(session).filter(({ id }) => isString(id) && id === prompt?.turnId);
    return ours.some(hasFinish) ? 'ended' : ours.length > 0 ? 'ours' : 'other';
  }

  function readPending({ data }: EventOf<'queue.state'>): Match {
    const pending = isObject(data) && isObject(data.pending) ? data.pending : undefined;
    const asked = pending && prompt?.content !== undefined && findAsked(pending.content);
    if (asked) asked.isKept = true;
    return 'other';
  }

  function withdraw({ data }: EventOf<'queue.withdrawn'>): Match {
    if (prompt?.isBegun !== false || !prompt.isWaiting) return 'other';
    const content = isObject(data) ? data.content : undefined;
    return prompt.content === undefined || content === prompt.content ? 'ended' : 'other';
  }

  const ask = (event: AskingEvent): Match =>
    prompt?.isTurn((event as Loose).turnId) && isHere(placeOfQuestion(event)) ? 'ours' : 'other';

  const ofPart = ({ turnId }: { turnId?: unknown }): Match => readPart(turnId, {});

  const rules: Rules = {
    'message.create': (event) => begin(event.turnId, event),
    'message.part.text-delta': ofPart,
    'message.part.reasoning-delta': ofPart,
    'message.part.tool-update': ofPart,
    'message.part.tool-input-delta': ofPart,
    'message.part.step': ofPart,
    'message.part.source': ofPart,
    'message.part.file': ofPart,
    'message.part.data': ofPart,
    'message.finalize': ({ turnId }) => finalize(turnId),
    complete,
    aborted: ({ turnId }) => end(turnId, false),
    'usage-report': ({ turnId }) => (prompt?.isTurn(turnId) ? 'ours' : 'other'),
    init: readInit,
    message: ({ data }) => readMessage(data),
    'message.updated': ({ data }) => readSnapshot(data),
    chunk: (event) => readPart(event.messageId, event),
    agentStatus: readAgentStatus,
    status: ({ data }) => (data ? readStatus(data) : 'other'),
    error: fail,
    question: ask,
    interactive_prompt: ask,
    interactive_prompt_resolved: () => 'ours',
    interactive_prompt_expired: () => 'ours',
    'queue.state': readPending,
    'queue.withdrawn': withdraw,
  };

  /** For an event that is well-formed. */
  function apply(type: TurnEventType, event: Loose): Match {
    // The people's messages, the channels and the runner are the same in both dialects.
    if (type === 'init') {
      for (const message of messagesOf(event.session)) noteChannel(message);
      if (isObject(event.data)) readRunner(event.data);
    } else if (type === 'message' && (event.data as SessionMessage).role === 'user') {
      return readUserMessage(event.data as SessionMessage);
    }
    if (ignored?.has(type)) return 'other';
    // The table pairs each type with its own event; TypeScript cannot follow the pairing.
    return rules[type as 'error'](event as EventOf<'error'>);
  }

  return {
    get channels(): Channel[] {
      return [...channels.values()];
    },
    get isWaiting(): boolean {
      return prompt !== undefined && (prompt.isWaiting || (!prompt.isBegun && others.isHere));
    },
    /** The server has said that the prompt waits, or waited, in its queue. */
    get wasQueued(): boolean {
      return prompt?.queued !== undefined;
    },
    /** A prompt that was given up is to be stopped when it begins. */
    get isStopPending(): boolean {
      return abandoned.some(({ wantsStop }) => wantsStop);
    },
    /** The prompt is sent, or sent again: from now on its turn is ours. */
    expect(given: ExpectedPrompt): void {
      prompt = new SentPrompt(given);
    },
    /** Our turn is over, or not ours any more though it may still run. */
    finish({ isRunning }: { isRunning: boolean }): void {
      if (isRunning) others.begin(prompt?.turnId, true);
      others.add(prompt?.turnId);
      prompt = undefined;
    },
    /** The prompt has not begun and is not waited for any more, but it may begin. */
    giveUp(wantsStop: boolean): void {
      if (prompt) abandoned.push({ prompt, wantsStop });
      prompt = undefined;
    },
    forgetAbandoned(): void {
      abandoned = [];
    },
    apply,
    /** For any event; one that is malformed, or of a type that no translator handles, is ours: it is counted there. */
    match(event: unknown): Match {
      const { type } = (event ?? {}) as Loose;
      if (!isString(type) || soundnessOf(type, event as Loose) !== 'sound') return 'ours';
      return apply(type as TurnEventType, event as Loose);
    },
  };
}

function messagesOf(session: unknown): SessionMessage[] {
  const messages = isObject(session) ? session.messages : undefined;
  return Array.isArray(messages)
    ? (messages.filter(isObject) as unknown[] as SessionMessage[])
    : [];
}
