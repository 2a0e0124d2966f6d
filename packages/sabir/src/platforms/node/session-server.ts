/** Sessions on Node: WebSockets in, one `SessionAgent` for each session that somebody is in. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
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
import { startTimeout, type Timer } from '../../core/timers.ts';
import { within } from '../../core/within.ts';
import { withText } from '../../core/without-content.ts';
import type { Role } from '../../gateway/index.ts';
import { isTrustedPage } from '../../gateway/origin.ts';
import {
  type ClientInfo,
  DEFAULT_LIMITS,
  SessionAgent,
  type SessionSocket,
  type SocketEvents,
} from '../../sessions/index.ts';
import { watchStore } from '../../sessions/watched-store.ts';
import type { User } from '../../turns/upstream.ts';
import { createConnectedUsers } from './connected-users.ts';
import { createLimitMetrics, createSessionMetrics } from './session-metrics.ts';
import {
  DEFAULT_SOCKET_LIMITS,
  DEFAULT_SOCKET_TIMING,
  type SessionServerOptions,
} from './session-server-options.ts';
import { toSessionSocket, watchSocket } from './session-sockets.ts';
import { refuse, sessionIdOf, toRequest, wishesOf, withProtocolToken } from './session-upgrade.ts';
import { createSocketCounts } from './socket-counts.ts';
import { createTokenBucket } from './token-bucket.ts';

export type { SessionServerOptions } from './session-server-options.ts';

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
  /** Closes all sockets of this user. Gateways' sockets are closed by their gateway. */
  disconnect(userId: string): void;
  /** Takes up what was under way when the process ended. Call it when runners can connect. */
  recover(): void;
  /** Takes no more prompts, waits for what runs, and lets everybody go. */
  close(shutdownMs?: number): Promise<void>;
};

const TOO_FAST = 4429;

type Admitted = { client: ClientInfo } | { runnerId: string | undefined };
type Upgrade = { incoming: IncomingMessage; raw: Duplex; head: Buffer };

export function createSessionServer(options: SessionServerOptions): SessionServer {
  const { metrics = createMetricRegistry() } = options;
  const logger = toSafeLogger(options.logger);
  const timing = { ...DEFAULT_SOCKET_TIMING, ...options.timing };
  const limits = { ...DEFAULT_LIMITS, ...DEFAULT_SOCKET_LIMITS, ...options.limits };
  const agents = new Map<string, SessionAgent>();
  const counted = createSessionMetrics(metrics, agents, options.store);
  const watched = watchStore(options.store, {
    onError: () => counted.storageErrors.add(),
    now: () => performance.now(),
  });
  const { store } = watched;
  const leaving = new Map<string, Timer>();
  // Each checks a frame's length by its header, before anything is kept of the frame.
  const viewerSockets = createSocketServer(limits.viewerMessageBytes);
  const writerSockets = createSocketServer(limits.promptBytes);
  const runnerSockets = createSocketServer(limits.runnerFrameBytes);
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
  let onQuiet: (() => void) | undefined;

  function agentOf(sessionId: string): SessionAgent {
    const known = agents.get(sessionId);
    if (known) return known;
    const agent = new SessionAgent({
      sessionId,
      storage: store.open(sessionId),
      timing,
      limits,
      onRunnerWanted: () => queueMicrotask(() => callRunner(sessionId)),
      onLimit: refused,
      onAudit: audit,
      onTurnEnd: (reason) => counted.turns.add({ reason }),
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
    const timer = startTimeout(timing.lingerMs, () => {
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
    const behind = await options.admitGateway?.(request, sessionId);
    if (behind) return { client: { ...behind, ...wishes, isGateway: true } };
    // As it came: a page can name any protocol it likes, so a token there proves nothing of it.
    if (!isTrustedPage(request, options.cors)) return ORIGIN_REFUSED;
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
    join: (agent: SessionAgent, socket: WebSocket) => void,
  ): void {
    const agent = enter(sessionId);
    let isThere = false;
    sockets.handleUpgrade(incoming, raw, head, (socket) => {
      isThere = true;
      join(agent, socket);
    });
    // It has gone in the meantime, or does not know how to.
    if (!isThere) lingerIfEmpty(agent);
  }

  function acceptRunner(upgrade: Upgrade, sessionId: string, runnerId: string | undefined): void {
    accept(upgrade, sessionId, runnerSockets, (agent, socket) => {
      const info = runnerId === undefined ? {} : { runnerId };
      const events = agent.connectRunner(toSessionSocket(socket, upgrade.raw), info);
      watchSocket(
        socket,
        withClose(events, () => lingerIfEmpty(agent)),
        timing,
      );
    });
  }

  function acceptClient(upgrade: Upgrade, sessionId: string, client: ClientInfo): void {
    const { user, role, isGateway } = client;
    const sockets = role === 'viewer' ? viewerSockets : writerSockets;
    accept(upgrade, sessionId, sockets, (agent, socket) => {
      const sessionSocket = toSessionSocket(socket, upgrade.raw);
      const uncount = isGateway ? undefined : openSockets.add(user.id, sessionId);
      const forget = isGateway
        ? undefined
        : users.add({ user, role, sessionId, socket: sessionSocket });
      const events = agent.connectClient(sessionSocket, client);
      // Nothing was sent yet: frames wait for the end of this tick.
      if (!isGateway) openSockets.spendInit(user.id, socket.bufferedAmount);
      const onClose = () => {
        uncount?.();
        forget?.();
        lingerIfEmpty(agent);
      };
      watchSocket(socket, withClose(events, onClose), {
        pingMs: timing.pingMs,
        onTooLarge: () => refused(role === 'viewer' ? 'viewerMessageBytes' : 'promptBytes'),
        ...(!isGateway && { allow: limitRate(sessionSocket) }),
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
    if (!('client' in admitted)) return acceptRunner(given, sessionId, admitted.runnerId);
    const { client } = admitted;
    const refusal = client.isGateway ? undefined : openSockets.refusalOf(client.user.id, sessionId);
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
    disconnect: users.disconnect,
    recover() {
      for (const sessionId of store.unfinished()) {
        try {
          lingerIfEmpty(agentOf(sessionId));
        } catch (error) {
          // One damaged session must not keep the server of all from starting.
          const { name } = error as Error;
          logger?.error('a session could not be recovered', { sessionId, error: name });
        }
      }
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
      for (const sockets of [viewerSockets, writerSockets, runnerSockets]) sockets.close();
    },
  };
}

function createSocketServer(maxPayload: number): WebSocketServer {
  return new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload,
    // The token is no protocol; the name beside it is.
    handleProtocols: (protocols) => (protocols.has('sabir') ? 'sabir' : false),
  });
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
