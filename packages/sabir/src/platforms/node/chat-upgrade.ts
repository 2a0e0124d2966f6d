/** The WebSockets of AI SDK 7's `WebSocketChatTransport` on Node. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import { INTERNAL_ERROR, NOT_FOUND } from '../../core/errors.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import type { ChatGateway, ChatUpgrade } from '../../gateway/index.ts';
import { createSocketServer, toSessionSocket, watchSocket } from './session-sockets.ts';
import { refuse, refuseWith, toRequest } from './session-upgrade.ts';

/** Of a ping or pong of a client: two bytes and the mask. */
const CONTROL_HEAD_BYTES = 6;

type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export type UpgradeListenerOptions = {
  /** Takes the upgrades at addresses where the gateway has no chat: `sessions.upgrade`. @default 404 */
  otherwise?: UpgradeListener;
  /**
   * How often to check that the other side still reads. One that does not answer until the next time is cut off.
   * @default 30_000
   */
  pingMs?: number;
  /** Default `console`. */
  logger?: Logger;
};

/**
 * A gateway as a listener for a server's `upgrade` event: `WebSocketChatTransport` connects to the address that
 * `DefaultChatTransport` POSTs to.
 *
 * @example
 * await serve({ fetch: gateway.fetch, upgrade: toUpgradeListener(gateway), port: 3000 });
 */
export function toUpgradeListener(
  gateway: Pick<ChatGateway, 'upgrade'>,
  options: UpgradeListenerOptions = {},
): UpgradeListener {
  const { otherwise = (_, raw) => refuse(raw, NOT_FOUND), pingMs = 30_000 } = options;
  const logger = toSafeLogger(options.logger ?? console);
  /** One for each `maxFrameBytes`. */
  const servers = new Map<number, WebSocketServer>();

  function serverFor(maxPayload: number): WebSocketServer {
    const known = servers.get(maxPayload);
    if (known) return known;
    const server = createSocketServer(maxPayload);
    servers.set(maxPayload, server);
    return server;
  }

  function accept(given: ChatUpgrade, ...[incoming, raw, head]: Parameters<UpgradeListener>): void {
    let isOpen = false;
    serverFor(given.maxFrameBytes).handleUpgrade(incoming, raw, head, (socket) => {
      isOpen = true;
      const served = given.open(toSessionSocket(socket, raw));
      const { allow, onTooLarge, arrive, settle, drain, ...events } = served;
      raw.on('drain', drain);
      // Before the listener of `ws`, which keeps a message until its last byte has arrived.
      raw.prependListener('data', ({ length }: Buffer) => {
        if (!arrive(length)) socket.pause();
      });
      const settleControl = ({ length }: Buffer) => settle(length + CONTROL_HEAD_BYTES);
      socket.on('ping', settleControl).on('pong', settleControl);
      watchSocket(socket, events, { pingMs, allow, onTooLarge });
    });
    // The client has disconnected, or its handshake is invalid: `ws` has answered.
    if (!isOpen) given.cancel();
  }

  async function decide(...[incoming, raw, head]: Parameters<UpgradeListener>): Promise<void> {
    const address = incoming.socket.remoteAddress;
    const info = address === undefined ? {} : { address };
    const decision = await gateway.upgrade(toRequest(incoming), info);
    if (!decision) otherwise(incoming, raw, head);
    else if (decision instanceof Response) refuseWith(raw, decision.status, await decision.text());
    else accept(decision, incoming, raw, head);
  }

  return (incoming, raw, head) => {
    // The client may disconnect while the gateway decides, and while it is sent a refusal.
    raw.on('error', () => raw.destroy());
    decide(incoming, raw, head).catch((error: unknown) => {
      logger.error('a connection could not be accepted', { error });
      refuse(raw, INTERNAL_ERROR);
    });
  };
}
