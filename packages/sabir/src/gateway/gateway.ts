/** `createChatGateway`: the only file that knows URLs. */
import { readJson } from '../chat-request.ts';
import {
  INTERNAL_ERROR,
  METHOD_NOT_ALLOWED,
  NO_HISTORY,
  NOT_FOUND,
  SabirError,
  SHUTTING_DOWN,
} from '../errors.ts';
import { createId } from '../id.ts';
import { SSE_HEADERS } from '../sse-response.ts';
import type { TurnInfo } from '../turns/log.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import type { UpstreamSession, User } from '../turns/upstream.ts';
import { withoutContent } from '../turns/without-content.ts';
import { type Admitted, createGuard, mayStop } from './access.ts';
import { acknowledgement } from './acknowledgement.ts';
import { type AnswerVerdict, createAnswering, toAnswer } from './answer-question.ts';
import { readChatPost } from './chat-post.ts';
import { checkDepth } from './check-depth.ts';
import { corsHeaders } from './cors.ts';
import { findTurn } from './find-turn.ts';
import { asHook, loggable } from './hook-error.ts';
import { createMetrics } from './metrics.ts';
import { type ChatGatewayOptions, DEFAULT_LIMITS, DEFAULT_TIMING } from './options.ts';
import { createOwedReplays } from './owed-replays.ts';
import { viewTurn } from './respond.ts';
import { json, nothing, toErrorResponse } from './responses.ts';
import { createTurnRunner } from './turn-runner.ts';
import { createViewers } from './viewers.ts';
import { channelOf, clientOf, cursorOf, type Visit } from './visit.ts';

export interface ChatGateway {
  fetch(request: Request): Promise<Response>;
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
  const { routes = {}, logger } = options;
  const base = (routes.base ?? '/api').replace(/\/+$/, '');
  const log = options.log ?? memoryTurnLog();
  const metrics = createMetrics();
  const admit = createGuard(options);
  const owed = createOwedReplays();
  const answerQuestion = createAnswering(log);
  const viewers = createViewers(timing.disconnectGraceMs, stopUnwatched);
  const runner = createTurnRunner({
    ...options,
    log,
    timing,
    limits,
    metrics,
    onTurnEnd(turnId, messageId) {
      viewers.forget(turnId);
      owed.name(turnId, messageId);
    },
  });
  let closing: Promise<void> | undefined;

  async function stopUnwatched(turnId: string): Promise<void> {
    try {
      const turn = (await log.get?.(turnId)) ?? runner.liveInfo(turnId);
      const stop = { type: 'stop', reason: 'the last viewer left' } as const;
      if (!(await log.command(turnId, stop))) return;
      const { sessionId, chatId } = turn ?? {};
      logger?.info?.('turn stopped: its last viewer left', { sessionId, chatId, turnId });
    } catch (error) {
      logger?.error?.('the turn could not be stopped', { turnId, error: withoutContent(error) });
    }
  }

  function view(visit: Visit, turn: TurnInfo, after: number, { user, role }: Admitted): Response {
    const { request, url, startedAt, requestId } = visit;
    const isDetaching = request.headers.get('x-sabir-detach') === '1';
    const leave = viewers.enter(turn.turnId, { isDetaching, mayStop: mayStop(role) });
    metrics.viewers.add(1);
    const body = viewTurn({
      log,
      turn,
      after,
      request,
      client: clientOf(request, url),
      isResuming: request.headers.get('x-sabir-resume') === '1',
      keepAliveMs: timing.keepAliveMs,
      maxBacklogBytes: limits.viewerBacklogBytes,
      expiresAt: user.expiresAt,
      onFirstChunk: () => metrics.ttfb.observe((Date.now() - startedAt) / 1000),
      onReplay: (bytes) => metrics.replayedBytes.add({}, bytes),
      onSlow: () => metrics.slowViewers.add(),
      onError: (error) =>
        logger?.error?.('the turn could not be read', {
          requestId,
          turnId: turn.turnId,
          error: withoutContent(error),
        }),
      onDeparture(how) {
        metrics.viewers.add(-1);
        if (how === 'left') metrics.aborts.add({ side: 'client' });
        if (how === 'let-go') metrics.aborts.add({ side: 'server' });
        leave(how !== 'left');
        const { sessionId, chatId, turnId } = turn;
        logger?.info?.(`viewer ${how}`, { requestId, sessionId, chatId, turnId });
      },
    });
    return new Response(body, { headers: { ...SSE_HEADERS, 'x-sabir-turn': turn.turnId } });
  }

