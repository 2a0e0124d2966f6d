/** A session with sockets and a clock that the test holds in its hands, on a log that outlives its process. */
import { DatabaseSync } from 'node:sqlite';
import type { Chunk } from '../src/core/chunks.ts';
import type { UIMessage } from '../src/core/message.ts';
import { type ClientInfo, V2Sockets, type V2SocketsOptions } from '../src/gateway/v2/sockets.ts';
import { toSqlDatabase } from '../src/platforms/node/sqlite-database.ts';
import {
  type Clock,
  createSessions,
  memorySessionStore,
  type Session,
  type SessionSocket,
  type SessionStorage,
  type SessionStore,
  type SessionsOptions,
  type SocketEvents,
} from '../src/sessions/index.ts';
import { createLocalTurnLog, type LocalTurnLogOptions } from '../src/turns/local-log.ts';
import type { TurnLog } from '../src/turns/log.ts';
import { createSqliteJournal, type SqlDatabase } from '../src/turns/sqlite-journal.ts';

type Event = { type: string; [field: string]: unknown };
export type TestClock = Clock & { pass(ms: number): void };

/** What has happened in all rigs: frames, and calls to a storage or a database. */
let activity = 0;
/** A frame is written to the log, read from it and sent within fewer ticks. */
const QUIET_TICKS = 8;

/** Resolves when nothing has happened for some ticks. */
export async function settled(): Promise<void> {
  for (let quiet = 0, seen = activity; quiet < QUIET_TICKS; quiet++) {
    await new Promise<void>((resolve) => void setImmediate(resolve));
    if (activity !== seen) quiet = 0;
    seen = activity;
  }
}

/** Goes with the system's clock, and further when the test says so. */
function createTestClock(): TestClock {
  let passed = 0;
  const now = () => Date.now() + passed;
  const waiting = new Set<{ at: number; run: () => void }>();
  return {
    now,
    after(ms, run) {
      const entry = { at: now() + ms, run };
      waiting.add(entry);
      return () => waiting.delete(entry);
    },
    pass(ms) {
      const until = now() + ms;
      for (;;) {
        const [next] = [...waiting].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
        if (!next) break;
        waiting.delete(next);
        passed += Math.max(0, next.at - now());
        next.run();
      }
      passed += Math.max(0, until - now());
    },
  };
}

export type TestSocket = SessionSocket & {
  events: Event[];
  /** How it was closed from the session's side. */
  closed?: { code: number | undefined; reason: string | undefined };
  say(message: object | string): void;
  drop(): void;
  of(type: string): Event[];
  last(type: string): Event | undefined;
  buffered: number;
  /** Called with each event as it comes. */
  onEvent?: (event: Event) => void;
};

/** Its turns may be given by the ids of their messages. */
export type TestRunner = TestSocket & {
  /** Sends the next frame of a turn. */
  chunks(id: string, ...chunks: Chunk[]): void;
  text(id: string, delta: string): void;
  ask(id: string, questionId: string, data?: object): void;
  finish(id: string): void;
  /** The messages that it was asked for. */
  prompts(): unknown[];
};

function createTestSocket(
  { isAlive }: Process,
  connect: (socket: SessionSocket) => SocketEvents,
): TestSocket {
  let session: SocketEvents | undefined;
  const socket: TestSocket = {
    events: [],
    buffered: 0,
    get bufferedAmount() {
      return socket.buffered;
    },
    send(frame) {
      if (!isAlive()) return;
      activity++;
      const event: Event = JSON.parse(frame);
      socket.events.push(event);
      socket.onEvent?.(event);
    },
    close(code, reason) {
      if (socket.closed || !isAlive()) return;
      socket.closed = { code, reason };
      session?.close();
    },
    say(message) {
      activity++;
      if (isAlive())
        session?.message(typeof message === 'string' ? message : JSON.stringify(message));
    },
    drop() {
      if (isAlive()) session?.close();
    },
    of: (type) => socket.events.filter((event) => event.type === type),
    last: (type) => socket.events.findLast((event) => event.type === type),
  };
  session = connect(socket);
  return socket;
}

/** Calls to it count as activity, and throw once its process is gone. */
function ofProcess<Kept extends object>(kept: Kept, isAlive: () => boolean): Kept {
  return new Proxy(kept, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        activity++;
        if (!isAlive()) throw new Error('The process was killed.');
        return member.apply(target, given);
      };
    },
  });
}

type Process = {
  isAlive(): boolean;
  kill(): void;
  log: TurnLog;
  session: Session;
  sockets: V2Sockets;
  close(): Promise<void>;
};

export type SessionRigOptions = Partial<Omit<SessionsOptions, 'store' | 'log' | 'clock'>> &
  Pick<V2SocketsOptions, 'onAudit'> & {
    clock?: TestClock;
    turns?: LocalTurnLogOptions;
    /** What the session has, in place of its storage. */
    storage?: (storage: SessionStorage) => SessionStorage;
    /** What the log has, in place of its database. */
    database?: (database: SqlDatabase) => SqlDatabase;
    /** What the session has, in place of its log. */
    log?: (log: TurnLog) => TurnLog;
  };

export type SessionRig = ReturnType<typeof createSessionRig>;

