import type { Loose } from '../../core/loose.ts';
import type { Channel } from '../../core/translator.ts';
import type { AgentOpsEvent, Place, SessionMessage, SessionStatus } from './events.ts';

/** A prompt of ours that is on its way through the server. */
export type Flight = {
  readonly content: string;
  readonly channel: Channel;
  /** Known once the turn has begun. */
  turnId?: string | undefined;
  /** The server has shown our message: what was under way before it is settled. */
  isEchoed: boolean;
  /** How many prompts leave the server's queue until ours has; nothing if ours is not in it. */
  queued?: number | undefined;
  /** The server keeps our message to itself until it is sent to the runner. */
  isKept: boolean;
  /** There is no runner yet. */
  isWaking: boolean;
  /** The runner went away: the server sends the prompt again, and another turn answers it. */
  isOrphaned: boolean;
};

/** What is known of a prompt that the server has not seen yet. */
export const UNSEEN = {
  turnId: undefined,
  queued: undefined,
  isEchoed: false,
  isOrphaned: false,
  isKept: false,
  isWaking: false,
};

/** What an event means for the prompt that is on its way. */
export type Sighting =
  /** Our turn begins. */
  | 'begun'
  /** Our turn is over, and said so itself. */
  | 'ended'
  /** The runner is idle, though our turn did not say that it is over. */
  | 'cut'
  /** The server has gone on to another turn. */
  | 'overtaken'
  /** The runner is idle though our turn has not begun: it may be the late end of another. */
  | 'doubtful'
  /** Somebody took our prompt out of the queue. */
  | 'withdrawn'
  /** The server's queue has changed. */
  | 'queue'
  /** A prompt that was given up begins after all, and is to be stopped. */
  | 'stray'
  /** Such a turn is over. */
  | 'cleared'
  /** Of our turn, or of nobody's. */
  | 'ours'
  /** Of another turn. */
  | 'foreign';

/**
 * Which of a session's turns is the one that answers our prompt.
 *
 * Nothing links the two, so at most one prompt of ours is on its way at a time, and its turn is the
 * next that begins on its channel, unless the server told that our prompt waits: then the next
 * after ours has left the queue. What others ask and how their prompts queue is told to everybody,
 * in the same words. A prompt that was given up before it began may begin later, and then does so
 * before ours. Owns what is known of others and of those; the prompt on its way is the session's.
 */
