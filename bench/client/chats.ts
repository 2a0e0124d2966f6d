/**
 * The chats that are compared, behind one face. Each is loaded when it is asked for, so that a
 * process with one of them has nothing of the others.
 */
import type { ChatTransport, UIMessage } from 'ai-v7';
import type { Chunk } from 'sabir';
import type { ChatStream } from 'sabir/client';
import {
  contractEvents,
  contractFrames,
  type Fetch,
  fetchOf,
  type Pause,
  plainFrames,
  streamOf,
  turnLoop,
} from './wire.ts';

type Message = { parts: unknown[] };

type Chat = {
  messages(): Message[];
  /** Called whenever the messages have changed, as often as the chat thinks right. */
  subscribe(listener: () => void): void;
  /** Resolves when the answer is over. */
  send(): Promise<void>;
};

/** A new chat that will get the answer, at this pace. */
type Open = (pause?: Pause) => Promise<Chat>;

type Kind = {
  /** The answer as its own server would send it. */
  asBytes(chunks: Chunk[]): Open;
  /** The answer as what those bytes mean: nothing to decode, one value after the other. */
  asValues(chunks: Chunk[]): Open;
};

export type ChatName = 'sabir' | 'ai7' | 'ai7Throttled' | 'ai6';

const api = 'http://localhost/api/chat';
/** What an application gives `useChat` so that it renders once a frame at most. */
const THROTTLE_MS = 16;

/** What every major takes for a transport. */
function inProcess(chunks: Chunk[], pause?: Pause) {
  return {
    sendMessages: async () => streamOf(chunks, pause) as ReadableStream<never>,
    reconnectToStream: async () => null,
  };
}

function seven(throttleMs?: number): Kind {
  async function open(create: (sdk: typeof import('ai-v7')) => ChatTransport<UIMessage>) {
    const { Chat } = await import('ai-sdk-react-v7');
    const chat = new Chat({ transport: create(await import('ai-v7')) });
    return {
      messages: () => chat.messages,
      // What `useChat` itself calls.
      subscribe: (listener: () => void) =>
        void chat['~registerMessagesCallback'](listener, throttleMs),
      send: () => chat.sendMessage({ text: 'go' }),
    };
  }
  return {
    asBytes(chunks) {
      const reads = plainFrames(chunks);
      return (pause) =>
        open(({ DefaultChatTransport }) => {
          return new DefaultChatTransport({ api, fetch: fetchOf(reads, pause) });
        });
    },
    asValues: (chunks) => (pause) => open(() => inProcess(chunks, pause)),
  };
}

const six: Kind = {
  asBytes(chunks) {
    const reads = plainFrames(chunks);
    return async (pause) => {
      const { DefaultChatTransport } = await import('ai-v6');
      return openSix(new DefaultChatTransport({ api, fetch: fetchOf(reads, pause) }));
    };
  },
  asValues: (chunks) => (pause) => openSix(inProcess(chunks, pause)),
};

async function openSix(transport: import('ai-v6').ChatTransport<import('ai-v6').UIMessage>) {
  const { Chat } = await import('ai-sdk-react-v6');
  const chat = new Chat({ transport });
  return {
    messages: () => chat.messages,
    subscribe: (listener: () => void) => void chat['~registerMessagesCallback'](listener),
    send: () => chat.sendMessage({ text: 'go' }),
  };
}

async function openOurs(send: (chat: ChatStream) => Promise<void>, fetch: Fetch) {
  const { ChatStream } = await import('sabir/client');
  const chat = new ChatStream({ api, fetch });
  return {
    messages: () => chat.getSnapshot().messages,
    subscribe: (listener: () => void) => void chat.subscribe(listener),
    send: () => send(chat),
  };
}

const ours: Kind = {
  asBytes(chunks) {
    const reads = contractFrames(chunks);
    return (pause) => openOurs((chat) => chat.sendMessage('go'), fetchOf(reads, pause));
  },
  asValues(chunks) {
    const events = contractEvents(chunks);
    return (pause = turnLoop) =>
      openOurs(async (chat) => {
        for (const [i, event] of events.entries()) {
          const wait = pause(i + 1);
          if (wait) await wait;
          chat.apply(event);
        }
      }, globalThis.fetch);
  },
};

export const CHATS: Record<ChatName, Kind> = {
  sabir: ours,
  ai7: seven(),
  ai7Throttled: seven(THROTTLE_MS),
  ai6: six,
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
export async function watch(open: Open, pause?: Pause): Promise<Watched> {
  const chat = await open(pause);
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
