import type { ContractEvent, ContractMeta, ContractStatus } from '../contract/events.ts';
import { createReducer } from '../contract/reduce.ts';
import type { MessageLike, UIMessage } from '../message.ts';
import type { Usage } from '../outcome.ts';
import type { SseFrame } from '../sse.ts';
import { followTurn } from './follow-turn.ts';
import { chatUrl, type Resolvable, readJson, resolve, toRequestError } from './http.ts';
import type { AnswerResult } from './sabir-chat-transport.ts';
import { toUserMessage, type UserInput } from './user-message.ts';

export type ChatStatus = 'ready' | 'submitted' | 'streaming' | 'error';

/** What is on the screen. A new object whenever something in it has changed. */
export type ChatState<M extends MessageLike = UIMessage> = {
  readonly messages: M[];
  readonly status: ChatStatus;
  /** What the agent says it is doing, for an overlay. */
  readonly runStatus: ContractStatus | undefined;
  readonly meta: ContractMeta | undefined;
  /** Its message is fit for people; `code` and `retryable` tell more where they are known. */
  readonly error: Error | undefined;
};

export type ChatFinish<M extends MessageLike = UIMessage> = {
  /** What was answered, if anything was. */
  message: M | undefined;
  messages: M[];
  finishReason?: string | undefined;
  usage?: Usage | undefined;
  /** Somebody here asked for it. */
  isAborted: boolean;
  isError: boolean;
};

export type ChatCall = { headers?: HeadersInit; body?: object };

export type ChatStreamOptions<M extends MessageLike = UIMessage> = {
  /** Where messages are posted, for example `/api/chat`. */
  api: string;
  /** The chat. Unless given, one that nobody can guess. */
  id?: string;
  initialMessages?: M[];
  /** A function is asked before every request, reconnects included: a good place for a token. */
  headers?: Resolvable<HeadersInit>;
  /** More for the body of what is sent: `projectId`, `toolChoice`, `selectedBusiness`. */
  body?: Resolvable<object>;
  fetch?: typeof globalThis.fetch;
  credentials?: RequestCredentials;
  /**
   * A connection that is silent for this long is dead. Default 45,000: three missed signs of life.
   * 0 for servers that send none.
   */
  silenceMs?: number;
  /** The longest wait before the next attempt to reconnect. Default 10,000. */
  maxWaitMs?: number;
  /** Every event, as it comes. */
  onEvent?: (event: ContractEvent) => void;
  /** Whatever went wrong; frames that nobody can read, once an answer. */
  onError?: (error: Error) => void;
  onFinish?: (finish: ChatFinish<M>) => void;
};

/** How long a server that is told to stop may take to end its stream. */
const STOP_MS = 2_000;

/**
 * A chat on a server that speaks the contract, without a framework: what `useChatStream` is made of.
 *
 * Applies every event as it comes; tells its listeners at once of whatever begins or ends and of
 * the first words, and of more words once a frame.
 *
 * @example
 * const chat = new ChatStream({ api: '/api/chat' });
 * chat.subscribe(() => render(chat.getSnapshot()));
 * await chat.sendMessage('Ahoy!');
 */
export class ChatStream<M extends MessageLike = UIMessage> {
  /** The server may choose another. */
  id: string;
  /** Frames of the last answer that could not be read and were passed over. */
  malformed = 0;
  // Declared, so that their names are not in the page once more.
  declare readonly getSnapshot: () => ChatState<M>;
  /** Gives a function that ends it. */
  declare readonly subscribe: (listener: () => void) => () => void;
  /** Options that may change while the chat goes on: all but where it is. Others stay as they are. */
  declare readonly configure: (options: Partial<ChatStreamOptions<M>>) => void;
  /**
   * Shows the message at once and sends it; while an answer is still coming, when that has ended.
   * Resolves when the answer is over, however it ended. With the `messageId` of a message that was
   * sent before, it takes that one's place, and what followed it is gone.
   */
  declare readonly sendMessage: (input: UserInput<M>, call?: ChatCall) => Promise<void>;
  /** Another answer to the last message, or in place of the one given. */
  declare readonly regenerate: (which?: { messageId?: string }, call?: ChatCall) => Promise<void>;
  /** Takes up the chat's running answer, from its beginning: after a reload. */
  declare readonly resume: () => Promise<void>;
  declare readonly setMessages: (messages: M[] | ((messages: M[]) => M[])) => void;
  /** Stops the answer, on the server too, whoever watches it. Resolves when that has heard. */
  declare readonly abort: () => Promise<void>;
  /** Answers a question of the running turn. The first answer wins. */
  declare readonly answer: (answer: {
    questionId: string;
    answer: unknown;
  }) => Promise<AnswerResult>;
  declare readonly clearError: () => void;
  /** Stops watching; the answer goes on without us. */
  declare readonly detach: () => void;

