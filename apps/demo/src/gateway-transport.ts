import { SabirChatTransport } from 'sabir/client';
import type { ChatMessage } from './chat-message.ts';
import { browserId } from './chat-storage.ts';

type Sending = Parameters<SabirChatTransport<ChatMessage>['sendMessages']>[0];

/** A server that cannot be asked for the history must not keep the page from showing its own copy. */
const HISTORY_MS = 5_000;

/**
 * One conversation behind the gateway. The answer belongs to the server: any tab of this browser
 * can join it, leave it, or stop it for all.
 */
export class GatewayTransport extends SabirChatTransport<ChatMessage> {
  #session: string;
  #tabs: BroadcastChannel;

  constructor(chatId: string, onWaiting: (isWaiting: boolean) => void) {
    const session = `/api/sessions/${browserId()}-${chatId}`;
    super({
      api: `${session}/chat`,
      aiSdk: 7,
      onReconnect: ({ status }) => onWaiting(status === 'waiting'),
    });
    this.#session = session;
    this.#tabs = new BroadcastChannel(session);
  }

  override async sendMessages(options: Sending) {
    const stream = await super.sendMessages(options);
    // Only now is there something to watch.
    this.#tabs.postMessage('asked');
    return stream;
  }

  /** What the server knows of this conversation, without the answer that is being written. */
  async history(leaving: AbortSignal): Promise<ChatMessage[]> {
    const signal = AbortSignal.any([leaving, AbortSignal.timeout(HISTORY_MS)]);
    const response = await fetch(`${this.#session}/messages`, { signal });
    return response.ok ? response.json() : [];
  }

  /** Calls back when another tab has asked something in this conversation. */
  onAskedElsewhere(callback: () => void, signal: AbortSignal): void {
    this.#tabs.addEventListener('message', callback, { signal });
  }
}
