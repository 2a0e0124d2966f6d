/**
 * A gateway in front of a scripted agent, and small clients of it: real requests and responses,
 * frames as they arrive. Who asks is the bearer token itself.
 */
import { expect, onTestFinished } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import { createSseDecoder, type SseFrame } from '../src/core/sse.ts';
import type { ChatGateway, ChatGatewayOptions, Role } from '../src/gateway/index.ts';
import { asUpstream, contractChatOf, createChatGateway } from '../src/gateway/index.ts';
import type { AgentPrompt } from '../src/turns/agent.ts';
import type { Upstream } from '../src/turns/upstream.ts';
import { parseMetrics } from './parse-metrics.ts';

/** What each of these people may do in the sessions `s1` and `s2`; nobody else exists. */
const ROLES: Record<string, Role> = {
  olga: 'owner',
  carl: 'collaborator',
  cora: 'collaborator',
  vera: 'viewer',
};

export const ORIGIN = 'http://gateway.test';

/** One prompt on the agent's side: what the test tells it to say, it says. */
type AgentRun = {
  turn: AgentPrompt;
  say(...chunks: Chunk[]): void;
  /** A text of its own, begun and ended. */
  text(text: string): void;
  /** A delta of a text that stays open. */
  delta(text: string): void;
  end(): void;
  fail(error: unknown): void;
};

export function createAgent() {
  const runs: AgentRun[] = [];
  const upstream = asUpstream((turn) => {
    let controller!: ReadableStreamDefaultController<Chunk>;
    const stream = new ReadableStream<Chunk>({
      start: (given) => {
        controller = given;
      },
    });
    let texts = 0;
    let isOpen = false;
    const run: AgentRun = {
      turn,
      say: (...chunks) => chunks.forEach((chunk) => void controller.enqueue(chunk)),
      text(delta) {
        const id = `t${++texts}`;
        run.say({ type: 'text-start', id }, { type: 'text-delta', id, delta });
        run.say({ type: 'text-end', id });
      },
      delta(delta) {
        if (!isOpen) run.say({ type: 'text-start', id: 'open' });
        isOpen = true;
        run.say({ type: 'text-delta', id: 'open', delta });
      },
      end: () => controller.close(),
      fail: (error) => controller.error(error),
    };
    runs.push(run);
    return stream;
  });
  return {
    upstream,
    runs,
    /** The nth run, as soon as there is one. */
    run: (index = 0) => eventually(() => runs[index], `run ${index}`),
  };
}

/** Answers every prompt with its own text, at once. */
export const echo: Upstream = asUpstream(async function* ({ text }) {
  yield { type: 'text-start', id: '1' };
  yield { type: 'text-delta', id: '1', delta: `You said ${text}` };
});

