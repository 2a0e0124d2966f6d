/** Sessions, their agents and a gateway in one process on one port. */
import { createMetricRegistry } from '../../core/metrics.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import {
  type ChatGateway,
  type ChatGatewayOptions,
  createChatGateway,
  type Role,
} from '../../gateway/index.ts';
import type { Agent, AgentFunction, SessionStore } from '../../sessions/index.ts';
import type { User } from '../../turns/upstream.ts';
import { toUpgradeListener } from './chat-upgrade.ts';
import { isLoopback, refuseRebound } from './loopback.ts';
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
  /** Makes the agent of a session, when there is something to do. */
  agent(sessionId: string): Agent | AgentFunction;
  /** Who asks. Default: everybody who can reach the port is the same person, `local`. */
  authenticate?(request: Request): Promise<User | null> | User | null;
  /** What they may do in a session. Default: whoever is let in is an owner. */
  access?(user: User, sessionId: string): Promise<Role | null> | Role | null;
  /** Whether this may be the runner of a session, instead of the agent in this process. Default: no runner is admitted. */
  admitRunner?(request: Request, sessionId: string): Promise<boolean> | boolean;
  /** For whom a gateway elsewhere has connected, by what it proves. Default: no gateway is admitted. */
  admitGateway?: SessionServerOptions['admitGateway'];
  /** Asked before the gateway: for what it gives nothing, the gateway answers. */
  fetch?(request: Request, info: RequestInfo): Response | undefined | Promise<Response | undefined>;
  /** What else the gateway is to know. */
  gateway?: Omit<
    ChatGatewayOptions,
    'upstream' | 'sessions' | 'log' | 'authenticate' | 'access' | 'logger'
  >;
  sessions?: Pick<SessionServerOptions, 'timing' | 'limits' | 'cors' | 'onAudit' | 'log'>;
  /** How long `close` lets turns go on. Default 5,000. */
  shutdownMs?: number;
  logger?: Logger;
};

export type SessionStack = {
  url: string;
  port: number;
  gateway: ChatGateway;
  sessions: SessionServer;
  /** Takes no more prompts, lets turns end, and lets everything go. */
  close(): Promise<void>;
};

const LOCAL = { id: 'local' };

/**
 * Starts everything a chat on agents needs. Gateway, session and agent call each other: there is no socket between them,
 * and one log.
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
  const { admitRunner, admitGateway } = options;
  const metrics = options.gateway?.metrics ?? createMetricRegistry();
  const { errorText } = options.gateway ?? {};

  const sessions = createSessionServer({
    ...options.sessions,
    store,
    agent,
    metrics,
    authenticate,
    access,
    ...(admitRunner && { admitRunner }),
    ...(admitGateway && { admitGateway }),
    ...(errorText && { errorText: (error) => errorText(error) }),
    ...(logger && { logger }),
  });
  const gateway = createChatGateway({
    ...options.gateway,
    sessions: sessions.sessions,
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

  const upgrade: ChatGateway['upgrade'] = async (request, info) =>
    (isForThisMachine && refuseRebound(request)) || gateway.upgrade(request, info);
  const logging = logger && { logger };
  let server: RunningServer;
  try {
    server = await serve({
      fetch,
      port,
      host,
      shutdownMs,
      upgrade: toUpgradeListener({ upgrade }, { otherwise: sessions.upgrade, ...logging }),
      ...logging,
    });
  } catch (error) {
    await Promise.all([gateway.close(), sessions.close(0)]);
    throw error;
  }
  sessions.recover();
  const stopWatching = watchProcess(metrics);

  let closing: Promise<void> | undefined;
  return {
    url: server.url,
    port: server.port,
    gateway,
    sessions,
    close() {
      closing ??= (async () => {
        await Promise.all([gateway.close(), sessions.close(shutdownMs)]);
        await server.close();
        stopWatching();
      })();
      return closing;
    },
  };
}
