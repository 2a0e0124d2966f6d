/** `createChatGateway`: the only file that knows URLs. */
import {
  METHOD_NOT_ALLOWED,
  NOT_FOUND,
  SabirError,
  SHUTTING_DOWN,
  UPSTREAM_UNREACHABLE,
} from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { createMetricRegistry } from '../core/metrics.ts';
import { toSafeLogger } from '../core/safe-logger.ts';
import { withoutContent } from '../core/without-content.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import { waitsFor } from '../turns/turn-progress.ts';
import { createGuard } from './access.ts';
import { createAdmission } from './admission.ts';
import { createChatAudit } from './chat-audit.ts';
import { type ChatRoute, createSessionRoute } from './chat-route.ts';
import { type ChatUpgrade, createChatSockets } from './chat-sockets.ts';
import { createChatVerbs } from './chat-verbs.ts';
import { createContractRoute } from './contract-route.ts';
import { corsHeaders } from './cors.ts';
import { createGatewayTurns } from './gateway-turns.ts';
import { createRunHook, loggable } from './hook-error.ts';
import { createGatewayMetrics } from './metrics.ts';
import { createOpenStreams } from './open-streams.ts';
import { type ChatGatewayOptions, DEFAULT_LIMITS, DEFAULT_TIMING } from './options.ts';
import { createOwedReplays } from './owed-replays.ts';
import { createReadiness } from './readiness.ts';
import { json, toErrorResponse } from './responses.ts';
import { createSessionReads } from './session-reads.ts';
import { createSleepWatch } from './sleep-watch.ts';
import { createSteering } from './steer.ts';
import { createViewers } from './viewers.ts';
import type { Visit } from './visit.ts';

export interface ChatGateway {
  /** `address` is where the request comes from: `serve` and `toNodeListener` of `sabir/node` give it. */
  fetch(request: Request, info?: { address?: string }): Promise<Response>;
  /**
   * Decides about a WebSocket of AI SDK 7's `WebSocketChatTransport`, which is opened at the address that messages are
   * POSTed to. Gives a refusal, or what serves the socket; undefined where no chat is at this address.
   * `toUpgradeListener` of `sabir/node` calls it.
   */
  upgrade(
    request: Request,
    info?: { address?: string },
  ): Promise<ChatUpgrade | Response | undefined>;
  /**
   * Ends a person's streams and WebSockets in this process at once, and uses their connections to agents for nothing new. Their turns go
   * on. A client that comes back is asked who it is, and `access` what it may do, as for any request.
   */
  disconnect(userId: string): void;
  /** Takes nothing new, waits a while for what runs, then lets go of everything. */
  close(): Promise<void>;
}

type Route = { method: 'GET' | 'POST'; handle(visit: Visit): Promise<Response> };

/**
 * Agents behind one endpoint that any AI SDK client can use: turns that survive reloads and drops,
 * stop that works together with resume, many viewers, access control and bounded memory.
 *
 * @example
 * const gateway = createChatGateway({
 *   upstream: agentOpsUpstream({ url: 'wss://agents.example.com' }),
 *   authenticate: jwtAuth({ secret: process.env.JWT_SECRET ?? '' }),
 *   access: sessionAccess((id) => sessions.find(id)),
 * });
 * await serve({ fetch: gateway.fetch, port: 3000 });
 */
