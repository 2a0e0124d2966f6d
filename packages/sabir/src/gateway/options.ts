import type { AuditEvent } from '../core/audit.ts';
import type { Trigger } from '../core/chat-request.ts';
import type { UIMessage } from '../core/message.ts';
import type { MetricRegistry } from '../core/metrics.ts';
import type { Role } from '../core/roles.ts';
import type { Logger } from '../core/translator.ts';
import type { Sessions } from '../sessions/index.ts';
import type { TurnLog } from '../turns/log.ts';
import type { FinishedTurn as EndedTurn, TurnTiming } from '../turns/turn-options.ts';
import type { Upstream, User } from '../turns/upstream.ts';
import type { Cors } from './cors.ts';
import type { Telemetry } from './telemetry.ts';

/** A turn that has ended, with all that a database needs to keep the conversation. */
export type FinishedTurn = EndedTurn & {
  /** Who asked. */
  user: User;
  /**
   * The message that was answered, with its id. An edit and a regenerate keep the id of the message: what a database has of
   * this chat from that message on is replaced. Missing of a turn that goes on after a restart (`restore`), and of one that
   * was lost with its gateway and was too large to be kept.
   */
  userMessage?: UIMessage;
  trigger: Trigger;
  /**
   * The message that was regenerated or edited. In a session it is always known; without one it is what the client named,
   * and a stock client that regenerates its last answer names none.
   */
  replaces?: string;
};

export type GatewayTiming = TurnTiming & {
  /** How often a silent stream says that it is alive. */
  keepAliveMs: number;
  /** How long a turn goes on after its last viewer left without a promise to stop it explicitly. */
  disconnectGraceMs: number;
  /** How long a connection to a session is kept for the next turn. */
  lingerMs: number;
  /** How long `close()` waits for running turns. */
  shutdownMs: number;
  /**
   * How long the answer to a new message waits to learn whether the session takes it, so that a refusal is a status and
   * not a stream. Agents that take every message are not waited for. A regenerate or an edit waits up to 6 seconds: the
   * session ends the turn that it replaces first.
   * @default 250
   */
  acceptMs: number;
  /**
   * How often `access` and `enabled` are asked again for everybody whose stream is open. `Infinity` for never.
   * @default 60_000
   */
  accessCheckMs: number;
  /**
   * How long the body of a request may take to arrive.
   * @default 60_000
   */
  bodyMs: number;
  /**
   * The same on a public route.
   * @default 10_000
   */
  publicBodyMs: number;
};

export type GatewayLimits = {
  /** A request's body, without the files attached to it. */
  bodyBytes: number;
  attachmentBytes: number;
  /**
   * A request's body on a public route, without the files attached to it.
   * @default 64_000
   */
  publicBodyBytes: number;
  /**
   * The files attached to it there.
   * @default 0
   */
  publicAttachmentBytes: number;
  /**
   * Turns that run in this process, those that wait for an answer included.
   * @default 4_000
   */
  liveTurns: number;
  /**
   * The same for one user.
   * @default 100
   */
  liveTurnsPerUser: number;
  /**
   * The same for one address on public routes. IPv6 addresses count by their /64.
   * @default 20
   */
  liveTurnsPerAddress: number;
  /**
   * Streams that are open, followers included, and histories that are being read.
   * @default 10_000
   */
  viewers: number;
  /**
   * Streams of one turn, and followers of one chat.
   * @default 2_000
   */
  viewersPerTurn: number;
  /**
   * Streams of one user.
   * @default 200
   */
  viewersPerUser: number;
  /**
   * Streams of one address on public routes.
   * @default 100
   */
  viewersPerAddress: number;
  /**
   * Bodies of one user that are being read at once.
   * @default 100
   */
  bodiesPerUser: number;
  /**
   * Bodies from one address that are being read at once on public routes.
   * @default 20
   */
  bodiesPerAddress: number;
  /**
   * Bytes of bodies in all: of requests that are being read, of prompts whose turn runs, and of histories that
   * are being sent. What was parsed counts with 80 bytes more for each of its objects, arrays and fields.
   * @default 192_000_000
   */
  heldBodyBytes: number;
  /**
   * The same for one user, so that no single one can use up what there is for all.
   * @default 48_000_000
   */
  heldBodyBytesPerUser: number;
  /**
   * The same for one address on public routes. Raise it together with `publicAttachmentBytes`.
   * @default 8_000_000
   */
  heldBodyBytesPerAddress: number;
  /**
   * WebSockets of chats, those that wait for `authenticate` included. Past it an upgrade is answered with 503.
   * @default 10_000
   */
  chatSockets: number;
  /**
   * The same for one user. Past it an upgrade is answered with 429.
   * @default 50
   */
  chatSocketsPerUser: number;
  /**
   * The same for one address on public routes.
   * @default 20
   */
  chatSocketsPerAddress: number;
  /**
   * Requests that one WebSocket has open: messages whose answer is streamed, and resumed streams. One more is answered
   * with an `error` frame. Each may have one piece of 128 KB waiting to leave.
   * @default 32
   */
  chatSocketRequests: number;
  /**
   * Bytes that wait to leave on one WebSocket because its client does not read. While there are more, a request is
   * answered with an `error` frame.
   * @default 8_000_000
   */
  chatSocketUnreadBytes: number;
  /**
   * Frames and pings of one WebSocket a second; a burst may be twice as many. Past it the socket is closed with 4429.
   * @default 50
   */
  chatSocketFramesPerSecond: number;
  /** What a viewer may be behind. */
  viewerBacklogBytes: number;
  /** What may wait for a slow log, per turn. */
  queueBytes: number;
};