/** A gateway that is closed when its test is over. */
export function createTestGateway(
  upstream: ChatGatewayOptions['upstream'],
  options: Partial<ChatGatewayOptions> = {},
): ChatGateway {
  const gateway = createChatGateway({
    upstream,
    authenticate: (request) => {
      const [, id] = /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
      return id === undefined ? null : { id };
    },
    access(user, sessionId) {
      const chat = contractChatOf(sessionId);
      if (chat) return chat.userId === user.id ? 'owner' : null;
      return /^s\d/.test(sessionId) ? (ROLES[user.id] ?? null) : null;
    },
    ...options,
    timing: { shutdownMs: 0, acceptMs: 20, ...options.timing },
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

export type SendInit = { headers?: HeadersInit; query?: string; signal?: AbortSignal };

/** One person's way to a gateway, in session `s1` unless said otherwise. */
export function createUser(gateway: ChatGateway, token: string | undefined, sessionId = 's1') {
  function send(method: string, path: string, init: SendInit = {}, body?: unknown) {
    const headers = new Headers(init.headers);
    if (token !== undefined && !headers.has('authorization')) {
      headers.set('authorization', `Bearer ${token}`);
    }
    return gateway.fetch(
      new Request(`${ORIGIN}${path}${init.query ? `?${init.query}` : ''}`, {
        method,
        headers,
        ...(init.signal && { signal: init.signal }),
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    );
  }
  const session = `/api/sessions/${encodeURIComponent(sessionId)}`;
  const chat = (chatId: string) => `${session}/chat/${encodeURIComponent(chatId)}`;
  return {
    send,
    post: (body: unknown, init?: SendInit) => send('POST', `${session}/chat`, init, body),
    resume: (chatId = 'c1', init?: SendInit) => send('GET', `${chat(chatId)}/stream`, init),
    resumeAt: (cursor: string, chatId = 'c1', init: SendInit = {}) =>
      send('GET', `${chat(chatId)}/stream`, {
        ...init,
        headers: { ...init.headers, 'last-event-id': cursor },
      }),
    follow: (chatId = 'c1', init?: SendInit) => send('GET', `${chat(chatId)}/follow`, init),
    stop: (chatId = 'c1', body?: unknown) => send('POST', `${chat(chatId)}/stop`, {}, body),
    answer: (questionId: unknown, answer: unknown, chatId = 'c1') =>
      send('POST', `${chat(chatId)}/answer`, {}, { questionId, answer }),
    answerWith: (body: unknown, chatId = 'c1') => send('POST', `${chat(chatId)}/answer`, {}, body),
    steer: (body: unknown, chatId = 'c1') => send('POST', `${chat(chatId)}/steer`, {}, body),
    messages: () => send('GET', `${session}/messages`),
    channels: () => send('GET', `${session}/channels`),
    async metrics(): Promise<Record<string, number>> {
      return parseMetrics(await (await send('GET', '/metrics')).text());
    },
  };
}

/** What a stock client posts for one message. */
export function chatBody(text: string, more: object = {}) {
  return {
    id: 'c1',
    trigger: 'submit-message',
    messages: [{ id: `u-${text}`, role: 'user', parts: [{ type: 'text', text }] }],
    ...more,
  };
}

/** What a stock client posts to regenerate the answer to a message, by default the last one. */
export const regenerateBody = (text: string, more: object = {}) =>
  chatBody(text, { trigger: 'regenerate-message', ...more });

/** What a stock client posts to edit the message with this id. */
export const editBody = (id: string, text: string) => ({
  ...chatBody(text),
  messageId: id,
  messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }],
});

export type SseReader = {
  /** Everything so far, `[DONE]` included. */
  frames: SseFrame[];
  /** The bytes as they came. */
  raw: () => string;
  chunks: () => Chunk[];
  text: () => string;
  until<T>(find: () => T | undefined | false | null | ''): Promise<T>;
  /** Settles with the end of the body. */
  ended: Promise<void>;
  leave(): Promise<void>;
};

/** Reads a response as it arrives; one without a body has no frames. */
export function openSse(response: Response): SseReader {
  const frames: SseFrame[] = [];
  const reader = (
    response.body ?? (new Response('').body as ReadableStream<Uint8Array>)
  ).getReader();
  const decoder = createSseDecoder({ frame: (frame) => void frames.push(frame) });
  const utf8 = new TextDecoder();
  let raw = '';
  const read = async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      decoder.push(next.value);
      raw += utf8.decode(next.value, { stream: true });
    }
  };
  const chunks = () =>
    frames.flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data) as Chunk]));
  return {
    frames,
    raw: () => raw,
    chunks,
    text: () => chunks().reduce((all, c) => all + (c.type === 'text-delta' ? c.delta : ''), ''),
    until: (find) => eventually(find, 'frames', () => raw),
    ended: read(),
    leave: () => reader.cancel(),
  };
}

/** All chunks of a response that ends by itself. */
export async function readChunks(response: Response): Promise<Chunk[]> {
  const sse = openSse(response);
  await sse.ended;
  return sse.chunks();
}

type Awaitable<T> = T | Promise<T>;

/** Waits until something is there, and gives it. */
export async function eventually<T>(
  find: () => Awaitable<T | undefined | false | null | ''>,
  what = 'it',
  explain: () => string = () => '',
): Promise<T> {
  const deadline = Date.now() + 5_000;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`Waited in vain for ${what}. ${explain()}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** The body of a refusal; says so where it is not the shape every refusal has. */
export async function refusal(response: Response): Promise<{ status: number; code: string }> {
  const body = await response.json();
  expect(body).toEqual({
    code: expect.any(String),
    message: expect.any(String),
    remedy: expect.any(String),
  });
  return { status: response.status, ...body };
}

/** Turns promises into something a test can look at without waiting. */
export function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return Promise.race([promise, new Promise((go) => setTimeout(go, 20, pending))]).then(
    (value) => value !== pending,
    () => true,
  );
}

/** Keeps every call, as it was. */
export function createLogSpy() {
  const lines: Array<{ level: string; message: string; details: Record<string, unknown> }> = [];
  const at =
    (level: string) =>
    (message: string, details: Record<string, unknown> = {}) =>
      void lines.push({ level, message, details });
  return { lines, logger: { info: at('info'), warn: at('warn'), error: at('error') } };
}
