/** A `SessionAgent` with sockets and a clock that the test holds in its hands. */
import {
  type Clock,
  memorySessionStore,
  SessionAgent,
  type SessionAgentOptions,
  type SessionSocket,
  type SocketEvents,
} from '../src/sessions/index.ts';

type Event = { type: string; [field: string]: unknown };

export function createTestClock(): Clock & { pass(ms: number): void } {
  let now = 1_800_000_000_000;
  const waiting = new Set<{ at: number; run: () => void }>();
  return {
    now: () => now,
    after(ms, run) {
      const entry = { at: now + ms, run };
      waiting.add(entry);
      return () => waiting.delete(entry);
    },
    pass(ms) {
      const until = now + ms;
      for (;;) {
        const [next] = [...waiting].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
        if (!next) break;
        waiting.delete(next);
        now = Math.max(now, next.at);
        next.run();
      }
      now = until;
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
};

function createTestSocket(connect: (socket: SessionSocket) => SocketEvents): TestSocket {
  let session!: SocketEvents;
  const socket: TestSocket = {
    events: [],
    buffered: 0,
    get bufferedAmount() {
      return socket.buffered;
    },
    send: (frame) => void socket.events.push(JSON.parse(frame)),
    close(code, reason) {
      if (socket.closed) return;
      socket.closed = { code, reason };
      session?.close();
    },
    say: (message) =>
      session.message(typeof message === 'string' ? message : JSON.stringify(message)),
    drop: () => session.close(),
    of: (type) => socket.events.filter((event) => event.type === type),
    last: (type) => socket.events.findLast((event) => event.type === type),
  };
  session = connect(socket);
  return socket;
}

export type SessionRig = ReturnType<typeof createSessionRig>;

export function createSessionRig(options: Partial<SessionAgentOptions> = {}) {
  const clock = createTestClock();
  const store = memorySessionStore();
  let wanted = 0;
  const open = () =>
    new SessionAgent({
      sessionId: 's',
      storage: store.open('s'),
      clock,
      onRunnerWanted: () => void wanted++,
      ...options,
    });
  let agent = open();
  return {
    clock,
    store,
    get storage() {
      return store.open('s');
    },
    get agent() {
      return agent;
    },
    get runnersWanted() {
      return wanted;
    },
    /** The process ends without a word, and another one begins. */
    restart(): void {
      agent = open();
    },
    client: (
      id = 'ann',
      info: Partial<Parameters<SessionAgent['connectClient']>[1]> = {},
    ): TestSocket =>
      createTestSocket((socket) =>
        agent.connectClient(socket, { user: { id, name: id }, role: 'collaborator', ...info }),
      ),
    /** One of ours, which has said hello; or one of another make, which never does. */
    runner(runnerId: string | undefined = 'r1', hello: object | null = {}): TestSocket {
      const socket = createTestSocket((given) =>
        agent.connectRunner(given, runnerId === undefined ? {} : { runnerId }),
      );
      if (runnerId !== undefined && hello) {
        socket.say({ type: 'runner.hello', turnId: null, known: [], ...hello });
      }
      return socket;
    },
    foreignRunner: (): TestSocket => createTestSocket((given) => agent.connectRunner(given)),
  };
}

/** Everything that is told after this tick has been told. */
export const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
