import type { OnAudit } from '../../core/audit.ts';
import type { MetricRegistry } from '../../core/metrics.ts';
import type { Logger } from '../../core/translator.ts';
import type { Cors, Role } from '../../gateway/index.ts';
import type {
  Agent,
  AgentFunction,
  SessionLimits,
  SessionStore,
  SessionTiming,
} from '../../sessions/index.ts';
import type { TurnLog } from '../../turns/log.ts';
import type { User } from '../../turns/upstream.ts';

/** Who has come, and what they may do. */
type AdmittedUser = { user: User; role: Role };

export type SessionServerOptions = {
  /** Where sessions are kept: `sqliteSessionStore({ file })`, or `memorySessionStore()`. */
  store: SessionStore;
  /** Where their turns are kept. @default the store's own log */
  log?: TurnLog;
  /** Makes the agent of a session in this process, when there is something to do. @default runners answer */
  agent?(sessionId: string): Agent | AgentFunction;
  /** The user of a request; null answers 401. The gateway's own function can be used. */
  authenticate(request: Request): Promise<User | null> | User | null;
  /**
   * What they may do in a session; null for nothing, or no such session: the answer is 404. Asked
   * again every `timing.accessCheckMs` for as long as the socket is open.
   */
  access(user: User, sessionId: string): Promise<Role | null> | Role | null;
  /** Whether this may be a session's runner. Default: no runner is admitted. */
  admitRunner?(request: Request, sessionId: string): Promise<boolean> | boolean;
  /**
   * For whom this gateway has come, by what it proves; null if it is no gateway of yours. The server
   * believes it: it asks neither `authenticate` nor `access`, applies no limits on sockets and
   * messages, and accepts the gateway's word about who answers a question. Default: there is none.
   */
  admitGateway?(
    request: Request,
    sessionId: string,
  ): Promise<AdmittedUser | null> | AdmittedUser | null;
  /** A session has something to do, and no runner. */
  onRunnerWanted?(sessionId: string): void;
  /** A session left the memory: it has no clients, and nothing runs. */
  onSessionClosed?(sessionId: string): void;
  /** What a person is shown of an agent's own errors. */
  errorText?: (error: unknown) => string;
  /** Gets each prompt, stop, answer and withdrawal by WebSocket. A gateway reports its own. */
  onAudit?: OnAudit;
  /** Pages of other origins that may connect. */
  cors?: Cors;
  timing?: Partial<SessionTiming & SocketTiming>;
  limits?: Partial<SessionLimits & SocketLimits>;
  /**
   * Where this server's metrics are registered. Share it with the gateway on the same port.
   *
   * @default a registry of its own
   */
  metrics?: MetricRegistry;
  logger?: Logger;
};

export type SocketTiming = {
  /**
   * How often to check that the other side still answers.
   * @default 30_000
   */
  pingMs: number;
  /**
   * How long a session stays in memory without clients.
   * @default 60_000
   */
  lingerMs: number;
  /**
   * How long `authenticate`, `access`, `admitRunner` and `admitGateway` may take together. Past it the
   * answer is 503.
   * @default 10_000
   */
  hookMs: number;
  /**
   * How often `access` is asked again about each open socket. A person without access is disconnected
   * with 4403; one whose role has changed with 4410, and comes back with the new one.
   * @default 60_000
   */
  accessCheckMs: number;
};

export type SocketLimits = {
  /**
   * A frame of a runner. A runner or a gateway that goes on sending while as much waits for it unread is disconnected.
   * @default 64_000_000
   */
  runnerFrameBytes: number;
  /**
   * Sockets of clients in all. Past it an upgrade is answered with 503.
   * @default 10_000
   */
  sockets: number;
  /**
   * Sockets of one user, in all sessions. Past it an upgrade is answered with 429.
   * @default 50
   */
  socketsPerUser: number;
  /**
   * Sockets in one session. Past it an upgrade is answered with 429.
   * @default 1_000
   */
  socketsPerSession: number;
  /**
   * What one user may be sent by `init` a second, in all sessions; a burst may be 16 times as much. Each connection
   * counts as 100,000 bytes more. Past it an upgrade is answered with 429.
   * @default 4_000_000
   */
  initBytesPerSecond: number;
  /**
   * Upgrades that wait for `authenticate` and `access`. Past it an upgrade is answered with 503.
   * @default 1_000
   */
  pendingUpgrades: number;
  /**
   * Messages and pings of one socket a second; a burst may be twice as many. Past it the socket is
   * closed with 4429.
   * @default 50
   */
  messagesPerSecond: number;
};

export const DEFAULT_SOCKET_TIMING: SocketTiming = {
  pingMs: 30_000,
  lingerMs: 60_000,
  hookMs: 10_000,
  accessCheckMs: 60_000,
};

export const DEFAULT_SOCKET_LIMITS: SocketLimits = {
  runnerFrameBytes: 64_000_000,
  sockets: 10_000,
  socketsPerUser: 50,
  socketsPerSession: 1_000,
  initBytesPerSecond: 4_000_000,
  pendingUpgrades: 1_000,
  messagesPerSecond: 50,
};
