import { NO_HISTORY, NOT_FOUND, SabirError, UPSTREAM_UNREACHABLE } from '../../core/errors.ts';
import type { Role } from '../../core/roles.ts';
import type { Channel } from '../../core/translator.ts';
import { unlessAborted } from '../../core/within.ts';
import type { Upstream, User } from '../../turns/upstream.ts';
import { toHistory } from './history.ts';
import type { AgentOpsOptions } from './options.ts';
import { AgentOpsSession } from './session.ts';
import { connect, type Target, type WebSocketConstructor } from './socket.ts';

export type AgentOpsUpstreamOptions = {
  /**
   * Where the sessions are: an address with `:id` or `{sessionId}` in it, or the server's base, to
   * which `/api/sessions/:id/ws?role=client` is added. A function is given the id as it is: what it
   * makes part of an address it has to encode, and ids like `..` are its to refuse. `http` and
   * `https` become `ws` and `wss`.
   */
  url: string | ((sessionId: string) => string);
  /** Sent as `Authorization: Bearer`: for this user, in this session, with what they may do there. */
  token?: (user: User, where: TokenScope) => string | Promise<string>;
  /** Subprotocols, for servers that take the token there. */
  protocols?: (user: User) => string[];
  /** For prompts that name none. Default `web`, `default`: without one, servers drop questions. */
  channel?: Channel;
  /** Default: the platform's. The `ws` package's works too. */
  WebSocket?: WebSocketConstructor;
  /** How often to ask whether the server is there; silent for twice as long, it is not. */
  pingMs?: number;
  /** How long the end of a turn that was aborted may take to arrive. Default 2,000. */
  settleMs?: number;
  /** How long the server may take to answer a connection. Default 15,000. */
  openMs?: number;
  /** A larger event is not read. Default 32 MB. */
  maxEventBytes?: number;
  dialect?: AgentOpsOptions['dialect'];
  approvals?: boolean;
  /** The messages of a session, as its server keeps them: newer servers do not send them. */
  history?: (sessionId: string, user: User) => Promise<unknown[]>;
};

/** What a token has to be good for. */
type TokenScope = { sessionId: string; role: Role };

/** A server that sends an `init` does so at once. */
const INIT_MS = 500;
/** Long enough for a long one: here it is what was asked for. */
const HISTORY_INIT_MS = 5_000;

/**
 * Agent Ops behind the gateway: one socket for each session and identity.
 *
 * @example
 * createChatGateway({ upstream: agentOpsUpstream({ url, token: (user) => String(user.token) }), … });
 */
export function agentOpsUpstream(options: AgentOpsUpstreamOptions): Upstream {
  const {
    channel = { channelType: 'web', channelId: 'default' },
    WebSocket = globalThis.WebSocket as WebSocketConstructor,
    pingMs = 30_000,
    settleMs = 2_000,
    openMs = 15_000,
    maxEventBytes = 32_000_000,
    dialect = 'auto',
    approvals = false,
  } = options;

  async function targetOf(user: User, where: TokenScope): Promise<Target> {
    try {
      const url = toSocketUrl(options.url, where.sessionId);
      const token = await options.token?.(user, where);
      const protocols = options.protocols?.(user);
      return { url, token, protocols, WebSocket, maxEventBytes, openMs, initMs: INIT_MS };
    } catch (cause) {
      if (cause instanceof SabirError) throw cause;
      throw new SabirError(UPSTREAM_UNREACHABLE, 'There is no address or no token.', { cause });
    }
  }

  /** The socket that is open told its messages when it was opened; a new one tells them as of now. */
  async function readInit(target: Target): Promise<Init> {
    let init: Init = {};
    const listener = {
      event: (event: unknown) => {
        if ((event as { type?: unknown } | null)?.type === 'init') init = event as Init;
      },
      drop: () => undefined,
    };
    // Who has them from elsewhere as well need not wait for a server that may never tell them.
    const patient = { ...target, initMs: options.history ? INIT_MS : HISTORY_INIT_MS };
    const socket = await connect(patient, listener, new AbortController().signal);
    socket.close();
    return init;
  }

  return {
    async open({ sessionId, user, role, signal }) {
      const where = { sessionId, role };
      const reads = new Map<string, Promise<Init>>();
      /** However many ask at once, one socket asks for all who prove in the same way who they are. */
      const read = async (asking: User): Promise<Init> => {
        const target = await targetOf(asking, where);
        const key = JSON.stringify([target.url, target.token, target.protocols]);
        const reading = reads.get(key) ?? readInit(target).finally(() => reads.delete(key));
        reads.set(key, reading);
        return reading;
      };
      async function history(asking: User = user, place: Channel = channel) {
        const { session: told, data } = await read(asking);
        const messages = told?.messages ?? (await options.history?.(sessionId, asking));
        if (!Array.isArray(messages)) throw new SabirError(NO_HISTORY);
        return toHistory(messages, data ?? {}, place);
      }
      const target = await unlessAborted(targetOf(user, where), signal, () => {
        const { reason: cause } = signal;
        return new SabirError(UPSTREAM_UNREACHABLE, 'The caller gave up.', { cause });
      });
      const session = new AgentOpsSession({
        channel,
        approvals,
        pingMs,
        history,
        dialect,
        settleMs,
      });
      session.connected(await connect(target, session, signal));
      return session;
    },
  };
}

type Init = { session?: { messages?: unknown }; data?: Record<string, unknown> };

const PLACEHOLDER = /:id\b|\{sessionId\}/g;

function toSocketUrl(given: AgentOpsUpstreamOptions['url'], sessionId: string): string {
  if (typeof given === 'function') return toWebSocketScheme(given(sessionId));
  const id = encodeURIComponent(sessionId);
  // These would lead to other addresses, and there is no way to write them that does not.
  if (id === '' || id === '.' || id === '..') throw new SabirError(NOT_FOUND);
  if (given.search(PLACEHOLDER) >= 0) return toWebSocketScheme(given.replace(PLACEHOLDER, id));
  const url = new URL(given);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/sessions/${id}/ws`;
  url.searchParams.set('role', 'client');
  return toWebSocketScheme(url.href);
}

function toWebSocketScheme(url: string): string {
  return url.replace(/^http/i, 'ws');
}