export function createChatGateway(options: ChatGatewayOptions): ChatGateway {
  checkOptions(options);
  const timing = { ...DEFAULT_TIMING, ...options.timing };
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { routes = {} } = options;
  const logger = toSafeLogger(options.logger);
  const base = (routes.base ?? '/api').replace(/\/+$/, '');
  const { upstream, sessions } = options;
  const log = options.log ?? sessions?.log ?? memoryTurnLog();
  const { metrics: registry = createMetricRegistry() } = options;
  const metrics = createGatewayMetrics(registry);
  const runHook = createRunHook(timing.hookMs, metrics);
  const guard = createGuard(options, runHook);
  const admission = createAdmission(limits, timing, registry, log.limits);
  const owed = createOwedReplays(log);
  const viewers = createViewers(timing.disconnectGraceMs, stopUnwatched);
  const turns = createGatewayTurns({
    ...options,
    ...(logger && { logger }),
    log,
    timing,
    limits,
    metrics,
    admission,
    onTurnEnd(turnId, planned, messageId) {
      viewers.forget(turnId);
      owed.name(planned, messageId);
    },
    onCutOff: (turnId) => streams.endTurn(turnId, UPSTREAM_UNREACHABLE),
  });
  const sleepWatch = log.outlivesProcess ? createSleepWatch() : undefined;
  const audit = createChatAudit(options.onAudit, logger);
  const { accessCheckMs } = timing;
  const streams = createOpenStreams({ guard, accessCheckMs, logger });
  const verbs = createChatVerbs({
    log,
    turns,
    viewers,
    owed,
    admission,
    audit,
    streams,
    metrics,
    limits,
    timing,
    logger,
    sleepWatch,
  });
  const steering = createSteering({ log, turns, guard, admission, audit, streams, timing });
  const shared = { guard, admission, limits, upstream, sessions };
  const contractRoutes = new Map<string, ChatRoute>();
  for (const name of ['chat', 'onboarding'] as const) {
    const { [name]: route = {} } = routes;
    const context = { ...shared, endpoint: `${base}/${name}` };
    if (route) contractRoutes.set(name, createContractRoute(name, route, context));
  }
  const chatSockets = createChatSockets({ guard, admission, limits, fetch });
  let closing: Promise<void> | undefined;
  const showReadiness = createReadiness({
    log,
    registry,
    logger,
    ready: options.ready,
    isClosing: () => closing !== undefined,
  });
  const reads = createSessionReads({
    log,
    turns,
    owed,
    guard,
    admission,
    timing,
    logger,
    upstream,
    sessions,
    isClosing: () => closing !== undefined,
  });

  async function stopUnwatched(turnId: string): Promise<void> {
    try {
      // Whoever reloads may have come to another gateway. Asked first: the next one reads it as well,
      // and of two gateways that were left at once each would take the other for a viewer.
      if (await log.isReadElsewhere(turnId)) return;
      if (turns.withdrawUnwatched(turnId)) return;
      const turn = await log.get(turnId);
      if (turn && turns.isWatchedElsewhere(turn)) return;
      // A question may be for a person who comes later: it does not end with its asker's visit.
      if (!turn || waitsFor(turn) === 'answer') return;
      const stop = { type: 'stop', reason: 'the last viewer left' } as const;
      if (!(await log.command(turnId, stop))) return;
      const { sessionId } = turns.turnHere(turnId)?.prompt ?? turn;
      const { chatId } = turn;
      logger?.info?.('turn stopped: its last viewer left', { sessionId, chatId, turnId });
    } catch (error) {
      logger?.error?.('the turn could not be stopped', { turnId, error: withoutContent(error) });
    }
  }

  async function showMetrics({ request }: Visit): Promise<Response> {
    const { metrics: isShown = true } = routes;
    const mayRead =
      typeof isShown === 'function'
        ? await runHook('routes.metrics', () => isShown(request))
        : isShown;
    if (!mayRead) throw new SabirError(NOT_FOUND);
    return new Response(registry.toText(), {
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    });
  }

  /** What there is at this address, whatever the method. */
  function routeOf(url: URL): Route[] {
    const { pathname } = url;
    if (pathname === '/healthz') {
      const status = closing ? 503 : 200;
      return [get(async () => json(status, { status: closing ? 'closing' : 'ok' }))];
    }
    if (pathname === '/readyz') return [get(showReadiness)];
    if (pathname === '/metrics') return [get(showMetrics)];
    if (!pathname.startsWith(`${base}/`)) return [];
    const [name, ...rest] = pathname.slice(base.length + 1).split('/');
    if (name === 'sessions') return sessionRoutes(rest);
    const route = contractRoutes.get(name ?? '');
    return route ? chatRoutes(route, rest) : [];
  }

  function sessionRoutes([session, what, ...rest]: string[]): Route[] {
    const sessionId = decode(session);
    if (sessionId === undefined) return [];
    const show =
      what === 'messages' ? reads.messages : what === 'channels' ? reads.channels : undefined;
    if (show && rest.length === 0) {
      return [get(async (visit) => show(await reads.enterSession(sessionId, visit), visit))];
    }
    return what === 'chat' || what === 'ag-ui' ? chatRoutes(chatsOf(sessionId, what), rest) : [];
  }

  function chatsOf(sessionId: string, what: 'chat' | 'ag-ui'): ChatRoute {
    const endpoint = `${base}/sessions/${encodeURIComponent(sessionId)}/${what}`;
    const wire = what === 'chat' ? 'ai-sdk' : what;
    return createSessionRoute(sessionId, wire, { ...shared, endpoint });
  }

  /** The chats that a WebSocket at this address is for. */
  function socketRouteOf({ pathname }: URL): ChatRoute | undefined {
    if (!pathname.startsWith(`${base}/`)) return undefined;
    const [name = '', ...rest] = pathname.slice(base.length + 1).split('/');
    if (name !== 'sessions') return rest.length === 0 ? contractRoutes.get(name) : undefined;
    const sessionId = decode(rest[0]);
    const isChat = rest.length === 2 && rest[1] === 'chat';
    return isChat && sessionId !== undefined ? chatsOf(sessionId, 'chat') : undefined;
  }

  function chatRoutes(route: ChatRoute, rest: string[]): Route[] {
    if (rest.length === 0) return [post((v) => verbs.send(route, v))];
    // 6.0.9 puts a chat's id into the path as it is, slashes and all.
    const verb = rest.at(-1);
    const chatId = decode(rest.slice(0, -1).join('/'));
    if (chatId === undefined) return [];
    if (verb === 'stream') return [get((v) => verbs.resume(route, chatId, v))];
    if (verb === 'follow') return [get((v) => verbs.follow(route, chatId, v))];
    if (verb === 'stop') return [post((v) => verbs.stop(route, chatId, v))];
    if (verb === 'answer') return [post((v) => verbs.answer(route, chatId, v))];
    if (verb === 'steer') return [post((v) => steering.steer(route, chatId, v))];
    if (verb === 'messages') {
      return [get(async (v) => reads.messages(await reads.enterChat(route, chatId, v), v))];
    }
    return [];
  }

  async function handle(visit: Visit): Promise<Response> {
    const { request, url } = visit;
    const found = routeOf(url);
    if (found.length === 0) throw new SabirError(NOT_FOUND);
    if (request.method === 'OPTIONS') {
      guard.checkPage(request);
      return new Response(null, { status: 204 });
    }
    // Load balancers like to ask with HEAD; a stream cannot be asked for that way.
    const isProbe = PROBES.has(url.pathname);
    const asked = isProbe && request.method === 'HEAD' ? 'GET' : request.method;
    const route = found.find(({ method }) => method === asked);
    if (!route) {
      const allowed = found.map(({ method }) => method).join(', ');
      const refused = toErrorResponse(new SabirError(METHOD_NOT_ALLOWED, `Use ${allowed}.`));
      refused.headers.set('allow', allowed);
      return refused;
    }
    if (closing && !isProbe) throw new SabirError(SHUTTING_DOWN);
    return route.handle(visit);
  }

  function addressOf(request: Request, given: unknown): string | undefined {
    const address = typeof given === 'string' ? given : undefined;
    if (!options.addressOf) return address;
    try {
      return options.addressOf(request, address);
    } catch (error) {
      logger?.error?.('addressOf threw: the request counts as one of unknown address', { error });
      return undefined;
    }
  }

  async function letGo(): Promise<void> {
    await turns.close();
    verbs.close();
    viewers.close();
    steering.close();
    streams.close();
    chatSockets.close();
    sleepWatch?.close();
    if (!options.log && !sessions) await log.close();
  }

  function toVisit(request: Request, info: { address?: string } | undefined): Visit {
    return {
      request,
      url: new URL(request.url),
      requestId: createId(),
      startedAt: Date.now(),
      address: addressOf(request, info?.address),
    };
  }

  function refuse(error: unknown, { request: { method }, requestId, url }: Visit): Response {
    if (!(error instanceof SabirError) || error.status >= 500) {
      const failed = { requestId, method, path: url.pathname, error: loggable(error) };
      logger?.error?.('request failed', failed);
    }
    return toErrorResponse(error);
  }

  async function fetch(request: Request, info?: { address?: string }): Promise<Response> {
    const visit = toVisit(request, info);
    const response = await handle(visit).catch((error: unknown) => refuse(error, visit));
    for (const [name, value] of Object.entries(corsHeaders(options.cors, request))) {
      response.headers.set(name, value);
    }
    return response;
  }

  return {
    fetch,
    async upgrade(request, info = {}) {
      const visit = toVisit(request, info);
      const route = socketRouteOf(visit.url);
      if (!route) return undefined;
      if (closing) return refuse(new SabirError(SHUTTING_DOWN), visit);
      return chatSockets.admit(route, visit, info).catch((error: unknown) => refuse(error, visit));
    },
    disconnect(userId) {
      streams.disconnect(userId);
      chatSockets.disconnect(userId);
      turns.retireSessions(userId);
    },
    close() {
      closing ??= letGo();
      return closing;
    },
  };
}

/** For machines: they answer `HEAD` too, and while the gateway closes. */
const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

function checkOptions(options: ChatGatewayOptions): void {
  for (const name of ['authenticate', 'access'] as const) {
    if (!options?.[name]) throw new TypeError(`createChatGateway needs ${name}.`);
  }
  if (!options.upstream && !options.sessions) {
    throw new TypeError('createChatGateway needs upstream or sessions.');
  }
  if (options.sessions && options.log && options.log !== options.sessions.log) {
    throw new TypeError('The log of createChatGateway has to be the one of its sessions.');
  }
}

const get = (handle: Route['handle']): Route => ({ method: 'GET', handle });
const post = (handle: Route['handle']): Route => ({ method: 'POST', handle });

function decode(segment: string | undefined): string | undefined {
  try {
    return segment ? decodeURIComponent(segment) : undefined;
  } catch {
    return undefined;
  }
}
