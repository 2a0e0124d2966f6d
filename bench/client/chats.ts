/**
 * The chats that are compared, behind one face. Each is loaded when it is asked for, so that a
 * process with one of them has nothing of the others.
 */
import type { Chunk } from 'sabir';
import { contractFrames, type Fetch, fetchOf, plainFrames, type Reads } from './wire.ts';

type Message = { parts: unknown[] };

type Chat = {
  messages(): Message[];
  /** Called whenever the messages have changed, as often as the chat thinks right. */
  subscribe(listener: () => void): void;
  /** Resolves when the answer is over. */
  send(): Promise<void>;
};

type Kind = {
  frames(chunks: Chunk[]): Reads;
  open(fetch: Fetch): Promise<Chat>;
};

export type ChatName = 'sabir' | 'ai7' | 'ai7Throttled' | 'ai6';

const api = 'http://localhost/api/chat';
/** What an application gives `useChat` so that it renders once a frame at most. */
const THROTTLE_MS = 16;

async function openSeven(fetch: Fetch, throttleMs?: number): Promise<Chat> {
  const { Chat } = await import('ai-sdk-react-v7');
  const { DefaultChatTransport } = await import('ai-v7');
  const chat = new Chat({ transport: new DefaultChatTransport({ api, fetch }) });
  return {
    messages: () => chat.messages,
    // What `useChat` itself calls.
    subscribe: (listener) => void chat['~registerMessagesCallback'](listener, throttleMs),
    send: () => chat.sendMessage({ text: 'go' }),
  };
}

async function openSix(fetch: Fetch): Promise<Chat> {
  const { Chat } = await import('ai-sdk-react-v6');
  const { DefaultChatTransport } = await import('ai-v6');
  const chat = new Chat({ transport: new DefaultChatTransport({ api, fetch }) });
  return {
    messages: () => chat.messages,
    subscribe: (listener) => void chat['~registerMessagesCallback'](listener),
    send: () => chat.sendMessage({ text: 'go' }),
  };
}

async function openOurs(fetch: Fetch): Promise<Chat> {
  const { ChatStream } = await import('sabir/client');
  const chat = new ChatStream({ api, fetch });
  return {
    messages: () => chat.getSnapshot().messages,
    subscribe: (listener) => void chat.subscribe(listener),
    send: () => chat.sendMessage('go'),
  };
}

/** Every one on the wire that its own server would send it. */
export const CHATS: Record<ChatName, Kind> = {
  sabir: { frames: contractFrames, open: openOurs },
  ai7: { frames: plainFrames, open: (fetch) => openSeven(fetch) },
  ai7Throttled: { frames: plainFrames, open: (fetch) => openSeven(fetch, THROTTLE_MS) },
  ai6: { frames: plainFrames, open: openSix },
};

type Part = { text?: string; input?: object; output?: unknown };

/** What a page does at the least: it has the last part's words in one piece. */
function look(part: Part | undefined): number {
  if (part?.text) return part.text.charCodeAt(part.text.length - 1);
  if (part?.input) return Object.keys(part.input).length;
  return 0;
}

export type Watched = { ms: number; notifications: number; last: Part | undefined };

/** One answer from the request to its end, looked at whenever there is news. */
export async function watch(
  { open }: Kind,
  reads: Reads,
  pause?: Parameters<typeof fetchOf>[1],
): Promise<Watched> {
  const chat = await open(fetchOf(reads, pause));
  const last = () => chat.messages().at(-1)?.parts.at(-1) as Part | undefined;
  let notifications = 0;
  let seen = 0;
  chat.subscribe(() => {
    notifications++;
    seen += look(last());
  });
  const begin = performance.now();
  await chat.send();
  const ms = performance.now() - begin;
  if (seen === 0) throw new Error('nothing was shown');
  return { ms, notifications, last: last() };
}
