import type { Trigger } from '../core/chat-request.ts';
import type { AiSdkMajor, PortableChunk } from '../core/chunks.ts';
import { createId } from '../core/id.ts';
import type { MessageLike, UIMessage } from '../core/message.ts';
import { AI_SDK_WIRE, type Wire } from './chunk-groups.ts';
import {
  type AnswerResult,
  chatUrl,
  type Resolvable,
  resolve,
  toAnswerResult,
  toRequestError,
} from './http.ts';
import { type Backoff, type ReconnectEvent, type TurnRequest, TurnStream } from './turn-stream.ts';

type HeadersLike = Record<string, string> | Headers;

/** What `sendMessage` and its like take as a second argument. */
type CallOptions = { headers?: HeadersLike; body?: object; metadata?: unknown };

type SendOptions<M> = CallOptions & {
  trigger: Trigger;
  chatId: string;
  messageId: string | undefined;
  messages: M[];
  abortSignal: AbortSignal | undefined;
};

type ReconnectOptions = CallOptions & { chatId: string; abortSignal?: AbortSignal | undefined };

type Prepared = { headers?: HeadersInit; credentials?: RequestCredentials; api?: string };

/** What there is to prepare a request from, as in the AI SDK's `DefaultChatTransport`. */
type Preparation = {
  id: string;
  requestMetadata: unknown;
  body: Record<string, unknown>;
  credentials: RequestCredentials | undefined;
  headers: Record<string, string>;
  api: string;
};

export type SabirChatTransportOptions<M> = {
  /** Where messages are posted, for example `/api/sessions/s1/chat`. */
  api: string;
  /** A function is asked before every request, reconnects included: a good place for a token. */
  headers?: Resolvable<HeadersLike>;
  /** More for the body of what is sent. */
  body?: Resolvable<object>;
  credentials?: Resolvable<RequestCredentials>;
  fetch?: typeof globalThis.fetch;
  /** Which AI SDK major reads this; where it is not said, the server sends what all of them parse. */
  aiSdk?: AiSdkMajor;
  /**
   * A connection that is silent for this long is dead. Default 45,000: three missed signs of life.
   * 0 for servers that send none.
   */
  silenceMs?: number;
  backoff?: Backoff;
  /** For a line like "Reconnecting…". */
  onReconnect?: (event: ReconnectEvent) => void;
  /**
   * `useChat`'s own `stop()` stops the turn for everybody, not only the watching. So does leaving
   * the page where AI SDK 7 aborts on unmount. Default false; prefer `transport.stop(chat.id)`.
   */
  stopOnAbort?: boolean;
  /** As in `DefaultChatTransport`. Asked again for a retry, which sends the first `body` again. */
  prepareSendMessagesRequest?: (
    options: Preparation & { messages: M[]; trigger: Trigger; messageId: string | undefined },
  ) => (Prepared & { body: object }) | PromiseLike<Prepared & { body: object }>;
  /** As in `DefaultChatTransport`. Asked for every reconnect. */
  prepareReconnectToStreamRequest?: (options: Preparation) => Prepared | PromiseLike<Prepared>;
};

/** What became of a message for a running turn. */
export type SteerResult = { turnId: string; delivered: boolean };

/** What a server calls a chat in what is sent to it, and how it answers. */
export type Dialect = { chatKey: string; createWire(): Wire<unknown> };

const AI_SDK: Dialect = { chatKey: 'id', createWire: () => AI_SDK_WIRE };

/** What became of an answer; `answered` by somebody else comes with the answer that won. */

/**
 * `useChat` on a Sabir gateway. A connection that drops is taken up again where it broke off,
 * inside the one stream that `useChat` reads; a page that was reloaded resumes the turn.
 *
 * An abort only means that this viewer left. To stop the turn for everybody, say so:
 *
 * @example
 * const transport = new SabirChatTransport({
 *   api: '/api/sessions/s1/chat',
 *   headers: async () => ({ authorization: `Bearer ${await getToken()}` }),
 * });
 * const chat = useChat({ id: 'c1', transport, resume: true });
 * const stop = () => transport.stop(chat.id);
 */
export class SabirChatTransport<M extends MessageLike = UIMessage> {
  /** `reconnectToStream` replays the turn from its first chunk. */
  readonly resumeStreamIsReplay = true;
  #options: SabirChatTransportOptions<M>;
  #dialect: Dialect;
  /** Where each chat was last sent to: the application may have chosen another address. */
  #apis = new Map<string, string>();

  /** Of a server that speaks another dialect: `ContractChatTransport`. */
  constructor(options: SabirChatTransportOptions<M>, dialect: Dialect = AI_SDK) {
    this.#options = options;
    this.#dialect = dialect;
  }

