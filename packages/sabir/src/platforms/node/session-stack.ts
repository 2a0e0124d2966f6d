/** Session server, runners and gateway in one process on one port. */
import { WebSocket } from 'ws';
import { createMetricRegistry } from '../../core/metrics.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import {
  type ChatGateway,
  type ChatGatewayOptions,
  createChatGateway,
  type Role,
} from '../../gateway/index.ts';
import type { RunnerOptions, SessionStore } from '../../sessions/index.ts';
import { agentOpsUpstream } from '../../sources/agent-ops/index.ts';
import type { User } from '../../turns/upstream.ts';
import { createLocalRunners, type LocalRunners } from './local-runners.ts';
import { isLoopback, refuseRebound } from './loopback.ts';
import { createPasses } from './passes.ts';
import { watchProcess } from './process-metrics.ts';
import { type Fetch, type RequestInfo, type RunningServer, serve } from './serve.ts';
import {
  createSessionServer,
  type SessionServer,
  type SessionServerOptions,
} from './session-server.ts';

export type SessionStackOptions = {
  /** Default 0: any that is free. */
  port?: number;
  /** Default 127.0.0.1: this machine only. */
  host?: string;
  store: SessionStore;
  /** The agent of a session; made when there is something to do. */
  agent(sessionId: string): RunnerOptions['agent'];
  /** Who asks. Default: everybody who can reach the port is the same person, `local`. */
  authenticate?(request: Request): Promise<User | null> | User | null;
  /** What they may do in a session. Default: whoever is let in is an owner. */
  access?(user: User, sessionId: string): Promise<Role | null> | Role | null;
  /** Whether this may be the runner of a session, beside those in this process. Default: nobody. */
  admitRunner?(request: Request, sessionId: string): Promise<boolean> | boolean;
  /** Asked before the gateway: for what it gives nothing, the gateway answers. */
  fetch?(request: Request, info: RequestInfo): Response | undefined | Promise<Response | undefined>;
  /** What else the gateway is to know. */
  gateway?: Omit<ChatGatewayOptions, 'upstream' | 'authenticate' | 'access' | 'logger'>;
  sessions?: Pick<SessionServerOptions, 'timing' | 'limits' | 'cors' | 'onAudit'>;
  /** How long `close` lets turns go on. Default 5,000. */
  shutdownMs?: number;
  logger?: Logger;
};

export type SessionStack = {
  url: string;
  port: number;
  gateway: ChatGateway;
  sessions: SessionServer;
  runners: LocalRunners;
  /** Takes no more prompts, lets turns end, and lets everything go. */
  close(): Promise<void>;
};

const LOCAL = { id: 'local' };

/**
 * Starts everything a chat on agents needs. What a page sends goes to the gateway, from there over
 * a WebSocket to the session, and from that over another one to its runner: the same way as if each
 * were on a machine of its own.
 *
 * @example
 * const { url, close } = await startSessionStack({ store, agent: () => openCodeAgent() });
 */
export async function startSessionStack(options: SessionStackOptions): Promise<SessionStack> {
  const { store, agent, port = 0, host = '127.0.0.1', shutdownMs = 5_000 } = options;
  const logger = toSafeLogger(options.logger);
  const isForThisMachine = !options.authenticate && isLoopback(host);
  // Everybody who can reach the port is the same person.
  const anybody = (request: Request) => (isForThisMachine && refuseRebound(request) ? null : LOCAL);
  const { authenticate = anybody, access = () => 'owner' as const } = options;
  const passes = createPasses();
  const metrics = options.gateway?.metrics ?? createMetricRegistry();
  let own = '';

  const sessions = createSessionServer({
    ...options.sessions,
    store,
    metrics,
    authenticate,
    access,
    admitGateway: (request, sessionId) => passes.read(tokenOf(request), sessionId),
    admitRunner: (request, sessionId) =>
      passes.isRunner(tokenOf(request)) || (options.admitRunner?.(request, sessionId) ?? false),
    onRunnerWanted: (sessionId) => runners.call(sessionId),
    onSessionClosed: (sessionId) => runners.dismiss(sessionId),
    ...(logger && { logger }),
  });
  const gateway = createChatGateway({
    ...options.gateway,
    upstream: agentOpsUpstream({
      url: (sessionId) => `${own}/api/sessions/${encodeURIComponent(sessionId)}/ws?role=client`,
      token: passes.of,
      WebSocket,
      isSessionServer: true,
      maxEventBytes: 64_000_000,
    }),
    authenticate,
    access,
    timing: { shutdownMs, ...options.gateway?.timing },
    metrics,
    ready: async () => [...sessions.problems(), ...((await options.gateway?.ready?.()) ?? [])],
    ...(logger && { logger }),
  });

  const fetch: Fetch = async (request, info) =>
    (isForThisMachine && refuseRebound(request)) ||
    ((await options.fetch?.(request, info)) ?? gateway.fetch(request, info));

  let server: RunningServer;
  try {
    server = await serve({
      fetch,
      port,
      host,
      shutdownMs,
      upgrade: sessions.upgrade,
      // A pass is as long as the token it stands for, and longer.
      maxHeaderBytes: 64_000,
      ...(logger && { logger }),
    });
  } catch (error) {
    await Promise.all([gateway.close(), sessions.close(0)]);
    throw error;
  }
  own = `http://${toOwnHost(host)}:${server.port}`;
  const runners = createLocalRunners({
    agent,
    url: own,
    token: passes.runner,
    ...(logger && { logger }),
  });
  sessions.recover();
  const stopWatching = watchProcess(metrics);

  let closing: Promise<void> | undefined;
  return {
    url: server.url,
    port: server.port,
    gateway,
    sessions,
    runners,
    close() {
      closing ??= (async () => {
        await Promise.all([gateway.close(), sessions.close(shutdownMs)]);
        await runners.close();
        await server.close();
        stopWatching();
      })();
      return closing;
    },
  };
}

function tokenOf({ headers }: Request): string | undefined {
  return /^Bearer (.+)$/i.exec(headers.get('authorization') ?? '')?.[1];
}

/** Where this process reaches itself. */
function toOwnHost(host: string): string {
  if (host === '0.0.0.0' || host === '') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