  // Variables, not fields: names of fields are not shortened, and this goes into a page.
  constructor(given: ChatStreamOptions<M>) {
    let options = given;
    const reducer = createReducer(options.initialMessages ?? []);
    const listeners = new Set<() => void>();
    /** What the next notification shows. */
    const next: { -readonly [Key in keyof ChatState<M>]: ChatState<M>[Key] } = {
      messages: reducer.messages,
      status: 'ready',
      runStatus: undefined,
      meta: undefined,
      error: undefined,
    };
    let shown: ChatState<M> = { ...next };
    let isScheduled = false;
    let wasDelta = false;
    let run: AbortController | undefined;
    let isAborting = false;
    let finish: Pick<ChatFinish, 'finishReason' | 'usage'>;
    /** What is sent waits for what was sent before it, and for what is taken up. */
    let last = Promise.resolve();
    let waiting = 0;
    this.id = options.id ?? createChatId();

    /** What a page makes of the news does not change the stream; it hears of its own mistake. */
    function call<T>(listener: ((value: T) => void) | undefined, value: T): void {
      try {
        listener?.(value);
      } catch (error) {
        setTimeout(() => {
          throw error;
        });
      }
    }

    function notify(patch?: Partial<ChatState<M>>): void {
      isScheduled = false;
      Object.assign(next, patch);
      next.messages = reducer.messages;
      shown = { ...next };
      for (const listener of listeners) call(listener, undefined);
    }

    const request = async (verb: string, init: RequestInit, cursor?: string) => {
      const { api, headers, credentials, fetch = globalThis.fetch } = options;
      const all = new Headers(await resolve(headers));
      for (const [name, value] of new Headers(init.headers)) all.set(name, value);
      if (init.body) all.set('content-type', 'application/json');
      if (cursor) all.set('last-event-id', cursor);
      // A promise to stop explicitly, and to come back by itself.
      all.set('x-sabir-detach', '1');
      all.set('x-sabir-resume', '1');
      const url = verb ? chatUrl(api, this.id, verb) : api;
      return fetch(url, { ...init, headers: all, ...(credentials && { credentials }) });
    };

    const post = (verb: string, body: object) =>
      request(verb, { method: 'POST', body: JSON.stringify(body) });

    function report(error: Error, isEnd: boolean): void {
      next.error = error;
      if (isEnd) next.status = 'error';
      call(options.onError, error);
    }

    /** What an event means for the run. True if it is the last. */
    const heed = ({ type, data }: ContractEvent): boolean => {
      if (type === 'done') {
        finish = data;
        next.status = 'ready';
      } else if (type === 'error') {
        const { message, code, retryable, terminal } = data;
        const error = new Error(typeof message === 'string' ? message : UNREADABLE);
        report(Object.assign(error, { code, retryable }), terminal !== false);
        return !!terminal;
      } else if (type === 'meta') {
        this.id = data.conversationId ?? this.id;
        next.meta = data;
      } else if (type === 'status') next.runStatus = data;
      else next.status = 'streaming';
      return type === 'done';
    };

    const take = (frames: SseFrame[]): boolean => {
      let isOver = false;
      let isUrgent = false;
      for (const frame of frames) {
        const event = toEvent(frame);
        if (event) {
          reducer.apply(event);
          const isDelta = event.type.endsWith('.delta');
          isUrgent ||= !isDelta || !wasDelta;
          wasDelta = isDelta;
          isOver ||= heed(event);
          call(options.onEvent, event);
        } else if (++this.malformed === 1) call(options.onError, new Error(UNREADABLE));
      }
      if (isUrgent) notify();
      else if (!isScheduled) {
        isScheduled = true;
        // Unless something else has shown it by then.
        nextFrame(() => isScheduled && notify());
      }
      return isOver;
    };

    /** One answer, from what is sent, or from what runs already, to its end. Never rejects. */
    const follow = async (sent?: ChatCall): Promise<void> => {
      const running = new AbortController();
      const { signal } = running;
      run = running;
      const { silenceMs = 45_000, maxWaitMs = 10_000 } = options;
      let isOver = false;
      isAborting = false;
      finish = {};
      this.malformed = 0;
      try {
        isOver = await followTurn({
          signal,
          silenceMs,
          maxWaitMs,
          take,
          connect: async (cursor, isFirst, link) => {
            const init: RequestInit = { signal: link, headers: sent?.headers ?? {} };
            let verb = 'stream';
            if (sent && isFirst) {
              const { messages } = reducer;
              const body = { ...(await resolve(options.body)), ...sent.body, messages };
              verb = '';
              init.method = 'POST';
              init.body = JSON.stringify({ sessionId: this.id, ...body });
            }
            const response = await request(verb, init, cursor);
            // Some servers answer with their page whatever they are asked.
            const isStream = /event-stream|^$/.test(response.headers.get('content-type') ?? '');
            if (!response.ok || !isStream) throw await toRequestError(response);
            return response;
          },
        });
      } catch (error) {
        // What the server told before it hung up is the better reason.
        if (next.status !== 'error') report(error as Error, true);
      }
      const isLeft = signal.aborted && !isAborting;
      const isError = next.status === 'error';
      // A server that is not heard any more may have left something open.
      reducer.close();
      running.abort();
      run = undefined;
      notify({ runStatus: undefined, ...(!isError && { status: 'ready' }) });
      // Nothing ran, or nobody waits for it here.
      if (isLeft || !(isOver || isError || isAborting)) return;
      const { messages } = shown;
      const message = messages.findLast(({ role }) => role === 'assistant');
      call(options.onFinish, { ...finish, message, messages, isAborted: isAborting, isError });
    };

    const queue = (task: () => Promise<void>): Promise<void> => {
      waiting++;
      last = last.then(task).then(() => {
        waiting--;
      });
      return last;
    };

    const send = (sent?: ChatCall, more?: object): Promise<void> =>
      queue(() => {
        notify({ status: 'submitted', error: undefined });
        return follow({ ...sent, body: { ...sent?.body, ...more } });
      });

    function cutAt(id: string | undefined): void {
      const { messages } = reducer;
      const at = messages.findIndex((message) => message.id === id);
      if (at >= 0) reducer.messages = messages.slice(0, at);
    }

    this.getSnapshot = () => shown;
    this.subscribe = (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
    this.configure = (changed) => {
      options = { ...options, ...changed };
    };
    this.sendMessage = async (input, sent) => {
      const message = await toUserMessage(input);
      cutAt(message.id);
      reducer.append(message);
      notify();
      return send(sent);
    };
    this.regenerate = (which, sent) => {
      // A message that was never answered keeps its place.
      const newest = reducer.messages.at(-1);
      const answer = newest?.role === 'assistant' ? newest : undefined;
      const messageId = which?.messageId ?? answer?.id;
      cutAt(messageId);
      return send(sent, { trigger: 'regenerate-message', messageId });
    };
    this.resume = async () => {
      if (!waiting) await queue(() => follow());
    };
    this.setMessages = (messages) => {
      const before = reducer.messages;
      reducer.messages = typeof messages === 'function' ? messages(before) : messages;
      notify();
    };
    this.abort = async () => {
      const running = run;
      isAborting = true;
      const cut = () => running?.abort();
      // What the server says last comes with the stream; one that says nothing is not waited for.
      const late = new Promise((resolve) => setTimeout(resolve, STOP_MS)).then(cut);
      await Promise.race([late, post('stop', {}).then(({ ok }) => ok || cut(), cut)]);
    };
    this.answer = async (answer) => {
      const response = await post('answer', answer);
      const { status } = response;
      if (status === 410) return { status: 'expired' };
      if (status === 409) return { status: 'answered', answer: (await readJson(response)).answer };
      if (!response.ok) throw await toRequestError(response);
      return { status: 'accepted' };
    };
    this.clearError = () => {
      notify({ error: undefined, ...(next.status === 'error' && { status: 'ready' }) });
    };
    this.detach = () => run?.abort();
  }
}

const UNREADABLE = 'The server sent something that cannot be read.';

function toEvent({ event: type, data: text }: SseFrame): ContractEvent | undefined {
  try {
    const data = JSON.parse(text);
    return type && data ? ({ type, data } as ContractEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** Long and random: whoever knows it can read the chat where nobody signs in. */
function createChatId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `chat_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

/** A page that is not shown has no frames. */
function nextFrame(run: () => unknown): void {
  if (globalThis.document?.hidden === false) requestAnimationFrame(run);
  else setTimeout(run, 16);
}
