/** Sessions on Node: the WebSockets of V2 clients, runners and gateways. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import { createAudit } from '../../core/audit.ts';
import {
  type ErrorKind,
  HOOK_TIMEOUT,
  INTERNAL_ERROR,
  NOT_FOUND,
  NOT_SIGNED_IN,
  ORIGIN_REFUSED,
  SabirError,
  SHUTTING_DOWN,
  SOCKETS_FULL,
  TOO_MANY_MESSAGES,
} from '../../core/errors.ts';
import { createMetricRegistry, type MetricRegistry } from '../../core/metrics.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import { createTokenBucket } from '../../core/token-bucket.ts';
import { within } from '../../core/within.ts';
import type { Role } from '../../gateway/index.ts';
import { isTrustedPage, reportPage } from '../../gateway/origin.ts';
import { withProtocolToken } from '../../gateway/protocol-token.ts';
import { type ClientInfo, V2Sockets } from '../../gateway/v2/sockets.ts';
import {
  createSessions,
  DEFAULT_LIMITS,
  type GatewayInfo,
  type Session,
  SessionLinks,
  type SessionSocket,
  type Sessions,
  type SocketEvents,
} from '../../sessions/index.ts';
import type { User } from '../../turns/upstream.ts';
import { createConnectedUsers } from './connected-users.ts';
import { createLimitMetrics, createSessionMetrics } from './session-metrics.ts';
import {
  DEFAULT_SOCKET_LIMITS,
  DEFAULT_SOCKET_TIMING,
  type SessionServerOptions,
} from './session-server-options.ts';
import { createSocketServer, toSessionSocket, watchSocket } from './session-sockets.ts';
import { refuse, sessionIdOf, toRequest, wishesOf } from './session-upgrade.ts';
import { createSocketCounts } from './socket-counts.ts';

export type { SessionServerOptions } from './session-server-options.ts';

export type SessionServer = {
  /** For a server's `upgrade` event. Takes `/api/sessions/:id/ws`, and refuses the rest. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** The sessions themselves: a gateway in the same process uses them without a socket. */
  readonly sessions: Sessions;
  /** How many V2 clients are connected. */
  readonly clientCount: number;
  readonly metrics: MetricRegistry;
  /** Why no more sessions should be sent here; empty while all is well. For a gateway's `ready`. */
  problems(): string[];
  /** Closes all sockets of this user. Gateways' sockets are closed by their gateway. */
  disconnect(userId: string): void;
  /** Takes up what was under way when the process ended. Call it when runners can connect. */
  recover(): void;
  /** Takes no more prompts, waits for what runs, and lets everybody go. */
  close(shutdownMs?: number): Promise<void>;
};

const TOO_FAST = 4429;

type Admitted =
  | { client: ClientInfo }
  | { gateway: GatewayInfo }
  | { runnerId: string | undefined };
/** The sockets of one session. */
type SessionDoors = { v2: V2Sockets; links: SessionLinks };
type Upgrade = { incoming: IncomingMessage; raw: Duplex; head: Buffer };