  /** Rejects with the server's own words where it refuses; see `ChatRequestError`. */
  async sendMessages(options: SendOptions<M>): Promise<ReadableStream<PortableChunk>> {
    const { chatId, abortSignal } = options;
    let { api } = this.#options;
    let body: string | undefined;
    // Tells a second try from another click: both have the same words.
    const attempt = createId();
    const stream = await this.#open(chatId, abortSignal, true, async (cursor) => {
      if (cursor !== undefined) return this.#resumeRequest(api, options, cursor);
      const request = await this.#sendRequest(options);
      // The same words every time: that is how the server knows a second try for what it is.
      body ??= JSON.stringify(request.body);
      request.init.headers.set('x-sabir-attempt', attempt);
      api = request.url;
      this.#apis.set(chatId, api);
      return [api, { ...request.init, body }];
    });
    // Only a question for what already runs can be answered with nothing.
    return stream as ReadableStream<PortableChunk>;
  }

  /** The chat's running turn from its first chunk; null if none is running. */
  async reconnectToStream(
    options: ReconnectOptions,
  ): Promise<ReadableStream<PortableChunk> | null> {
    const { chatId, abortSignal } = options;
    return this.#open(chatId, abortSignal, false, (cursor) =>
      this.#resumeRequest(this.#apiOf(chatId), options, cursor),
    );
  }

  /**
   * Stops the chat's running turn for all its viewers. Their streams end with what there is. False
   * if nothing was running.
   */
  async stop(chatId: string): Promise<boolean> {
    return (await this.#post(chatId, 'stop')) !== '';
  }

  /** Answers a question of the running turn. The first answer wins. */
  async answer(
    chatId: string,
    { questionId, answer }: { questionId: string; answer: unknown },
  ): Promise<AnswerResult> {
    return toAnswerResult(this.#post(chatId, 'answer', { questionId, answer }));
  }

  /**
   * Sends a message into the chat's running turn. `delivered` says whether the agent has taken it: then every viewer sees
   * it in the answer. Where it has not, the message waits in the session's queue, and `turnId` is its own turn; a server
   * without a queue refuses it with `cannot-steer`. The same id sent again is the same message.
   */
  async steer(chatId: string, message: M | { text: string; id?: string }): Promise<SteerResult> {
    const json = 'parts' in message ? { message } : message;
    return JSON.parse(await this.#post(chatId, 'steer', json)) as SteerResult;
  }

  #apiOf(chatId: string): string {
    return this.#apis.get(chatId) ?? this.#options.api;
  }

  async #open(
    chatId: string,
    signal: AbortSignal | undefined,
    isSend: boolean,
    request: (cursor: string | undefined) => Promise<[string, TurnRequest]>,
  ): Promise<ReadableStream<PortableChunk> | null> {
    const { fetch, silenceMs = 45_000, backoff = {}, stopOnAbort } = this.#options;
    const stream = new TurnStream({
      wire: this.#dialect.createWire(),
      request,
      isSend,
      signal,
      onAbort: () => {
        // The page may be on its way out: the request outlives it.
        if (stopOnAbort) this.#post(chatId, 'stop', {}, true).catch(() => undefined);
      },
      fetch,
      silenceMs,
      backoff,
      onReconnect: (status, attempt) => {
        try {
          this.#options.onReconnect?.({ chatId, status, attempt });
        } catch {
          // What a page makes of the news does not change the stream.
        }
      },
    });
    // The server sends what the client's major parses, or what all of them do.
    return (await stream.open()) as ReadableStream<PortableChunk> | null;
  }

  async #sendRequest(options: SendOptions<M>) {
    const { chatId, messages, trigger, messageId } = options;
    const preparation = await this.#prepare(options);
    const prepared = await this.#options.prepareSendMessagesRequest?.({
      ...preparation,
      messages,
      trigger,
      messageId,
    });
    const body = prepared?.body ?? {
      ...preparation.body,
      [this.#dialect.chatKey]: chatId,
      messages,
      trigger,
      messageId,
    };
    return {
      url: prepared?.api ?? preparation.api,
      body,
      init: this.#init('POST', preparation, prepared),
    };
  }

  async #resumeRequest(
    api: string,
    options: ReconnectOptions,
    cursor: string | undefined,
  ): Promise<[string, TurnRequest]> {
    const preparation = await this.#prepare(options);
    const prepared = await this.#options.prepareReconnectToStreamRequest?.(preparation);
    const init = this.#init('GET', preparation, prepared);
    if (cursor !== undefined) init.headers.set('last-event-id', cursor);
    return [prepared?.api ?? urlOf(api, options.chatId, 'stream'), init];
  }

  async #prepare({ chatId, headers, body, metadata }: ReconnectOptions): Promise<Preparation> {
    const options = this.#options;
    const all = new Headers(await resolve(options.headers ?? {}));
    for (const [name, value] of new Headers(headers)) all.set(name, value);
    return {
      id: chatId,
      requestMetadata: metadata,
      body: { ...(await resolve(options.body ?? {})), ...body },
      credentials: options.credentials && (await resolve(options.credentials)),
      headers: Object.fromEntries(all),
      api: options.api,
    };
  }

  #init(method: string, preparation: Preparation, prepared: Prepared = {}): TurnRequest {
    const headers = new Headers(prepared.headers ?? preparation.headers);
    if (method === 'POST' && !headers.has('content-type')) {
      headers.set('content-type', 'application/json');
    }
    const { aiSdk } = this.#options;
    if (aiSdk !== undefined) headers.set('x-sabir-ai-sdk', String(aiSdk));
    const credentials = prepared.credentials ?? preparation.credentials;
    return { method, headers, ...(credentials && { credentials }) };
  }

  async #post(
    chatId: string,
    verb: 'stop' | 'answer' | 'steer',
    json = {},
    keepalive = false,
  ): Promise<string> {
    const url = urlOf(this.#apiOf(chatId), chatId, verb);
    const init = this.#init('POST', await this.#prepare({ chatId }));
    // Patched by other libraries at times, so it is looked up late.
    const fetch = this.#options.fetch ?? globalThis.fetch;
    const response = await fetch(url, { ...init, body: JSON.stringify(json), keepalive });
    if (!response.ok) throw await toRequestError(response);
    // Read to its end: its connection can be used again.
    return response.text();
  }
}

/** Parsers take dot segments for a way up, even encoded ones. */
function urlOf(api: string, chatId: string, verb: string): string {
  if (/^\.{0,2}$/.test(chatId)) throw new TypeError(`"${chatId}" cannot be the id of a chat.`);
  return chatUrl(api, chatId, verb);
}
