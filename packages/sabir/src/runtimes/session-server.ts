/** Sessions on Node: WebSockets in, one `SessionAgent` for each session that somebody is in. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import {
  type ErrorKind,
  INTERNAL_ERROR,
  NOT_FOUND,
  NOT_SIGNED_IN,
  ORIGIN_REFUSED,
  SHUTTING_DOWN,
} from '../errors.ts';
import type { Cors, Role } from '../gateway/index.ts';
import { isTrustedPage } from '../gateway/origin.ts';
import { createMetricRegistry, type MetricRegistry } from '../metrics.ts';
import { toSafeLogger } from '../safe-logger.ts';
import {
  type ClientInfo,
  SessionAgent,
  type SessionLimits,
  type SessionStore,
  type SessionTiming,
} from '../session/index.ts';
import { watchStore } from '../session/watched-store.ts';
import type { Logger } from '../translator.ts';
import { startTimeout, type Timer } from '../turns/timers.ts';
import type { User } from '../turns/upstream.ts';
import { withText } from '../without-content.ts';
import { toUrl } from './node-listener.ts';
import { createSessionMetrics } from './session-metrics.ts';
import { toSessionSocket, watchSocket } from './session-sockets.ts';

export type SessionServerOptions = {
  /** Where sessions are kept: `sqliteSessionStore({ file })`, or `memorySessionStore()`. */
  store: SessionStore;
  /** Who asks; null for nobody: the answer is 401. A gateway's own will do. */
  authenticate(request: Request): Promise<User | null> | User | null;
  /** What they may do in a session; null for nothing, or no such session: the answer is 404. */
  access(user: User, sessionId: string): Promise<Role | null> | Role | null;
  /** Whether this may be a session's runner. Default: nobody may. */
  admitRunner?(request: Request, sessionId: string): Promise<boolean> | boolean;
  /** A session has something to do, and no runner. */
  onRunnerWanted?(sessionId: string): void;
  /** A session was let go: nobody is in it, and nothing runs. */
  onSessionClosed?(sessionId: string): void;
  /** Pages of other origins that may connect. */
  cors?: Cors;
  timing?: Partial<SessionTiming & { pingMs: number; lingerMs: number }>;
  limits?: Partial<SessionLimits & { runnerFrameBytes: number }>;
  /**
   * Where this server's metrics are registered. Share it with the gateway on the same port.
   *
   * @default a registry of its own
   */
  metrics?: MetricRegistry;
  logger?: Logger;
};

export type SessionServer = {
  /** For a server's `upgrade` event. Takes `/api/sessions/:id/ws`, and refuses the rest. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** How many sessions are in memory. */
  readonly sessionCount: number;
  /** How many clients are in them. */
  readonly clientCount: number;
  readonly metrics: MetricRegistry;
  /** Why no more sessions should be sent here; empty while all is well. For a gateway's `ready`. */
  problems(): string[];
  /** Takes up what was under way when the process ended. Call it when runners can connect. */
  recover(): void;
  /** Takes no more prompts, waits for what runs, and lets everybody go. */
  close(shutdownMs?: number): Promise<void>;
};

const ADDRESS = /^\/api\/sessions\/([^/]+)\/ws$/;
const SIGNED_OUT = 4401;
const REASONS: Record<number, string> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};

