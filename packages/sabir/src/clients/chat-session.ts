import type { AiSdkMajor } from '../core/chunks.ts';
import { hash128 } from '../core/hash.ts';
import { isObject } from '../core/loose.ts';
import type { MessageLike, UIMessage } from '../core/message.ts';
import type { SseFrame } from '../core/sse.ts';
import type { SessionEvent } from '../turns/agent.ts';
import {
  type ConnectionStatus,
  type FollowSink,
  type Link,
  readFollow,
} from './follow-connection.ts';
import {
  type FollowedTurn,
  FollowFeed,
  type Member,
  type Person,
  parse,
  type QueuedTurn,
  type TurnOpening,
  toCursor,
} from './follow-feed.ts';
import type { FollowOptions } from './follow-turn.ts';
import { readWhileAllowed } from './hidden-connections.ts';
import {
  type AnswerResult,
  chatUrl,
  type Resolvable,
  resolve,
  toAnswerResult,
  toRequestError,
} from './http.ts';
import { untilShown } from './page-events.ts';
import { canShare, shareFollow } from './share-follow.ts';
import { toUserMessage, type UserInput } from './user-message.ts';

/** A question of the running turn that waits for an answer. */
export type OpenQuestion = {
  questionId: string;
  text?: string;
  options?: unknown[];
  /** Milliseconds since 1970. */
  expiresAt?: number;
  toolCallId?: string;
  [field: string]: unknown;
};

/** How a session stands. A new object whenever something in it has changed. */
export type SessionState<M extends MessageLike = UIMessage> = {
  readonly connection: ConnectionStatus;
  /** Why the server refused. */
  readonly error: Error | undefined;
  /** The person on this page. Undefined until the server has answered. */
  readonly me: Member | undefined;
  /** Who is connected. */
  readonly people: Person[];
  /** Prompts that wait, in order. */
  readonly queue: QueuedTurn<M>[];
  /** The turn that runs. */
  readonly running: TurnOpening<M> | undefined;
  /** Open questions of the running turn. */
  readonly questions: OpenQuestion[];
  /** Whether there is an agent that can answer. */
  readonly isAgentConnected: boolean;
  /** The last session event of each type, such as `title` and `models`. */
  readonly events: Readonly<Record<string, SessionEvent>>;
};

export type ChatSessionOptions = FollowOptions & {
  /** Where messages are posted, for example `/api/sessions/s1/chat` or `/api/chat`. */
  api: string;
  /** The chat. */
  id: string;
  /** A function is asked before every request, reconnects included: a good place for a token. */
  headers?: Resolvable<HeadersInit>;
  credentials?: RequestCredentials;
  /** More for the body of what `enqueue` sends. */
  body?: Resolvable<object>;
  fetch?: typeof globalThis.fetch;
  /** Which AI SDK major reads the turns; unless given, the server sends what all of them parse. */
  aiSdk?: AiSdkMajor;
  /**
   * Tabs of one browser with the same `api`, `id` and this name share one connection. Give the user's id where people sign
   * in by cookie, which a page cannot read, or where each tab has a token of its own. `false` shares nothing.
   *
   * @default the headers of the first request where they have `authorization`, else nothing is shared
   */
  shareAs?: string | false;
  onEvent?: (event: SessionEvent) => void;
};

/** A page that leaves has not stopped anything: `stop` does. */
const DETACH = ['x-sabir-detach', '1'] as const;

/** A page has only a few requests at a time. */
const MOST_READ = 20;

const NOTHING = {
  me: undefined,
  people: [],
  queue: [],
  questions: [],
  agent: { isConnected: false },
};

/**
 * One person's place in a chat that others are in too: who is there, what waits, what is asked, and
 * which turn runs, over one connection for all tabs of a browser. Without a framework; `useSession`
 * is made of it.
 *
 * @example
 * const session = new ChatSession({ api: '/api/sessions/s1/chat', id: 'c1' });
 * const close = session.open();
 * session.subscribe(() => render(session.getSnapshot()));
 */