/** What an application adds to the body it sends to `/chat`. Its types are hoped for, not checked. */
export type ChatBody = { projectId?: string; sessionId?: string; toolChoice?: unknown };
/** The same for `/onboarding`. */
export type OnboardingBody = { selectedBusiness?: unknown };

/** One for all sessions, or one for each. */
export type UpstreamOption = Upstream | ((sessionId: string) => Upstream | Promise<Upstream>);

/** What a run's `meta` event tells beside our own ids, which it does not change. */
export type RouteMeta = { model?: string; [field: string]: unknown };

/** A route that speaks the stable contract. */
export type ContractRoute = {
  /** Who answers here. Default: the gateway's own. */
  upstream?: UpstreamOption;
  /**
   * Nobody is asked who they are: a page before there is an account. A chat's id, long and random,
   * is then all that opens it.
   */
  public?: boolean;
  /**
   * Made of the turn alone, since every viewer is told the same, also whoever comes back later. One
   * that throws adds nothing.
   */
  meta?:
    | RouteMeta
    | ((turn: {
        turnId: string;
        chatId: string;
        /** Milliseconds since 1970. */
        startedAt: number;
      }) => RouteMeta);
};

/** What `admit` gets beside the request and the user. */
export type AdmitContext = {
  route: RouteName;
  /** On a session's route: on the others it is in the body. */
  sessionId?: string;
  /** As `addressOf` gave it. */
  address?: string;
};

/** The ways into chats; see `GatewayRoutes`. */
export type RouteName = 'sessions' | 'chat' | 'onboarding';

export type GatewayRoutes = {
  /** Where the routes begin. Default `/api`. */
  base?: string;
  /** `POST {base}/chat`, on the contract's wire. Default: there is one; `false` for none. */
  chat?: ContractRoute | false;
  /** `POST {base}/onboarding`, likewise. */
  onboarding?: ContractRoute | false;
  /** Whether `GET /metrics` answers, for whom. Default: everybody who can reach it. */
  metrics?: boolean | ((request: Request) => boolean | Promise<boolean>);
};

