import { type BodyLimits, readJson } from '../core/chat-request.ts';
import {
  ATTACHMENTS_TOO_LARGE,
  BODY_TOO_LARGE,
  BODY_TOO_SLOW,
  type ErrorKind,
  SabirError,
  SERVER_FULL,
  TOO_MANY_REQUESTS,
  TOO_MANY_SOCKETS,
  TOO_MANY_TURNS,
  TOO_MANY_VIEWERS,
} from '../core/errors.ts';
import type { MetricRegistry } from '../core/metrics.ts';
import { startTimeout, type Timer } from '../core/timers.ts';
import { within } from '../core/within.ts';
import type { TurnLog } from '../turns/log.ts';
import type { GatewayLimits, GatewayTiming } from './options.ts';

/** Who a limit counts for: a signed-in user, or the address of a request on a public route. */
export type Caller = { kind: 'user' | 'address'; key: string };

/** Gives back what was taken. Later calls do nothing. */
type Release = () => void;

/** The place of one stream that a caller may open. */
export type Seat = {
  /** Counts it among the viewers of a turn; throws where those are too many. */
  watch(turnId: string): void;
  readonly isWatching: boolean;
  leave: Release;
};

/** The place of one WebSocket. */
export type SocketSeat = {
  /** Counts it for this caller; throws where those are too many. */
  own(caller: Caller): void;
  leave: Release;
};

export type Admission = ReturnType<typeof createAdmission>;

type LimitName = keyof GatewayLimits;
/** The limits of one thing: in all, for one user, and for one address on public routes. */
type LimitNames = { all?: LimitName; user: LimitName; address: LimitName };

const TURN_LIMITS: LimitNames = {
  all: 'liveTurns',
  user: 'liveTurnsPerUser',
  address: 'liveTurnsPerAddress',
};
const VIEWER_LIMITS: LimitNames = {
  all: 'viewers',
  user: 'viewersPerUser',
  address: 'viewersPerAddress',
};
const SOCKET_LIMITS: LimitNames = {
  all: 'chatSockets',
  user: 'chatSocketsPerUser',
  address: 'chatSocketsPerAddress',
};
const BODY_LIMITS: LimitNames = { user: 'bodiesPerUser', address: 'bodiesPerAddress' };
const HELD_LIMITS: LimitNames = {
  all: 'heldBodyBytes',
  user: 'heldBodyBytesPerUser',
  address: 'heldBodyBytesPerAddress',
};

/** At these, everybody is refused: `/readyz` says so. */
const GLOBAL_LIMITS: ReadonlySet<string> = new Set([
  'liveTurns',
  'viewers',
  'chatSockets',
  'heldBodyBytes',
]);

/**
 * Counts what callers make this process hold, and refuses what is past a limit before anything is stored
 * and before the agent is asked. Nothing is taken back from those who are in.
 */