export function createTurnWatch(dialect: 'auto' | 'v2' | 'snapshot') {
  const channels = new Map<string, Channel>();
  /** Prompts of others that were shown and whose turns have not begun. */
  let othersAsked = 0;
  let isLastAskOthers = false;
  let othersTurn: string | undefined;
  let isRunnerThere = true;
  /** Prompts of ours that nobody waits for and that have not begun, in the order they were sent. */
  let ghosts: { flight: Flight; wantsStop: boolean }[] = [];
  let strayTurn: string | undefined;

  function noteChannel({ channelType, channelId }: Place): void {
    if (typeof channelType !== 'string' || typeof channelId !== 'string') return;
    const key = JSON.stringify([channelType, channelId]);
    if (!channels.has(key)) channels.set(key, { channelType, channelId });
  }

  /** Somebody's message is shown; the prompt of ours that it is, if it is one. */
  function seeAsked(content: unknown, flight: Flight | undefined): Flight | undefined {
    const ours = [...ghosts.map((ghost) => ghost.flight), ...(flight ? [flight] : [])];
    const asked = ours.find(
      ({ content: sent, turnId, isEchoed, isKept }) =>
        sent === content && turnId === undefined && (!isEchoed || isKept),
    );
    if (asked) asked.isEchoed = true;
    isLastAskOthers = !asked || asked !== flight;
    return asked;
  }

  function seePending(content: unknown, flight: Flight | undefined): void {
    const asked = seeAsked(content, flight);
    if (asked) asked.isKept = true;
  }

  function seeUser(message: SessionMessage, flight: Flight | undefined): void {
    noteChannel(message);
    const asked = seeAsked(message.content, flight);
    if (!asked) othersAsked++;
    else if (asked.isKept) {
      asked.isKept = false;
      asked.queued = 0;
    }
  }

  /** Takes the one out whose turn this must be; ours cannot come before it. */
  function takeGhost(place: Place, flight: Flight | undefined): 'stray' | 'foreign' | undefined {
    const ghost = ghosts.find(({ flight: { channel } }) => isSamePlace(place, channel));
    if (!ghost || !isNext(ghost.flight)) return undefined;
    if (flight && isSamePlace(place, flight.channel) && isPast(ghost.flight, flight)) {
      ghosts = [];
      return undefined;
    }
    ghosts = ghosts.filter((other) => other !== ghost);
    return ghost.wantsStop ? 'stray' : 'foreign';
  }

  /** Ours has left the queue, or was shown and the other was not: the other never will be. */
  function isPast(ghost: Flight, flight: Flight): boolean {
    return flight.queued === 0 || (flight.isEchoed && !ghost.isEchoed);
  }

  function seeBegin(id: unknown, place: Place, flight: Flight | undefined): Sighting {
    if (typeof id !== 'string' || flight?.turnId === id) return 'ours';
    noteChannel(place);
    // Some servers say it in both dialects.
    if (id === othersTurn) return 'foreign';
    const ghost = takeGhost(place, flight);
    if (ghost) {
      othersTurn = id;
      if (ghost === 'stray') strayTurn = id;
      return ghost;
    }
    const isOurChannel = !flight || isSamePlace(place, flight.channel);
    if (flight && isOurChannel && isNext(flight)) {
      flight.turnId = id;
      flight.isOrphaned = false;
      othersTurn = undefined;
      strayTurn = undefined;
      // What was sent before it would have begun before it.
      ghosts = [];
      return 'begun';
    }
    othersAsked = Math.max(0, othersAsked - 1);
    if (!isOurChannel) return 'foreign';
    othersTurn = id;
    return flight?.turnId === undefined ? 'foreign' : 'overtaken';
  }

  function isNext(flight: Flight): boolean {
    if (flight.turnId !== undefined) return flight.isOrphaned;
    if (flight.queued !== undefined) return flight.queued <= 0;
    return flight.isEchoed || othersAsked === 0;
  }

  function seeMessage(message: SessionMessage, flight: Flight | undefined): Sighting {
    const { id, role, content, parts } = message;
    if (role === 'user') {
      seeUser(message, flight);
      return 'foreign';
    }
    // A turn begins with nothing said. What has words but no parts is a message of its own.
    const isTurn = Array.isArray(parts) || (parts == null && !content);
    return role === 'assistant' && isTurn ? seeBegin(id, message, flight) : 'foreign';
  }

  function seeEnd(id: unknown, flight: Flight | undefined, isClean: boolean): Sighting {
    if (flight?.turnId !== undefined && (id == null || id === flight.turnId)) {
      return isClean ? 'ended' : 'cut';
    }
    if (id == null || id === othersTurn) othersTurn = undefined;
    if (strayTurn === undefined || (id != null && id !== strayTurn)) return 'foreign';
    strayTurn = undefined;
    return 'cleared';
  }

  function seeStatus(status: SessionStatus, flight: Flight | undefined): Sighting {
    const { runnerConnected } = status;
    const isDequeued = status.promptDequeued === true;
    const unbegun = flight?.turnId === undefined ? flight : undefined;
    if (typeof runnerConnected === 'boolean') {
      isRunnerThere = runnerConnected;
      if (unbegun && isRunnerThere) unbegun.isWaking = false;
    }
    if (status.promptQueued === true || isDequeued) {
      if (unbegun) seeQueue(status, unbegun);
      if (isDequeued) {
        othersTurn = undefined;
        strayTurn = undefined;
      }
      return 'queue';
    }
    if (status.runnerDisconnected || status.watchdogRecovery) {
      othersTurn = undefined;
      if (flight && !unbegun) flight.isOrphaned = true;
      return unbegun ? 'foreign' : 'ours';
    }
    const isIdle = status.runnerBusy === false || status.aborted === true;
    if (!isIdle) return unbegun ? 'foreign' : 'ours';
    othersTurn = undefined;
    othersAsked = 0;
    if (!unbegun || strayTurn !== undefined) return seeEnd(undefined, flight, false);
    const isKnown = unbegun.isEchoed || unbegun.queued !== undefined;
    return isKnown && !unbegun.isWaking ? 'doubtful' : 'foreign';
  }

  function seeQueue(status: SessionStatus, flight: Flight): void {
    const { promptQueued, queuePosition, queueReason, remaining } = status;
    if (!promptQueued) {
      flight.isWaking = false;
      if (flight.queued) flight.queued = remaining === 0 ? 0 : flight.queued - 1;
    } else if (flight.queued === undefined && !isLastAskOthers) {
      // Nothing runs while the runner is still to come: the first prompt leaves without a word.
      flight.isWaking = queueReason === 'waking' || !isRunnerThere;
      const place = typeof queuePosition === 'number' ? queuePosition : 1;
      flight.queued = flight.isWaking ? place - 1 : place;
    }
  }

  /** What names no turn: of ours, unless ours still waits behind another. */
  function seeUnnamed(flight: Flight | undefined): Sighting {
    if (flight?.turnId !== undefined) return 'ours';
    if (flight && ghosts.some((ghost) => !isPast(ghost.flight, flight))) return 'foreign';
    return flight && !flight.queued && othersTurn === undefined ? 'ours' : 'foreign';
  }

  /** One that fails before it begins does not begin. */
  function seeError(flight: Flight | undefined): Sighting {
    const isBefore = flight?.turnId === undefined && othersTurn === undefined;
    if (isBefore && takeGhost({}, flight)) return 'foreign';
    return seeUnnamed(flight);
  }

  function seeInit({ session, data }: { session?: Loose; data?: Loose }): void {
    if (typeof data?.runnerConnected === 'boolean') isRunnerThere = data.runnerConnected;
    for (const message of Array.isArray(session?.messages) ? session.messages : []) {
      if (typeof message === 'object' && message !== null) noteChannel(message);
    }
  }

  return {
    get channels(): Channel[] {
      return [...channels.values()];
    },
    /** The prompt waits behind others, as far as anybody can tell. */
    isWaiting(flight: Flight): boolean {
      if (flight.turnId !== undefined) return flight.isOrphaned;
      return !!flight.queued || flight.isWaking || othersTurn !== undefined;
    },
    /** Nobody asks for this turn any more; as long as it runs, it is like another's. */
    abandon(flight: Flight): void {
      othersTurn = flight.turnId;
    },
    /** Nobody waits any more for this prompt to begin, but it may. */
    giveUp(flight: Flight, wantsStop: boolean): void {
      ghosts.push({ flight, wantsStop });
    },
    forgetGhosts(): void {
      ghosts = [];
    },
    /** Something is still to be stopped when it begins. */
    get hasStray(): boolean {
      return ghosts.some(({ wantsStop }) => wantsStop);
    },
    sent(): void {
      isLastAskOthers = false;
    },
    see(event: unknown, flight: Flight | undefined): Sighting {
      // Whatever arrives is read as what it says it is; only what is there is looked at.
      const said = event as AgentOpsEvent & { data?: Loose; turnId?: unknown };
      switch (said?.type) {
        case 'message.part.text-delta':
        case 'message.part.tool-update':
        case 'chunk':
          return flight?.turnId === undefined ? 'foreign' : 'ours';
        case 'message.create':
          return dialect === 'snapshot' ? 'foreign' : seeBegin(said.turnId, said, flight);
        case 'message':
          if (dialect === 'v2' && said.data?.role !== 'user') return 'foreign';
          return isObject(said.data) ? seeMessage(said.data as SessionMessage, flight) : 'ours';
        case 'message.updated': {
          const { id, parts } = (said.data ?? {}) as Partial<SessionMessage>;
          const isOver = Array.isArray(parts) && parts.some((part) => part?.type === 'finish');
          if (isOver) return seeEnd(id, flight, true);
          return flight?.turnId === undefined ? 'foreign' : 'ours';
        }
        case 'message.finalize':
          return seeEnd(said.turnId, flight, said.turnId != null);
        case 'complete':
        case 'aborted':
          return seeEnd(undefined, flight, said.type === 'complete');
        case 'error':
          return seeError(flight);
        case 'agentStatus':
          return seeUnnamed(flight);
        case 'status':
          return isObject(said.data) ? seeStatus(said.data as SessionStatus, flight) : 'ours';
        case 'queue.state': {
          const pending = (said.data as { pending?: { content?: unknown } } | null)?.pending;
          if (pending) seePending(pending.content, flight);
          return 'foreign';
        }
        case 'queue.withdrawn': {
          const { content } = (said.data ?? {}) as Loose;
          return flight?.queued && content === flight.content ? 'withdrawn' : 'foreign';
        }
        case 'init':
          seeInit(said as Loose);
          return 'foreign';
        default:
          return 'ours';
      }
    },
  };
}

function isObject(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null;
}

function isSamePlace({ channelType, channelId }: Place, channel: Channel): boolean {
  const isType = channelType == null || channelType === channel.channelType;
  return isType && (channelId == null || channelId === channel.channelId);
}