export interface ChatGatewayOptions {
  /** What answers: one upstream for all sessions, or one for each. Either this or `sessions` is needed. */
  upstream?: UpstreamOption;
  /** Sessions in this process: `createSessions(…)`. They run the turns, and their log is the gateway's. */
  sessions?: Sessions;
  /** Where turns are kept. @default the log of `sessions`, or the memory of this process */
  log?: TurnLog;
  /** Who asks; null for nobody: the answer is 401. See `jwtAuth`. */
  authenticate(request: Request): Promise<User | null> | User | null;
  /** What they may do in a session; null for nothing, or no such session: the answer is 404. */
  access(user: User, sessionId: string): Promise<Role | null> | Role | null;
  /** The switch per user and session: off is a 404. */
  enabled?(user: User, sessionId: string): boolean | Promise<boolean>;
  /**
   * The application's own rules for prompts, such as a rate or a quota. Asked for every POST of a message, after
   * `authenticate` (and after `access` on a session's route), before the body is read: do not read it here. `false`
   * is a 429; a thrown `SabirError` is answered as it is.
   */
  admit?(request: Request, user: User, where: AdmitContext): unknown;
  /**
   * Where a request on a public route comes from: what its limits count by. `address` is the socket's. Behind a
   * proxy, read the header that your proxy sets; a header that a client can set proves nothing.
   *
   * @default the socket's address
   */
  addressOf?(request: Request, address: string | undefined): string | undefined;
  /**
   * Runs once per turn, after its end, with the user's message and the answer: the place to store them. Two people's
   * chats on a route of the contract may have the same id; `user` tells them apart. Not for a restored turn that has
   * ended before it told anything: its message is stored already. Nor for a message that its session refused. With
   * `sessions`, also for turns that were asked for here before a restart.
   */
  onFinish?(turn: FinishedTurn): unknown;
  /**
   * Who prompted, stopped and answered, and who was refused: ids, never content. It is not waited for, and an error in
   * it is logged and changes nothing.
   */
  onAudit?(event: AuditEvent): unknown;
  /**
   * What of a user is kept with a running turn, where the log is shared: enough for another gateway to
   * open the agent's session in their name. Default: the id alone, so that no token is ever stored.
   */
  keepUser?(user: User): User;
  routes?: GatewayRoutes;
  cors?: Cors;
  limits?: Partial<GatewayLimits>;
  timing?: Partial<GatewayTiming>;
  /** What a person is shown of the agent's own errors. */
  errorText?(error: unknown): string;
  /**
   * What else has to work before this process gets requests: gives the reasons why it does not, as
   * short codes that anybody may read, at `GET /readyz`. Asked at most once a second; one that throws
   * or takes longer than a second is the reason `check-failed`.
   *
   * @default nothing else
   */
  ready?(): readonly string[] | Promise<readonly string[]>;
  /**
   * Where this gateway's metrics are registered: `createMetricRegistry()`. Share it with a session
   * server, or add metrics of your own, and `GET /metrics` shows all of them.
   *
   * @default a registry of its own
   */
  metrics?: MetricRegistry;
  /**
   * Follows each turn with a span: `otel()` of `sabir/otel`, or your own.
   *
   * @default none, and nothing of it is loaded
   */
  telemetry?: Telemetry;
  logger?: Logger;
}

export const DEFAULT_TIMING: GatewayTiming = {
  connectMs: 10_000,
  idleMs: 120_000,
  toolLimitMs: 30 * 60_000,
  keepAliveMs: 15_000,
  disconnectGraceMs: 5_000,
  lingerMs: 10_000,
  shutdownMs: 5_000,
  hookMs: 10_000,
  acceptMs: 250,
  accessCheckMs: 60_000,
  bodyMs: 60_000,
  publicBodyMs: 10_000,
};

export const DEFAULT_LIMITS: GatewayLimits = {
  bodyBytes: 1_000_000,
  attachmentBytes: 10_000_000,
  publicBodyBytes: 64_000,
  publicAttachmentBytes: 0,
  liveTurns: 4_000,
  liveTurnsPerUser: 100,
  liveTurnsPerAddress: 20,
  viewers: 10_000,
  viewersPerTurn: 2_000,
  viewersPerUser: 200,
  viewersPerAddress: 100,
  bodiesPerUser: 100,
  bodiesPerAddress: 20,
  heldBodyBytes: 192_000_000,
  heldBodyBytesPerUser: 48_000_000,
  heldBodyBytesPerAddress: 8_000_000,
  chatSockets: 10_000,
  chatSocketsPerUser: 50,
  chatSocketsPerAddress: 20,
  chatSocketRequests: 32,
  chatSocketUnreadBytes: 8_000_000,
  chatSocketFramesPerSecond: 50,
  viewerBacklogBytes: 1_000_000,
  queueBytes: 8_000_000,
};