export function createSessionServer(options: SessionServerOptions): SessionServer {
  const { timing = {}, limits = {}, metrics = createMetricRegistry() } = options;
  const logger = toSafeLogger(options.logger);
  const { pingMs = 30_000, lingerMs = 60_000 } = timing;
  const agents = new Map<string, SessionAgent>();
  const counts = createSessionMetrics(metrics, agents, options.store);
  const watched = watchStore(options.store, {
    onError: () => counts.storageErrors.add(),
    now: () => performance.now(),
  });
  const { store } = watched;
  const leaving = new Map<string, Timer>();
  const maxPayload = Math.max(limits.promptBytes ?? 0, limits.runnerFrameBytes ?? 64_000_000);
  const sockets = new WebSocketServer({
    ...{ noServer: true, perMessageDeflate: false, maxPayload },
    // The token is no protocol; the name beside it is.
    handleProtocols: (protocols) => (protocols.has('sabir') ? 'sabir' : false),
  });
  let isClosing = false;
  let onQuiet: (() => void) | undefined;

  function agentOf(sessionId: string): SessionAgent {
    const known = agents.get(sessionId);
    if (known) return known;
    const agent = new SessionAgent({
      ...{ sessionId, storage: store.open(sessionId), timing, limits },
      onRunnerWanted: () => queueMicrotask(() => callRunner(sessionId)),
      onTurnEnd: (reason) => counts.turns.add({ reason }),
      onIdle: () => {
        lingerIfEmpty(agent);
        if (isClosing && isQuiet()) onQuiet?.();
      },
      ...(logger && { logger }),
    });
    agents.set(sessionId, agent);
    return agent;
  }

  function callRunner(sessionId: string): void {
    try {
      options.onRunnerWanted?.(sessionId);
    } catch (error) {
      logger?.error('no runner could be called', { sessionId, error: withText(error) });
    }
  }

  function isQuiet(): boolean {
    return [...agents.values()].every(({ isIdle }) => isIdle);
  }

  /** A session that nobody is in is kept for a moment: a reload comes back at once. */
  function lingerIfEmpty(agent: SessionAgent): void {
    const { sessionId } = agent;
    if (isClosing || agent.clientCount > 0 || !agent.isIdle) return;
    leaving.get(sessionId)?.clear();
    const timer = startTimeout(lingerMs, () => {
      leaving.delete(sessionId);
      if (agent.clientCount > 0 || !agent.isIdle) return;
      agents.delete(sessionId);
      agent.close();
      options.onSessionClosed?.(sessionId);
    });
    leaving.set(sessionId, timer);
  }

  function enter(sessionId: string): SessionAgent {
    leaving.get(sessionId)?.clear();
    leaving.delete(sessionId);
    return agentOf(sessionId);
  }

  async function admit(request: Request, sessionId: string): Promise<Admitted | ErrorKind> {
    const { searchParams } = new URL(request.url);
    if (searchParams.get('role') === 'runner') {
      const runnerId = searchParams.get('runnerId') ?? undefined;
      return (await options.admitRunner?.(request, sessionId)) ? { runnerId } : NOT_FOUND;
    }
    // As it came: a page can name any protocol it likes, so a token there proves nothing of it.
    if (!isTrustedPage(request, options.cors)) return ORIGIN_REFUSED;
    const user = await options.authenticate(withProtocolToken(request));
    if (!user || (user.expiresAt ?? Infinity) <= Date.now()) return NOT_SIGNED_IN;
    const role = await options.access(user, sessionId);
    return role ? { user, role, ...wishesOf(searchParams) } : NOT_FOUND;
  }

  function accept(
    incoming: IncomingMessage,
    raw: Duplex,
    head: Buffer,
    join: (agent: SessionAgent, socket: ReturnType<typeof toSessionSocket>) => SocketEventsOf,
    { sessionId, expiresAt }: { sessionId: string; expiresAt: number | undefined },
  ): void {
    const agent = enter(sessionId);
    let isThere = false;
    sockets.handleUpgrade(incoming, raw, head, (socket) => {
      isThere = true;
      const sessionSocket = toSessionSocket(socket, raw);
      const events = join(agent, sessionSocket);
      const expiry =
        expiresAt === undefined
          ? undefined
          : startTimeout(expiresAt - Date.now(), () => {
              sessionSocket.close(SIGNED_OUT, 'the sign-in has expired');
            });
      const close = () => {
        expiry?.clear();
        events.close();
        lingerIfEmpty(agent);
      };
      watchSocket(socket, { message: events.message, close }, pingMs);
    });
    // It has gone in the meantime, or does not know how to.
    if (!isThere) lingerIfEmpty(agent);
  }

  async function upgrade(incoming: IncomingMessage, raw: Duplex, head: Buffer): Promise<void> {
    const request = toRequest(incoming);
    const found = ADDRESS.exec(new URL(request.url).pathname)?.[1];
    const sessionId = found === undefined ? undefined : decode(found);
    const admitted = sessionId === undefined ? NOT_FOUND : await admit(request, sessionId);
    if ('code' in admitted || sessionId === undefined || isClosing) {
      refuse(raw, isClosing ? SHUTTING_DOWN : 'code' in admitted ? admitted : NOT_FOUND);
      return;
    }
    const expiresAt = 'user' in admitted ? admitted.user.expiresAt : undefined;
    accept(
      ...([incoming, raw, head] as const),
      (agent, socket) =>
        'user' in admitted
          ? agent.connectClient(socket, admitted)
          : agent.connectRunner(socket, toRunnerInfo(admitted)),
      { sessionId, expiresAt },
    );
  }

  return {
    upgrade(incoming, raw, head) {
      // It may go away while we ask who it is, and while it is told that it may not come in.
      raw.on('error', () => raw.destroy());
      upgrade(incoming, raw, head).catch((error: unknown) => {
        logger?.error('a connection could not be accepted', { error });
        refuse(raw, INTERNAL_ERROR);
      });
    },
    get sessionCount() {
      return agents.size;
    },
    get clientCount() {
      return [...agents.values()].reduce((sum, { clientCount }) => sum + clientCount, 0);
    },
    metrics,
    problems: () => [
      ...(isClosing ? ['closing'] : []),
      ...(watched.isFailing ? ['storage-failing'] : []),
    ],
    recover() {
      for (const sessionId of store.unfinished()) lingerIfEmpty(agentOf(sessionId));
    },
    async close(shutdownMs = 5_000) {
      isClosing = true;
      for (const timer of leaving.values()) timer.clear();
      for (const agent of agents.values()) agent.drain();
      if (!isQuiet()) {
        const { promise, resolve } = Promise.withResolvers<void>();
        onQuiet = resolve;
        const timer = startTimeout(shutdownMs, resolve);
        await promise;
        timer.clear();
      }
      for (const agent of agents.values()) agent.close();
      agents.clear();
      sockets.close();
    },
  };
}