export function createSessionRig(options: SessionRigOptions = {}) {
  const { clock = createTestClock(), turns = {}, onAudit, ...given } = options;
  const { storage: toStorage, database: toDatabase, log: toLog, ...rest } = given;
  const database = toSqlDatabase(new DatabaseSync(':memory:'), () => undefined);
  const kept = memorySessionStore({ now: clock.now });
  const counts = new Map<string, number>();
  let wanted = 0;

  function start(): Process {
    const state = { isAlive: true };
    const isAlive = () => state.isAlive;
    const own = ofProcess(database, isAlive);
    const log = createLocalTurnLog(turns, createSqliteJournal(toDatabase?.(own) ?? own));
    const store: SessionStore = {
      ...kept,
      open(sessionId) {
        const storage = ofProcess(kept.open(sessionId), isAlive);
        return toStorage?.(storage) ?? storage;
      },
    };
    const ownClock: Clock = {
      now: clock.now,
      after: (ms, run) => clock.after(ms, () => state.isAlive && run()),
    };
    const sessions = createSessions({
      onRunnerWanted: () => void wanted++,
      ...rest,
      store,
      log: toLog?.(log) ?? log,
      clock: ownClock,
    });
    sessions.recover();
    const { session } = sessions.hold('s');
    const { logger, onLimit } = rest;
    const sockets = new V2Sockets(session, {
      clock: ownClock,
      ...(onAudit && { onAudit }),
      ...(onLimit && { onLimit }),
      ...(logger && { logger }),
    });
    return {
      isAlive,
      log,
      session,
      sockets,
      kill() {
        state.isAlive = false;
        // Its timers go, and nothing more is written.
        log.close().catch(() => undefined);
      },
      async close() {
        sockets.close();
        await sessions.close(0);
        await log.close();
      },
    };
  }

  let process = start();

  const connect = (runnerId?: string) =>
    createTestSocket(process, (socket) =>
      process.session.connectRunner(socket, runnerId === undefined ? {} : { runnerId }),
    );

  const turnIdOf = (id: string) => kept.open('s').promptInfo('messageId', id)?.turnId ?? id;

  return {
    clock,
    /** As it is kept, whichever process has it open. */
    storage: kept.open('s'),
    get log() {
      return process.log;
    },
    get session() {
      return process.session;
    },
    get sockets() {
      return process.sockets;
    },
    get runnersWanted() {
      return wanted;
    },
    /** The turn that writes this message. */
    turnIdOf,
    /** What the log has of that turn. */
    async chunksOf(id: string): Promise<Chunk[]> {
      const { lastSeq = 0 } = (await process.log.get(turnIdOf(id))) ?? {};
      const chunks: Chunk[] = [];
      if (lastSeq === 0) return chunks;
      const { signal } = new AbortController();
      for await (const batch of process.log.read(turnIdOf(id), 0, signal)) {
        chunks.push(...batch.map(({ chunk }) => chunk));
        if (chunks.length >= lastSeq) break;
      }
      return chunks;
    },
    /** The process ends without a word, and another one begins. */
    restart(): void {
      process.kill();
      process = start();
    },
    close: () => process.close(),
    client: (id = 'ann', info: Partial<ClientInfo> = {}): TestSocket =>
      createTestSocket(process, (socket) =>
        process.sockets.connect(socket, { user: { id, name: id }, role: 'collaborator', ...info }),
      ),
    /** One of ours, which has said hello. */
    runner(runnerId = 'r1', hello: object | null = {}): TestRunner {
      const socket = connect(runnerId);
      if (hello) socket.say({ type: 'hello', turnId: null, known: [], ...hello });
      const chunks: TestRunner['chunks'] = (id, ...said) => {
        const turnId = turnIdOf(id);
        const key = JSON.stringify([runnerId, turnId]);
        const seq = (counts.get(key) ?? 0) + 1;
        counts.set(key, seq);
        socket.say({ type: 'chunks', turnId, seq, chunks: said });
      };
      return Object.assign(socket, {
        chunks,
        text: (id: string, delta: string) => chunks(id, { type: 'text-delta', id: 'words', delta }),
        ask: (id: string, questionId: string, data: object = {}) =>
          chunks(id, {
            type: 'data-question',
            id: questionId,
            data: { questionId, text: 'Deploy?', status: 'open', ...data },
          }),
        finish: (id: string) => chunks(id, { type: 'finish', finishReason: 'stop' }),
        prompts: () =>
          socket.of('prompt').map(({ prompt }) => (prompt as { messageId: string }).messageId),
      });
    },
    /** A deployed one, which speaks V2. */
    foreignRunner: (): TestSocket => connect(),
  };
}

/** The n-th prompt of a V2 client, with the ids `pN` and `tN`. */
export const ask = (n: number, more: object = {}) => ({
  type: 'prompt',
  content: `Hi ${n}`,
  promptId: `p${n}`,
  turnId: `t${n}`,
  ...more,
});

/** Ann has asked, and the agent has begun. */
export async function begin(rig: SessionRig) {
  const runner = rig.runner('r1');
  const ann = rig.client('ann');
  ann.say(ask(1));
  await settled();
  runner.chunks('t1', { type: 'start' });
  await settled();
  return { runner, ann, turnId: rig.turnIdOf('t1') };
}

export function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}