export class ChatSession<M extends MessageLike = UIMessage> {
  #options: ChatSessionOptions;
  #feed = new FollowFeed<M>({
    onChange: () => this.#show(),
    onFrame: (frame) => this.#readFrame(frame),
    onEvent: (event) => {
      this.#events = { ...this.#events, [event.type]: event };
      // What it throws must not break the connection.
      queueMicrotask(() => this.#options.onEvent?.(event));
    },
    onTurn: () => {
      this.#questions = [];
    },
  });
  #listeners = new Set<() => void>();
  #link: Link = { status: 'connecting' };
  #events: Record<string, SessionEvent> = {};
  #questions: OpenQuestion[] = [];
  #shown: SessionState<M>;
  #opened = 0;
  #leaving: AbortController | undefined;
  /** Requests of `fetch` whose turn is not known yet. */
  #unanswered = 0;
  /** The turns that requests of this page read, or have read, the latest last. */
  #read: string[] = [];
  /** What the chat's requests may call it. */
  #ids: string[];
  /** The last prompt of this page did not reach the server. */
  #isUnsent = false;

  constructor(options: ChatSessionOptions) {
    this.#options = options;
    this.#ids = [options.id];
    this.#shown = this.#toState();
  }

  getSnapshot = (): SessionState<M> => this.#shown;

  /** Gives a function that ends it. */
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Options that may change while the session is open: all but where it is. With another `shareAs`, or other headers that
   * are no function, it connects anew: another user may have signed in.
   */
  configure = (options: Partial<ChatSessionOptions>): void => {
    const before = identityOf(this.#options);
    this.#options = { ...this.#options, ...options };
    if (identityOf(this.#options) !== before) this.reconnect();
  };

  /** Connects anew, as after a sign-in. */
  reconnect = (): void => {
    if (this.#opened === 0) return;
    this.#leaving?.abort();
    this.#leaving = new AbortController();
    void this.#follow(this.#leaving.signal);
  };

  /** Connects. Gives a function that leaves; the connection ends when all who opened it have left. */
  open = (): (() => void) => {
    let isOpen = true;
    if (this.#opened++ === 0) this.reconnect();
    return () => {
      if (isOpen && --this.#opened === 0) this.#leaving?.abort();
      isOpen = false;
    };
  };

  /**
   * For the transport of the chat on this page, or for `ChatStream`. Sends the session's headers, and
   * serves a turn that others began out of the session's connection. Leaving a turn does not stop it.
   */
  fetch: typeof globalThis.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const isGet = (init?.method ?? 'GET') === 'GET';
    const isPrompt = !isGet && isSamePath(url, this.#options.api);
    const followed = isGet && this.#ids.some((id) => isSamePath(url, this.#urlOf('stream', id)));
    const headers = new Headers(await resolve(this.#options.headers));
    for (const [name, value] of new Headers(init?.headers)) headers.set(name, value);
    headers.set(...DETACH);
    const served = followed && this.#serve(headers.get('last-event-id'), init?.signal);
    if (served) return served;
    this.#unanswered++;
    try {
      const response = await this.#load(input, { ...init, headers });
      const turnId = response.headers.get('x-sabir-turn');
      if (turnId) this.#note(turnId);
      // The response goes on behind the question that this request has answered.
      const { turn } = this.#feed;
      if (turn && turn.opening.turnId === turnId) turn.pausedAt = undefined;
      if (isPrompt) this.#isUnsent = !response.ok;
      return response;
    } catch (error) {
      if (isPrompt) this.#isUnsent = true;
      throw error;
    } finally {
      this.#unanswered--;
      this.#tell();
    }
  };

  /** Asks for a turn without watching it: `running` and the chat show it when it begins. */
  enqueue = async (input: UserInput<M>): Promise<void> => {
    const { id, api, body } = this.#options;
    const message = await toUserMessage(input);
    const more = await resolve(body ?? {});
    const trigger = 'submit-message';
    const response = await this.#post(api, {
      ...more,
      id,
      sessionId: id,
      trigger,
      messages: [message],
    });
    await response.body?.cancel();
  };

  /** Takes a prompt that waits back: one's own, or any for an owner. */
  withdraw = async (turnId: string): Promise<void> => {
    await this.#post(this.#urlOf('stop'), { turnId });
  };

  /** Stops the running turn for all its viewers. */
  stop = async (): Promise<void> => {
    await this.#post(this.#urlOf('stop'), { turnId: this.#shown.running?.turnId });
  };

  /** Answers a question of the running turn. The first answer wins. */
  answer = (answer: { questionId: string; answer: unknown }): Promise<AnswerResult> =>
    toAnswerResult(this.#post(this.#urlOf('answer'), answer));

  /** All that was said, without the answer that is being written; undefined where nothing is kept. */
  history = async (): Promise<M[] | undefined> => {
    const headers = new Headers(await resolve(this.#options.headers));
    const response = await this.#load(this.#urlOf('messages'), { headers });
    if (response.ok) return response.json();
    const error = await toRequestError(response);
    if (response.status === 404) return undefined;
    throw error;
  };

  /** What `followChat` brings to the screen. */
  getFollowed = (): {
    history: string | undefined;
    turn: FollowedTurn<M> | undefined;
    /** A request of this page is under way: whose turn that is will be known soon. */
    isPending: boolean;
    /** A request of this page has read the turn, or does. */
    isRead: boolean;
    /** The prompt of this page's last request, while it waits in the queue. */
    waiting: QueuedTurn<M> | undefined;
    isUnsent: boolean;
  } => ({
    history: this.#feed.history,
    turn: this.#feed.turn,
    isPending: this.#unanswered > 0,
    isRead: this.#read.includes(this.#feed.turn?.opening.turnId ?? ''),
    waiting: this.#shown.queue.find(({ turnId }) => turnId === this.#read.at(-1)),
    isUnsent: this.#isUnsent,
  });

  /** A request of this page that waits for its turn is to end: the turn comes like those that others began. */
  forgetRequest = (turnId: string): void => {
    this.#read = this.#read.filter((id) => id !== turnId);
  };

  #note(turnId: string): void {
    this.#read = [...this.#read, turnId].slice(-MOST_READ);
  }

  #urlOf(verb: string, id = this.#options.id): string {
    return chatUrl(this.#options.api, id, verb);
  }

  #load(input: string | URL | Request, init: RequestInit): Promise<Response> {
    const { credentials } = this.#options;
    // Looked up late: other libraries patch it.
    const load = this.#options.fetch ?? globalThis.fetch;
    return load(input, { ...(credentials && { credentials }), ...init });
  }

  async #post(url: string, json: object): Promise<Response> {
    const headers = new Headers(await resolve(this.#options.headers));
    headers.set('content-type', 'application/json');
    headers.set(...DETACH);
    const response = await this.#load(url, { method: 'POST', headers, body: JSON.stringify(json) });
    if (!response.ok) throw await toRequestError(response);
    return response;
  }

  /** The turn out of the session's connection, if it is there. */
  #serve(cursor: string | null, signal: AbortSignal | null | undefined): Response | undefined {
    const { turn } = this.#feed;
    if (!turn) return undefined;
    const { offer } = turn;
    turn.offer = undefined;
    if (!cursor && offer === 'nothing') return new Response(null, { status: 204 });
    const { turnId, seq } = cursor ? toCursor(cursor) : { turnId: turn.opening.turnId, seq: 0 };
    if (turnId !== turn.opening.turnId) return undefined;
    // All of it was read: only the server may have more.
    if (turn.isOver && (cursor ? seq >= turn.seq : !offer)) return undefined;
    this.#note(turnId);
    return turn.toResponse(seq, signal ?? undefined);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { aiSdk, silenceMs = 45_000, maxWaitMs } = this.#options;
    const url = this.#urlOf('follow');
    const connect = async (cursor: string | undefined, link: AbortSignal) => {
      const headers = new Headers(await resolve(this.#options.headers));
      if (cursor) headers.set('last-event-id', cursor);
      if (aiSdk) headers.set('x-sabir-ai-sdk', `${aiSdk}`);
      return this.#load(url, { headers, signal: link });
    };
    const times = { silenceMs, ...(maxWaitMs !== undefined && { maxWaitMs }) };
    const read = async (sink: FollowSink, reading: AbortSignal) => {
      if (this.#link.status === 'refused') sink.onLink({ status: 'connecting' });
      try {
        await readWhileAllowed(reading, (allowed) =>
          readFollow(times, connect, this.#feed.cursor, sink, allowed),
        );
        return false;
      } catch (error) {
        sink.onLink({ status: 'refused', error: error as Error });
        return true;
      }
    };
    const sink: FollowSink = {
      onFrames: (frames) => this.#feed.take(frames),
      onLink: (link) => {
        if (signal.aborted) return;
        this.#link = link;
        this.#show();
      },
    };
    // Where the headers cannot be had now, they are asked for again with each attempt to connect.
    const shared = await this.#nameShare(url).catch(() => undefined);
    if (shared && !signal.aborted) {
      const getFrames = () => this.#feed.toFrames();
      return shareFollow({ name: shared, silenceMs, read, getFrames, sink, signal });
    }
    // The person may sign in while the page is hidden.
    while (!signal.aborted) if (await read(sink, signal)) await untilShown(signal);
  }

  /** What names the tabs that share their connection; undefined where this one does not share. */
  async #nameShare(url: string): Promise<string | undefined> {
    const { aiSdk, shareAs } = this.#options;
    if (shareAs === false || !canShare()) return undefined;
    const headers = new Headers(shareAs ? {} : await resolve(this.#options.headers));
    // Pages cannot read a cookie that signs in: two tabs may belong to two users.
    if (!shareAs && !headers.has('authorization')) return undefined;
    const place = new URL(url, globalThis.location?.href).href;
    return `sabir:${hash128([place, aiSdk, shareAs || [...headers].join('\n')].join('\n'))}`;
  }

  /** A question on either wire: a `question` event, or a `data-question` chunk. */
  #readFrame({ event, data: text }: SseFrame): void {
    const isMeta = event === 'meta';
    if (!isMeta && !text.includes('question')) return;
    const data = parse(text);
    if (!isObject(data)) return;
    // `ChatStream` goes on under the id that the server gives the conversation.
    if (isMeta) this.#ids = [this.#options.id, String(data.conversationId)];
    const question = event === 'question' ? data : data.type === 'data-question' && data.data;
    if (!isObject(question)) return;
    const questionId = String(question.questionId ?? data.id);
    this.#questions = this.#questions.filter((one) => one.questionId !== questionId);
    if ((question.status ?? 'open') === 'open') this.#questions.push({ ...question, questionId });
    this.#show();
  }

  #toState(): SessionState<M> {
    const { turn, state } = this.#feed;
    const { me, people, queue, agent } = state ?? NOTHING;
    const isRunning = turn && !turn.isOver;
    return {
      connection: this.#link.status,
      error: this.#link.error,
      me,
      people,
      queue,
      running: isRunning ? turn.opening : undefined,
      questions: isRunning ? this.#questions : NOTHING.questions,
      isAgentConnected: agent.isConnected,
      events: this.#events,
    };
  }

  #show(): void {
    const next = this.#toState();
    const isSame = Object.entries(next).every(
      ([key, value]) => value === this.#shown[key as keyof SessionState],
    );
    if (!isSame) this.#shown = next;
    this.#tell();
  }

  #tell(): void {
    // What one throws must not end the connection.
    for (const listener of this.#listeners) queueMicrotask(listener);
  }
}

/** Who this page belongs to, as far as its options say so. */
function identityOf({ shareAs, headers }: ChatSessionOptions): string {
  if (typeof headers === 'function') return JSON.stringify([shareAs]);
  return JSON.stringify([shareAs, headers instanceof Headers ? [...headers] : headers]);
}

function isSamePath(one: string, other: string): boolean {
  const pathOf = (url: string) => {
    const { origin, pathname } = new URL(url, globalThis.location?.href);
    return origin + pathname;
  };
  return pathOf(one) === pathOf(other);
}