  async function send(sessionId: string, visit: Visit): Promise<Response> {
    metrics.requests.add();
    try {
      return await converse(sessionId, visit);
    } catch (error) {
      const { code } = error instanceof SabirError ? error : INTERNAL_ERROR;
      metrics.requestErrors.add({ code });
      throw error;
    }
  }

  async function converse(sessionId: string, visit: Visit): Promise<Response> {
    const admitted = await admit(visit.request, sessionId, 'collaborator');
    const { user } = admitted;
    const channel = channelOf(visit.url);
    const post = await readChatPost(visit.request, { user, channel, limits });
    if (post.kind === 'acknowledge') return acknowledgement(post.messageId);
    const { turn } = await runner.begin(post, {
      sessionId,
      user,
      channel,
      requestId: visit.requestId,
      askedAt: visit.startedAt,
    });
    return view(visit, turn, 0, admitted);
  }

  async function find(turnId: string, sessionId: string, chatId: string) {
    return (await findTurn(log, turnId, { sessionId, chatId })) ?? runner.liveInfo(turnId);
  }

  async function resume(sessionId: string, chatId: string, visit: Visit): Promise<Response> {
    const admitted = await admit(visit.request, sessionId, 'viewer');
    const cursor = cursorOf(visit);
    // The one that runs, not one that waits behind it.
    const [running] = runner.liveIn(sessionId, chatId);
    const latest = running
      ? await find(running, sessionId, chatId)
      : await log.latest(sessionId, chatId);
    const named = cursor && (await find(cursor.turnId, sessionId, chatId));
    // A chat's cursor opens that chat's turns and no others.
    const isOurs = named && named.sessionId === sessionId && named.chatId === chatId;
    const turn = isOurs ? named : latest;
    if (!turn) return nothing();
    const after = isOurs && cursor.seq <= turn.lastSeq ? cursor.seq : 0;
    // Also while it runs: a page that is being told is owed nothing any more.
    const isOwed = cursor !== undefined || owed.take(turn.turnId, admitted.user.id);
    if (turn.outcome && (!isOwed || after === turn.lastSeq)) return nothing();
    metrics.resumes.add();
    return view(visit, turn, after, admitted);
  }

  /** The latest of a chat, and those that run: it may be waiting behind them. */
  async function turnsOf(sessionId: string, chatId: string): Promise<TurnInfo[]> {
    const latest = await log.latest(sessionId, chatId);
    const running = runner.liveIn(sessionId, chatId).filter((id) => id !== latest?.turnId);
    const turns = await Promise.all(running.map((turnId) => find(turnId, sessionId, chatId)));
    return [latest, ...turns].filter((turn) => turn !== undefined);
  }

  async function stop(sessionId: string, chatId: string, visit: Visit): Promise<Response> {
    await admit(visit.request, sessionId, 'collaborator');
    let isHeard = false;
    for (const { turnId } of await turnsOf(sessionId, chatId)) {
      const isTold = await log.command(turnId, { type: 'stop', reason: 'stopped by the user' });
      isHeard ||= isTold;
    }
    return isHeard ? json(202, { stopped: true }) : nothing();
  }

  async function answer(sessionId: string, chatId: string, visit: Visit): Promise<Response> {
    await admit(visit.request, sessionId, 'collaborator');
    const body = await readJson(visit.request, limits.bodyBytes);
    checkDepth(body);
    const command = toAnswer(body);
    let verdict: AnswerVerdict | undefined;
    for (const turn of await turnsOf(sessionId, chatId)) {
      verdict ??= await answerQuestion(turn, command);
    }
    if (!verdict) throw new SabirError(NOT_FOUND, 'No such question was asked in this chat.');
    if (verdict.status === 202) return json(202, { questionId: command.questionId });
    const { code, userMessage: message, remedy } = verdict.kind;
    return json(verdict.status, {
      code,
      message,
      remedy,
      ...('answer' in verdict && { answer: verdict.answer }),
    });
  }

