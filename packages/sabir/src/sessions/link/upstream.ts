import { SabirError, UPSTREAM_UNREACHABLE } from '../../core/errors.ts';
import type { Role } from '../../core/roles.ts';
import type { Channel } from '../../core/translator.ts';
import { unlessAborted } from '../../core/within.ts';
import {
  connect,
  type SocketListener,
  type Target,
  type WebSocketConstructor,
} from '../../sources/agent-ops/socket.ts';
import type { Upstream, User } from '../../turns/upstream.ts';
import { sessionUrl } from '../session-url.ts';
import { LinkedSession } from './linked-session.ts';
import { readLinkEvent } from './protocol.ts';

export type SessionServerUpstreamOptions = {
  /** Where the session server is: `https://host` or `wss://host`, or a function of the session's id. */
  url: string | ((sessionId: string) => string);
  /** Sent as `Authorization: Bearer`: what `admitGateway` reads. */
  token?: (user: User, where: { sessionId: string; role: Role }) => string | Promise<string>;
  /** For prompts that name none. @default web, default */
  channel?: Channel;
  /** @default the platform's; the `ws` package's works too */
  WebSocket?: WebSocketConstructor;
  /** How often to ask whether the server is there; silent for twice as long, it is not. @default 30_000 */
  pingMs?: number;
  /** How long the server may take to answer a connection. @default 15_000 */
  openMs?: number;
  /**
   * How long the server may be away before viewers get a retryable error. The turns go on there, and viewers who come back
   * get all of it as soon as the server can be reached. @default 20_000
   */
  returnMs?: number;
  /** How long the server may be away before its turns end here as failed. @default 600_000 */
  giveUpMs?: number;
  /** A larger frame is not read. @default 64_000_000 */
  maxEventBytes?: number;
};

/** A session server sends `init` at once. */
const INIT_MS = 5_000;
const HISTORY_MS = 10_000;

/**
 * Sessions of a session server elsewhere, behind a gateway. The gateway's log is a replica of the session's: the same
 * ids and numbers.
 *
 * @example
 * createChatGateway({ upstream: sessionServerUpstream({ url: 'https://sessions.internal', token }), … });
 */
export function sessionServerUpstream(options: SessionServerUpstreamOptions): Upstream {
  const {
    channel = { channelType: 'web', channelId: 'default' },
    WebSocket = globalThis.WebSocket as WebSocketConstructor,
    pingMs = 30_000,
    openMs = 15_000,
    returnMs = 20_000,
    giveUpMs = 600_000,
    maxEventBytes = 64_000_000,
  } = options;

  async function targetOf(user: User, where: { sessionId: string; role: Role }): Promise<Target> {
    try {
      const { sessionId } = where;
      const server = typeof options.url === 'function' ? options.url(sessionId) : options.url;
      const url = sessionUrl(server, sessionId, { role: 'gateway' });
      const token = await options.token?.(user, where);
      return { url, token, WebSocket, maxEventBytes, openMs, initMs: INIT_MS };
    } catch (cause) {
      if (cause instanceof SabirError) throw cause;
      throw new SabirError(UPSTREAM_UNREACHABLE, 'There is no address or no token.', { cause });
    }
  }

  return {
    hasQueue: true,
    async open({ sessionId, user, role, signal }) {
      const open = async (listener: SocketListener, until: AbortSignal) =>
        connect(await targetOf(user, { sessionId, role }), listener, until);
      const session = new LinkedSession({
        channel,
        pingMs,
        returnMs,
        giveUpMs,
        historyMs: HISTORY_MS,
        connect: open,
      });
      let isServer = false;
      const listener: SocketListener = {
        event(event) {
          isServer ||= readLinkEvent(event)?.type === 'init';
          session.event(event);
        },
        drop: () => session.drop(),
      };
      const socket = await unlessAborted(open(listener, signal), signal, () => {
        const { reason: cause } = signal;
        return new SabirError(UPSTREAM_UNREACHABLE, 'The caller gave up.', { cause });
      });
      if (!isServer) {
        socket.close();
        throw new SabirError(
          UPSTREAM_UNREACHABLE,
          'There is no session server of ours at the address.',
        );
      }
      session.connected(socket);
      return session;
    },
  };
}
