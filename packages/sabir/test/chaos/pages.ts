/**
 * The three kinds of clients, each as a page has it: the stock `useChat` of AI SDK 7, the same on
 * `SabirChatTransport`, and the contract's own. A page reads the history, then resumes; or it sends.
 */
import { ChatStream } from '../../src/clients/chat-stream.ts';
import { SabirChatTransport } from '../../src/clients/sabir-chat-transport.ts';
import type { UIMessage } from '../../src/core/message.ts';
import { createClient, type TransportLike } from '../real-clients.ts';
import type { ViewerKind } from './plan.ts';

export type PageOptions = {
  url: string;
  sessionId: string;
  chatId: string;
  /** Goes through the proxy, on a connection of its own. */
  fetch: typeof globalThis.fetch;
  /** What was said before. */
  messages: UIMessage[];
};

export type Page = {
  /** Resolves when the answer is over, or cannot be followed any more. Never rejects. */
  send(message: UIMessage): Promise<void>;
  /** Likewise. */
  resume(): Promise<void>;
  /** Stops watching. */
  leave(): Promise<void> | void;
  messages(): UIMessage[];
  /** What the page would show beside the messages. */
  error(): string | undefined;
};

const SILENCE_MS = 6_000;

export function openPage(kind: ViewerKind, options: PageOptions): Promise<Page> | Page {
  return kind === 'contract' ? openContractPage(options) : openChatPage(kind, options);
}

const apiOf = ({ url, sessionId }: PageOptions) => `${url}/api/sessions/${sessionId}/chat`;

async function openChatPage(kind: 'stock' | 'sabir', options: PageOptions): Promise<Page> {
  const { chatId, fetch, messages } = options;
  const transport =
    kind === 'stock'
      ? await stockTransport(apiOf(options), fetch)
      : new SabirChatTransport({
          api: apiOf(options),
          fetch,
          aiSdk: 7,
          silenceMs: SILENCE_MS,
          backoff: { initialMs: 50, maxMs: 500, attempts: 60 },
        });
  const { chat } = await createClient('ai@7', transport as TransportLike, {
    id: chatId,
    // What went wrong is asked for afterwards.
    onError: () => undefined,
  });
  chat.messages = messages;
  return {
    send: (message) =>
      chat.sendMessage(message as unknown as { text: string }).catch(() => undefined),
    resume: () => chat.resumeStream().catch(() => undefined),
    leave: () => chat.stop(),
    messages: () => structuredClone(chat.messages),
    error: () => chat.error?.message,
  };
}

async function stockTransport(api: string, fetch: typeof globalThis.fetch): Promise<unknown> {
  const { DefaultChatTransport } = await import('ai-v7');
  return new DefaultChatTransport({ api, fetch });
}

function openContractPage(options: PageOptions): Page {
  const { chatId, fetch, messages } = options;
  const chat = new ChatStream({
    api: `${apiOf(options)}?wire=contract`,
    id: chatId,
    body: { id: chatId },
    fetch,
    initialMessages: messages,
    silenceMs: SILENCE_MS,
    maxWaitMs: 500,
  });
  return {
    send: ({ id, parts }) => chat.sendMessage({ messageId: id, parts }),
    resume: () => chat.resume(),
    leave: () => chat.detach(),
    messages: () => structuredClone(chat.getSnapshot().messages),
    error: () => chat.getSnapshot().error?.message,
  };
}
