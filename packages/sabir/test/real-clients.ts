/**
 * The real AI SDK clients, four releases side by side, driven without a browser or a server.
 *
 * Each is the package's own `AbstractChat` over the smallest `ChatState`, which keeps messages
 * as the React binding does: pushed as they are, copied when replaced. `via: 'sse'` goes through
 * the package's own `DefaultChatTransport` and so through its schema; `via: 'in-process'` does
 * not, which is why it forgives what the wire does not.
 */
import type { UIMessage } from '../src/core/message.ts';

export type ClientName = 'ai@5' | 'ai@6.0.9' | 'ai@6' | 'ai@7';

export const CLIENTS: ReadonlyArray<{ name: ClientName; major: 5 | 6 | 7 }> = [
  { name: 'ai@5', major: 5 },
  { name: 'ai@6.0.9', major: 6 },
  { name: 'ai@6', major: 6 },
  { name: 'ai@7', major: 7 },
];

export type ClientResult = {
  status: string;
  error: Error | undefined;
  /** The assistant's message as the client folded it, copied. */
  message: UIMessage | undefined;
  messages: UIMessage[];
  /** What `onData` was called with. */
  dataParts: unknown[];
  /** What `onToolCall` was called with. */
  toolCalls: unknown[];
};

/** Any `ChatTransport`, of whichever major. */
export type TransportLike = {
  // biome-ignore lint/suspicious/noExplicitAny: the majors' own option types are not assignable to each other
  sendMessages(options: any): Promise<ReadableStream<any>>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  reconnectToStream(options: any): Promise<ReadableStream<any> | null>;
};

/** The part of `AbstractChat` that is the same in every major. */
interface RealChat {
  readonly status: string;
  readonly error: Error | undefined;
  messages: UIMessage[];
  sendMessage(message?: { text: string }, options?: object): Promise<void>;
  regenerate(options?: object): Promise<void>;
  resumeStream(options?: object): Promise<void>;
  stop(): Promise<void>;
}

export type RealClient = { chat: RealChat; result(): ClientResult };

type Sdk = {
  lastAssistantMessageIsCompleteWithToolCalls: (given: { messages: UIMessage[] }) => boolean;
  AbstractChat: new (init: object) => RealChat;
  DefaultChatTransport: new (options: object) => TransportLike;
};

const importers: Record<ClientName, () => Promise<unknown>> = {
  'ai@5': () => import('ai-v5'),
  'ai@6.0.9': () => import('ai-v6-0-9'),
  'ai@6': () => import('ai-v6'),
  'ai@7': () => import('ai-v7'),
};
const loaded = new Map<ClientName, Promise<Sdk>>();

/** A release's own module. */
export function loadSdk(name: ClientName): Promise<Sdk> {
  let sdk = loaded.get(name);
  if (sdk === undefined) {
    sdk = importers[name]() as Promise<Sdk>;
    loaded.set(name, sdk);
  }
  return sdk;
}

class MemoryState {
  status = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[] = [];
  pushMessage = (message: UIMessage) => {
    this.messages = this.messages.concat(message);
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, this.snapshot(message));
  };
  snapshot = <T>(value: T): T => {
    const parts = (value as { parts?: object[] } | undefined)?.parts;
    return Array.isArray(parts) ? { ...value, parts: parts.map((part) => ({ ...part })) } : value;
  };
}

/** A real chat over a transport, for tests that need more than one message: stop, resume, answer. */
export async function createClient(
  name: ClientName,
  transport: TransportLike,
  init: object = {},
): Promise<RealClient> {
  const sdk = await loadSdk(name);
  const state = new MemoryState();
  const dataParts: unknown[] = [];
  const toolCalls: unknown[] = [];
  let ids = 0;
  const chat = new sdk.AbstractChat({
    id: 'chat',
    generateId: () => `client-${++ids}`,
    state,
    transport,
    onData: (part: object) => {
      dataParts.push({ ...part });
    },
    onToolCall: ({ toolCall }: { toolCall: object }) => {
      toolCalls.push({ ...toolCall });
    },
    ...init,
  });
  return {
    chat,
    result() {
      const messages = structuredClone(chat.messages);
      return {
        status: chat.status,
        error: chat.error,
        message: messages.findLast((message) => message.role === 'assistant'),
        messages,
        dataParts,
        toolCalls,
      };
    },
  };
}

export async function runClientWithTransport(
  name: ClientName,
  transport: TransportLike,
): Promise<ClientResult> {
  const { chat, result } = await createClient(name, transport);
  await chat.sendMessage({ text: 'hi' });
  return result();
}

/** The client's own `DefaultChatTransport` on a fixed response. */
export async function httpTransport(
  name: ClientName,
  respond: (url: string, init: RequestInit) => Response | Promise<Response>,
): Promise<TransportLike> {
  const { DefaultChatTransport } = await loadSdk(name);
  return new DefaultChatTransport({
    api: 'http://test.invalid/api/chat',
    fetch: async (url: string, init: RequestInit) => respond(url, init),
  });
}

function sseResponse(body: BodyInit): Response {
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** Sends raw bytes as the body: one read per element of an array. */
export async function runClientOnBytes(
  name: ClientName,
  body: string | Uint8Array[],
): Promise<ClientResult> {
  const source = typeof body === 'string' ? body : streamOf(body);
  return runClientWithTransport(name, await httpTransport(name, () => sseResponse(source)));
}

export async function runClient(
  name: ClientName,
  chunks: Iterable<unknown>,
  options: { via?: 'sse' | 'in-process' } = {},
): Promise<ClientResult> {
  if (options.via === 'in-process') {
    // Copied, because a client keeps a data chunk as its part and later writes into it.
    const copies = Array.from(chunks, (chunk) =>
      typeof chunk === 'object' && chunk !== null ? { ...chunk } : chunk,
    );
    return runClientWithTransport(name, {
      sendMessages: async () => streamOf(copies),
      reconnectToStream: async () => null,
    });
  }
  let body = '';
  try {
    for (const chunk of chunks) body += `data: ${JSON.stringify(chunk)}\n\n`;
  } catch (error) {
    // What a server does that cannot write a chunk: the body breaks off right there.
    const broken = streamOf([new TextEncoder().encode(body)], error);
    return runClientWithTransport(name, await httpTransport(name, () => sseResponse(broken)));
  }
  return runClientOnBytes(name, `${body}data: [DONE]\n\n`);
}

function streamOf<T>(items: T[], failure?: unknown): ReadableStream<T> {
  const iterator = items.values();
  return new ReadableStream({
    pull(controller) {
      const item = iterator.next();
      if (!item.done) controller.enqueue(item.value);
      else if (failure !== undefined) controller.error(failure);
      else controller.close();
    },
  });
}