  /** Something of the upstream's session, asked for on this user's behalf. */
  async function withSession<T>(
    sessionId: string,
    visit: Visit,
    use: (session: UpstreamSession, user: User) => Promise<T>,
  ): Promise<T> {
    const { user } = await admit(visit.request, sessionId, 'viewer');
    const lease = await runner.lease(sessionId, user, AbortSignal.timeout(timing.connectMs));
    try {
      if (closing) throw new SabirError(SHUTTING_DOWN);
      return await use(lease.session, user);
    } catch (error) {
      // The session was closed under it.
      throw closing ? new SabirError(SHUTTING_DOWN) : error;
    } finally {
      lease.release();
    }
  }

  function messages(sessionId: string, visit: Visit): Promise<Response> {
    return withSession(sessionId, visit, async (session, user) => {
      if (!session.history) throw new SabirError(NO_HISTORY);
      // Taken before the history is read: what ends meanwhile may be in it only in part.
      const running = runner.unstoredIn(sessionId);
      const history = await session.history(user);
      const excluded = new Set(running.map(([, turn]) => turn.messageId));
      const shown = history.filter(({ id }) => !excluded.has(id));
      owed.settle(user.id, new Set(shown.map(({ id }) => id)));
      for (const [turnId, { messageId }] of running) owed.owe(turnId, user.id, messageId);
      return json(200, shown);
    });
  }

  function channels(sessionId: string, visit: Visit): Promise<Response> {
    return withSession(sessionId, visit, async (session) => json(200, session.channels?.() ?? []));
  }

  async function showMetrics({ request }: Visit): Promise<Response> {
    const { metrics: isShown = true } = routes;
    const mayRead = typeof isShown === 'function' ? await asHook(() => isShown(request)) : isShown;
    if (!mayRead) throw new SabirError(NOT_FOUND);
    return new Response(metrics.toText(), {
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
    if (pathname === '/metrics') return [get(showMetrics)];
    if (!pathname.startsWith(`${base}/sessions/`)) return [];
    const [session, what, ...rest] = pathname.slice(base.length + '/sessions/'.length).split('/');
    const sessionId = decode(session);
    if (sessionId === undefined) return [];
    if (what === 'messages' && rest.length === 0) return [get((v) => messages(sessionId, v))];
    if (what === 'channels' && rest.length === 0) return [get((v) => channels(sessionId, v))];
    if (what !== 'chat') return [];
    if (rest.length === 0) return [post((v) => send(sessionId, v))];
    // 6.0.9 puts a chat's id into the path as it is, slashes and all.
    const verb = rest.pop();
    const chatId = decode(rest.join('/'));
    if (chatId === undefined) return [];
    if (verb === 'stream') return [get((v) => resume(sessionId, chatId, v))];
    if (verb === 'stop') return [post((v) => stop(sessionId, chatId, v))];
    if (verb === 'answer') return [post((v) => answer(sessionId, chatId, v))];
    return [];
  }

  async function handle(visit: Visit): Promise<Response> {
    const { request, url } = visit;
    const found = routeOf(url);
    if (found.length === 0) throw new SabirError(NOT_FOUND);
    if (request.method === 'OPTIONS') return new Response(null, { status: 204 });
    // Load balancers like to ask with HEAD; a stream cannot be asked for that way.
    const isProbe = url.pathname === '/healthz' || url.pathname === '/metrics';
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

  async function letGo(): Promise<void> {
    await runner.close();
    viewers.close();
    owed.clear();
    if (!options.log) await log.close?.();
  }

  return {
    async fetch(request) {
      const visit: Visit = {
        request,
        url: new URL(request.url),
        requestId: createId(),
        startedAt: Date.now(),
      };
      let response: Response;
      try {
        response = await handle(visit);
      } catch (error) {
        response = toErrorResponse(error);
        if (!(error instanceof SabirError) || error.status >= 500) {
          const { requestId, url } = visit;
          const { method } = request;
          const failed = { requestId, method, path: url.pathname, error: loggable(error) };
          logger?.error?.('request failed', failed);
        }
      }
      for (const [name, value] of Object.entries(corsHeaders(options.cors, request))) {
        response.headers.set(name, value);
      }
      return response;
    },
    close() {
      closing ??= letGo();
      return closing;
    },
  };
}

function checkOptions(options: ChatGatewayOptions): void {
  for (const name of ['upstream', 'authenticate', 'access'] as const) {
    if (!options?.[name]) throw new TypeError(`createChatGateway needs ${name}.`);
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
