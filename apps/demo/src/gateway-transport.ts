import { SabirChatTransport } from 'sabir/client';
import type { ChatMessage } from './chat-message.ts';
import { browserId } from './chat-storage.ts';
import { SharedConversation } from './shared-conversation.ts';

type Sending = Parameters<SabirChatTransport<ChatMessage>['sendMessages']>[0];

/**
 * One conversation behind the gateway. The answer belongs to the server: any tab of this browser
 * can join it, leave it, or stop it for all.
 */
export class GatewayTransport extends SabirChatTransport<ChatMessage> {
  readonly conversation: SharedConversation;

  constructor(chatId: string, onWaiting: (isWaiting: boolean) => void) {
    const conversation = new SharedConversation(`/api/sessions/${browserId()}-${chatId}`);
    super({
      api: `${conversation.address}/chat`,
      aiSdk: 7,
      onReconnect: ({ status }) => onWaiting(status === 'waiting'),
    });
    this.conversation = conversation;
  }

  override async sendMessages(options: Sending) {
    const stream = await super.sendMessages(options);
    this.conversation.tellAsked();
    return stream;
  }
}