export function createAdmission(
  limits: GatewayLimits,
  timing: Pick<GatewayTiming, 'bodyMs' | 'publicBodyMs'>,
  registry: MetricRegistry,
  logLimits: TurnLog['limits'] = {},
) {
  const turns = createTally();
  const viewers = createTally();
  const turnViewers = createTally();
  const sockets = createTally();
  const bodies = createTally();
  const heldBytes = createTally();

  const uses: Partial<Record<LimitName, () => number>> = {
    liveTurns: () => turns.total,
    liveTurnsPerUser: () => turns.highest('user'),
    liveTurnsPerAddress: () => turns.highest('address'),
    viewers: () => viewers.total,
    viewersPerTurn: () => turnViewers.highest('turn'),
    viewersPerUser: () => viewers.highest('user'),
    viewersPerAddress: () => viewers.highest('address'),
    chatSockets: () => sockets.total,
    chatSocketsPerUser: () => sockets.highest('user'),
    chatSocketsPerAddress: () => sockets.highest('address'),
    bodiesPerUser: () => bodies.highest('user'),
    bodiesPerAddress: () => bodies.highest('address'),
    heldBodyBytes: () => heldBytes.total,
    heldBodyBytesPerUser: () => heldBytes.highest('user'),
    heldBodyBytesPerAddress: () => heldBytes.highest('address'),
  };
  const refusals = new Map<string, () => void>();
  for (const [name, max] of Object.entries(limits)) {
    const use = uses[name as LimitName];
    const isGlobal = GLOBAL_LIMITS.has(name);
    refusals.set(
      name,
      registry.limit(name, { max, ...(use && { use }), ...(isGlobal && { isGlobal }) }),
    );
  }
  for (const [name, limit] of Object.entries(logLimits)) {
    refusals.set(name, registry.limit(name, limit));
  }

  function refuse(name: LimitName, kind: ErrorKind): never {
    refusals.get(name)?.();
    throw new SabirError(kind, `${kind.userMessage} The limit ${name} is ${limits[name]}.`);
  }

  /** Whether there is room for so many more: the limit in all, then the one of this caller. */
  function check(
    { tally, names, more = 1 }: { tally: Tally; names: LimitNames; more?: number },
    { kind, key }: Caller,
    tooMany: ErrorKind,
  ): void {
    if (names.all && tally.total + more > limits[names.all]) refuse(names.all, SERVER_FULL);
    if (tally.count(kind, key) + more > limits[names[kind]]) refuse(names[kind], tooMany);
  }

  /** Adds to what is held for a caller; what is too much is not added. */
  function hold(caller: Caller, bytes: number): void {
    check({ tally: heldBytes, names: HELD_LIMITS, more: bytes }, caller, TOO_MANY_REQUESTS);
    heldBytes.change(caller.kind, caller.key, bytes);
  }

  const bodyMsOf = ({ kind }: Caller) => (kind === 'user' ? timing.bodyMs : timing.publicBodyMs);

  return {
    /** A turn that a caller wants to begin. */
    takeTurn(caller: Caller): Release {
      check({ tally: turns, names: TURN_LIMITS }, caller, TOO_MANY_TURNS);
      return turns.add(caller.kind, caller.key);
    },
    /** A turn that the log did not begin. */
    countLogRefusal(error: unknown): void {
      if (error instanceof SabirError && error.code === SERVER_FULL.code) {
        refusals.get('liveBytes')?.();
      }
    },
    /** A turn that goes on: it counts, and is not refused. Without a caller it counts in all. */
    countTurn: (caller?: Caller): Release =>
      caller ? turns.add(caller.kind, caller.key) : turns.add('turn', ''),
    takeSeat(caller: Caller): Seat {
      check({ tally: viewers, names: VIEWER_LIMITS }, caller, TOO_MANY_VIEWERS);
      const leave = viewers.add(caller.kind, caller.key);
      let leaveTurn: Release | undefined;
      return {
        watch(turnId) {
          if (turnViewers.count('turn', turnId) >= limits.viewersPerTurn) {
            refuse('viewersPerTurn', TOO_MANY_VIEWERS);
          }
          leaveTurn = turnViewers.add('turn', turnId);
        },
        get isWatching() {
          return leaveTurn !== undefined;
        },
        leave() {
          leaveTurn?.();
          leave();
        },
      };
    },
    /** A WebSocket, counted before it is known whose it is. */
    takeSocket(): SocketSeat {
      if (sockets.total >= limits.chatSockets) refuse('chatSockets', SERVER_FULL);
      let leave = sockets.add('turn', '');
      return {
        own(caller) {
          leave();
          check({ tally: sockets, names: SOCKET_LIMITS }, caller, TOO_MANY_SOCKETS);
          leave = sockets.add(caller.kind, caller.key);
        },
        leave: () => leave(),
      };
    },
    /** For a limit that is checked elsewhere. */
    countRefusal: (name: LimitName): void => refusals.get(name)?.(),
    /** What is kept for a client until it has taken it. */
    holdBytes(caller: Caller, bytes: number): Release {
      hold(caller, bytes);
      return once(() => heldBytes.change(caller.kind, caller.key, -bytes));
    },
    /**
     * What arrives over a WebSocket counts until its message is complete, as what has been read of a body does. `onLate` runs
     * when a message takes longer than a body may. The first `freeBytes` do not count: while a limit is
     * reached, small frames still get through.
     */
    holdArriving(caller: Caller, freeBytes: number, onLate: () => void) {
      let bytes = 0;
      let timer: Timer | undefined;
      const countedIn = (arrived: number) => Math.max(0, arrived - freeBytes);
      return {
        /** Throws where it is too much. */
        add(more: number): void {
          timer ??= startTimeout(bodyMsOf(caller), onLate);
          const counted = countedIn(bytes + more) - countedIn(bytes);
          if (counted > 0) hold(caller, counted);
          bytes += more;
        },
        release(fewer = bytes): void {
          const left = Math.max(0, bytes - fewer);
          heldBytes.change(caller.kind, caller.key, countedIn(left) - countedIn(bytes));
          bytes = left;
          if (left > 0) return;
          timer?.clear();
          timer = undefined;
        },
      };
    },
    /**
     * Reads a body within the limits of its caller: how many at once, how large, how long. What `use` makes of it
     * counts with the body's bytes until `release`.
     */
    async readBody<T>(
      request: Request,
      caller: Caller,
      sizes: BodyLimits,
      use: (body: { value: unknown; bytes: number }) => T | Promise<T>,
    ): Promise<{ read: T; release: Release }> {
      check({ tally: bodies, names: BODY_LIMITS }, caller, TOO_MANY_REQUESTS);
      const bodyMs = bodyMsOf(caller);
      const isRead = bodies.add(caller.kind, caller.key);
      let bytes = 0;
      let isLate = false;
      const release = once(() => heldBytes.change(caller.kind, caller.key, -bytes));
      const reading = readJson(request, sizes, (more) => {
        if (isLate) throw new SabirError(BODY_TOO_SLOW);
        hold(caller, more);
        bytes += more;
      });
      try {
        const body = await within(bodyMs, reading, () => {
          isLate = true;
          throw new SabirError(BODY_TOO_SLOW, `The body did not arrive within ${bodyMs} ms.`);
        });
        isRead();
        return { read: await use(body), release };
      } catch (error) {
        isRead();
        release();
        countSizeRefusal(error, caller);
        throw error;
      }
    },
  };

  function countSizeRefusal(error: unknown, { kind }: Caller): void {
    if (!(error instanceof SabirError)) return;
    const isPublic = kind === 'address';
    if (error.code === BODY_TOO_LARGE.code) {
      refusals.get(isPublic ? 'publicBodyBytes' : 'bodyBytes')?.();
    } else if (error.code === ATTACHMENTS_TOO_LARGE.code) {
      refusals.get(isPublic ? 'publicAttachmentBytes' : 'attachmentBytes')?.();
    }
  }
}

type Kind = Caller['kind'] | 'turn';
type Tally = ReturnType<typeof createTally>;

/** How many of something there are, in all and for each key. */
function createTally() {
  const counts = new Map<Kind, Map<string, number>>();
  let total = 0;
  const count = (kind: Kind, key: string) => counts.get(kind)?.get(key) ?? 0;

  function set(kind: Kind, key: string, value: number): void {
    const byKey = counts.get(kind) ?? new Map<string, number>();
    counts.set(kind, byKey);
    if (value > 0) byKey.set(key, value);
    else byKey.delete(key);
  }

  function change(kind: Kind, key: string, by: number): void {
    total += by;
    set(kind, key, count(kind, key) + by);
  }

  return {
    get total() {
      return total;
    },
    count,
    highest(kind: Kind): number {
      let highest = 0;
      for (const value of counts.get(kind)?.values() ?? []) highest = Math.max(highest, value);
      return highest;
    },
    change,
    add(kind: Kind, key: string): Release {
      change(kind, key, 1);
      return once(() => change(kind, key, -1));
    },
  };
}

function once(run: () => void): Release {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    run();
  };
}