export function createSessionServer(options: SessionServerOptions): SessionServer {
  const { metrics = createMetricRegistry() } = options;
  const logger = toSafeLogger(options.logger);
  const timing = { ...DEFAULT_SOCKET_TIMING, ...options.timing };
  const limits = { ...DEFAULT_LIMITS, ...DEFAULT_SOCKET_LIMITS, ...options.limits };
  const doors = new Map<string, SessionDoors>();
  const counted = createSessionMetrics(
    metrics,
    () => sessions.all(),
    () => clientCount(),
    options.store,
  );
  // Each checks a frame's length by its header, before anything is kept of the frame.
  const viewerSockets = createSocketServer(limits.viewerMessageBytes);
  const writerSockets = createSocketServer(limits.promptBytes);
  const runnerSockets = createSocketServer(limits.runnerFrameBytes);
  /** A runner or a gateway that writes and does not read: each frame may have an answer. */
  const unreadBytes = limits.runnerFrameBytes;
  const openSockets = createSocketCounts(limits);
  const users = createConnectedUsers({
    access: (user, sessionId) =>
      within(timing.hookMs, accessOf(user, sessionId), () => {
        throw new SabirError(HOOK_TIMEOUT);
      }),
    accessCheckMs: timing.accessCheckMs,
    logger,
  });
  const audit = createAudit(options.onAudit, logger);
  let pendingUpgrades = 0;
  const refused = createLimitMetrics(metrics, limits, {
    sockets: () => openSockets.total,
    socketsPerUser: openSockets.mostOfUser,
    socketsPerSession: openSockets.mostInSession,
    pendingUpgrades: () => pendingUpgrades,
  });
  let isClosing = false;
  const { agent, log, errorText } = options;
  const sessions = createSessions({
    store: options.store,
    timing,
    limits,
    onLimit: refused,
    onStorageError: () => counted.storageErrors.add(),
    onNotice(notice) {
      if (notice.type === 'ended') counted.turns.add({ outcome: notice.outcome.status });
    },
    onSessionClosed(sessionId) {
      closeDoors(sessionId);
      options.onSessionClosed?.(sessionId);
    },
    ...(options.onRunnerWanted && {
      onRunnerWanted: (sessionId) => options.onRunnerWanted?.(sessionId),
    }),
    ...(agent && { agent: (sessionId) => agent(sessionId) }),
    ...(log && { log }),
    ...(errorText && { errorText }),
    ...(logger && { logger }),
  });

  function doorsOf(session: Session): SessionDoors {
    const { sessionId } = session;
    const known = doors.get(sessionId);
    if (known) return known;
    const logging = logger && { logger };
    const made = {
      v2: new V2Sockets(session, { onAudit: audit, onLimit: refused, ...logging }),
      links: new SessionLinks(session, { ...logging }),
    };
    doors.set(sessionId, made);
    return made;
  }

  function closeDoors(sessionId: string): void {
    const { v2, links } = doors.get(sessionId) ?? {};
    doors.delete(sessionId);
    v2?.close();
    links?.close();
  }

  function clientCount(): number {
    return [...doors.values()].reduce((sum, { v2 }) => sum + v2.size, 0);
  }

  async function accessOf(user: User, sessionId: string): Promise<Role | null> {
    return options.access(user, sessionId);
  }

  async function admit(request: Request, sessionId: string): Promise<Admitted | ErrorKind> {
    const { searchParams } = new URL(request.url);
    if (searchParams.get('role') === 'runner') {
      const runnerId = searchParams.get('runnerId') ?? undefined;
      return (await options.admitRunner?.(request, sessionId)) ? { runnerId } : NOT_FOUND;
    }
    const wishes = wishesOf(searchParams);
    if (searchParams.get('role') === 'gateway') {
      const gateway = await options.admitGateway?.(request, sessionId);
      return gateway ? { gateway } : NOT_FOUND;
    }
    // As it came: a page can name any protocol it likes, so a token there proves nothing of it.
    if (!isTrustedPage(request, options.cors)) {
      reportPage(request, options.cors);
      return ORIGIN_REFUSED;
    }
    const user = await options.authenticate(withProtocolToken(request));
    if (!user || (user.expiresAt ?? Infinity) <= Date.now()) return NOT_SIGNED_IN;
    const role = await accessOf(user, sessionId);
    return role ? { client: { user, role, ...wishes } } : NOT_FOUND;
  }

  /** Decides about an upgrade; not about too many at once. */
  async function decide(request: Request, sessionId: string): Promise<Admitted | ErrorKind> {
    if (pendingUpgrades >= limits.pendingUpgrades) {
      refused('pendingUpgrades');
      return SOCKETS_FULL;
    }
    pendingUpgrades++;
    try {
      return await within(timing.hookMs, admit(request, sessionId), () => {
        logger?.error?.('a hook took too long to decide about a connection', { sessionId });
        return HOOK_TIMEOUT;
      });
    } finally {
      pendingUpgrades--;
    }
  }

  function accept(
    { incoming, raw, head }: Upgrade,
    sessionId: string,
    sockets: WebSocketServer,
    join: (session: Session, socket: WebSocket, release: () => void) => void,
    holder: 'user' | 'runner' = 'user',
  ): void {
    const { session, release } = sessions.hold(sessionId, holder);
    let isThere = false;
    sockets.handleUpgrade(incoming, raw, head, (socket) => {
      isThere = true;
      join(session, socket, release);
    });
    // It has gone in the meantime, or does not know how to.
    if (!isThere) release();
  }

  function acceptRunner(upgrade: Upgrade, sessionId: string, runnerId: string | undefined): void {
    const join = (session: Session, socket: WebSocket, release: () => void) => {
      const info = runnerId === undefined ? {} : { runnerId };
      const events = session.connectRunner(toSessionSocket(socket, upgrade.raw), info);
      watchSocket(socket, withClose(events, release), { pingMs: timing.pingMs, unreadBytes });
    };
    accept(upgrade, sessionId, runnerSockets, join, 'runner');
  }

  function acceptGateway(upgrade: Upgrade, sessionId: string, gateway: GatewayInfo): void {
    accept(upgrade, sessionId, writerSockets, (session, socket, release) => {
      const sessionSocket = toSessionSocket(socket, upgrade.raw);
      const events = doorsOf(session).links.connect(sessionSocket, gateway);
      watchSocket(socket, withClose(events, release), {
        pingMs: timing.pingMs,
        unreadBytes,
        onTooLarge: () => refused('promptBytes'),
      });
    });
  }

  function acceptClient(upgrade: Upgrade, sessionId: string, client: ClientInfo): void {
    const { user, role } = client;
    const sockets = role === 'viewer' ? viewerSockets : writerSockets;
    accept(upgrade, sessionId, sockets, (session, socket, release) => {
      const sessionSocket = toSessionSocket(socket, upgrade.raw);
      const uncount = openSockets.add(user.id, sessionId);
      const forget = users.add({ user, role, sessionId, socket: sessionSocket });
      const onInit = (bytes: number) => openSockets.spendInit(user.id, bytes);
      const events = doorsOf(session).v2.connect(sessionSocket, { ...client, onInit });
      const onClose = () => {
        uncount();
        forget();
        release();
      };
      watchSocket(socket, withClose(events, onClose), {
        pingMs: timing.pingMs,
        onTooLarge: () => refused(role === 'viewer' ? 'viewerMessageBytes' : 'promptBytes'),
        allow: limitRate(sessionSocket),
      });
    });
  }

  /** Allows so many messages; then says why, and closes the socket. */
  function limitRate(socket: SessionSocket): () => boolean {
    const take = createTokenBucket(limits.messagesPerSecond);
    const { code, userMessage: error } = TOO_MANY_MESSAGES;
    return () => {
      if (take()) return true;
      refused('messagesPerSecond');
      socket.send(JSON.stringify({ type: 'error', refused: '', code, error }));
      socket.close(TOO_FAST, 'too many messages');
      return false;
    };
  }

  async function upgrade(incoming: IncomingMessage, raw: Duplex, head: Buffer): Promise<void> {
    const request = toRequest(incoming);
    const sessionId = sessionIdOf(request);
    if (sessionId === undefined) return refuse(raw, NOT_FOUND);
    const admitted = await decide(request, sessionId);
    if (isClosing) return refuse(raw, SHUTTING_DOWN);
    if ('code' in admitted) return refuse(raw, admitted);
    const given = { incoming, raw, head };
    if ('gateway' in admitted) return acceptGateway(given, sessionId, admitted.gateway);
    if (!('client' in admitted)) return acceptRunner(given, sessionId, admitted.runnerId);
    const { client } = admitted;
    const refusal = openSockets.refusalOf(client.user.id, sessionId);
    if (refusal) {
      refused(refusal.limit);
      return refuse(raw, refusal.kind);
    }
    acceptClient(given, sessionId, client);
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
    sessions,
    get clientCount() {
      return clientCount();
    },
    metrics,
    problems: sessions.problems,
    disconnect: users.disconnect,
    recover: sessions.recover,
    async close(shutdownMs = 5_000) {
      isClosing = true;
      await sessions.close(shutdownMs);
      for (const sessionId of [...doors.keys()]) closeDoors(sessionId);
      for (const sockets of [viewerSockets, writerSockets, runnerSockets]) sockets.close();
    },
  };
}

function withClose(events: SocketEvents, onClose: () => void): SocketEvents {
  return {
    message: events.message,
    close() {
      events.close();
      onClose();
    },
  };
}