type SocketEventsOf = ReturnType<SessionAgent['connectClient']>;
type Admitted = ClientInfo | { runnerId: string | undefined };

function toRunnerInfo({ runnerId }: { runnerId?: string | undefined }): { runnerId?: string } {
  return runnerId === undefined ? {} : { runnerId };
}

/** What a client wants to be told, by its address. */
function wishesOf(params: URLSearchParams): Partial<ClientInfo> {
  const channelType = params.get('channelType');
  const channelId = params.get('channelId');
  const messages = params.get('messages');
  return {
    ...(channelType && channelId && { channel: { channelType, channelId } }),
    ...(params.get('dialect') === 'v2' && { hasSnapshots: false }),
    ...(messages !== null && /^\d{1,6}$/.test(messages) && { messages: Number(messages) }),
  };
}

/** Browsers can send no header with a WebSocket: there the token comes as a protocol. */
function withProtocolToken(request: Request): Request {
  const protocols = (request.headers.get('sec-websocket-protocol') ?? '').split(/,\s*/);
  const token = protocols.find((protocol) => protocol.startsWith('bearer.'));
  if (!token || request.headers.has('authorization')) return request;
  const headers = new Headers(request.headers);
  headers.set('authorization', `Bearer ${token.slice('bearer.'.length)}`);
  return new Request(request.url, { headers });
}

function toRequest(incoming: IncomingMessage): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return new Request(toUrl(incoming), { headers });
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}

function refuse(socket: Duplex, { status, code, userMessage, remedy }: ErrorKind): void {
  const body = JSON.stringify({ code, message: userMessage, remedy });
  socket.end(
    `HTTP/1.1 ${status} ${REASONS[status] ?? 'Refused'}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}
