import type { ContractEvent, ContractMeta, ContractStatus } from '../contract/events.ts';
import { createReducer } from '../contract/reduce.ts';
import { createId } from '../id.ts';
import type { MessageLike, UIMessage } from '../message.ts';
import type { Usage } from '../outcome.ts';
import { type FollowOptions, followTurn, pause } from './follow-turn.ts';
import {
  type AnswerResult,
  chatUrl,
  type Resolvable,
  resolve,
  toAnswerResult,
  toRequestError,
} from './http.ts';
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

export type ChatStreamOptions<M extends MessageLike = UIMessage> = FollowOptions & {
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
  /** Every event, as it comes. */
  onEvent?: (event: ContractEvent) => void;
  /** Whatever went wrong; frames that nobody can read, once an answer. */
  onError?: (error: Error) => void;
  onFinish?: (finish: ChatFinish<M>) => void;
};

type Actions<M extends MessageLike> = Omit<ChatStream<M>, 'id' | 'malformed'>;
type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

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
  /** Whether anybody has subscribed. */
  declare readonly isWatched: () => boolean;
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
  /** An event that came another way than from `api`: over a WebSocket, or out of a worker. */
  declare readonly apply: (event: ContractEvent) => void;
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
    /** What the next notification shows, beside the messages. */
    const next = { status: 'ready' } as Writable<ChatState<M>>;
    let shown: ChatState<M>;
    let isScheduled = false;
    let isUrgent = false;
    let wasDelta = false;
    /** The answer that is being followed, and how it ended. */
    let run: AbortController | undefined;
    let finish: Pick<ChatFinish, 'finishReason' | 'usage'> | undefined;
    let isAborting = false;
    /** What is sent waits for what was sent before it, and for what is taken up. */
    let last = Promise.resolve();
    let waiting = 0;
    /** Messages that wait: shown behind what is there, and not yet part of it. */
    let pending: M[] = [];
    this.id = options.id || `chat_${createId()}`;

    /** Takes a message out, with all that follows, and puts others there, or at the end. */
    const cut = (list: M[], id: string | undefined, ...others: M[]): M[] => {
      const at = list.findIndex((message) => message.id === id);
      return list.slice(0, at < 0 ? undefined : at).concat(others);
    };

    const all = () => pending.reduce((list, one) => cut(list, one.id, one), reducer.messages);

    /** What was answered last, unless something was asked since. */
    const answered = () => {
      const newest = reducer.messages.at(-1);
      return newest?.role === 'assistant' ? newest : undefined;
    };

    const notify = (patch?: Partial<ChatState<M>>): void => {
      isScheduled = isUrgent = false;
      shown = { ...Object.assign(next, patch), messages: all() };
      for (const listener of listeners) queueMicrotask(listener);
    };
    notify();

    const request = async (
      verb: string,
      body?: object,
      headers?: HeadersInit,
      signal?: AbortSignal,
      cursor?: string,
    ): Promise<Response> => {
      const { api, credentials, fetch = globalThis.fetch } = options;
      const response = await fetch(verb ? chatUrl(api, this.id, verb) : api, {
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
        ...(credentials && { credentials }),
        signal: signal ?? null,
        headers: {
          ...toRecord(await resolve(options.headers)),
          ...toRecord(headers),
          ...(body && { 'content-type': 'application/json' }),
          ...(cursor && { 'last-event-id': cursor }),
          // A promise to stop explicitly, and to come back by itself.
          'x-sabir-detach': '1',
          'x-sabir-resume': '1',
        },
      });
      // Some servers answer with their page whatever they are asked.
      const isPage = /html/.test(`${response.headers.get('content-type')}`);
      if (!response.ok || isPage) throw await toRequestError(response);
      return response;
    };

    const fail = (error: Error, isEnd: boolean): void => {
      next.error = error;
      if (isEnd) next.status = 'error';
      call(options.onError, error);
    };

    const take = (event: ContractEvent): void => {
      const { type, data } = event;
      reducer.apply(event);
      const isDelta = type.endsWith('.delta');
      isUrgent ||= !isDelta || !wasDelta;
      wasDelta = isDelta;
      if (type === 'error') {
        const { message, code, retryable, terminal } = data;
        const error = new Error(typeof message === 'string' ? message : UNREADABLE);
        fail(Object.assign(error, { code, retryable }), terminal !== false);
        if (terminal) finish = {};
      } else if (type === 'meta') {
        next.meta = data;
        this.id = data.conversationId ?? this.id;
      } else if (type === 'status') next.runStatus = data;
      else if (type === 'done') {
        finish = data;
        next.status = 'ready';
      } else next.status = 'streaming';
      call(options.onEvent, event);
    };

    const settle = (): boolean => {
      if (isUrgent) notify();
      else if (!isScheduled) {
        isScheduled = true;
        // Unless something else has shown it by then.
        nextFrame(() => isScheduled && notify());
      }
      return !!finish;
    };

    /** One answer, from what is sent, or from what runs already, to its end. Never rejects. */
    const follow = async (sent?: ChatCall): Promise<void> => {
      const running = new AbortController();
      const { signal } = running;
      run = running;
      finish = undefined;
      this.malformed = 0;
      // Somebody may have thought better of it already.
      if (isAborting) running.abort();
      try {
        await followTurn(options, {
          signal,
          settle,
          take: ({ event: type, data: text }) => {
            const data = parse(text);
            if (type && data) take({ type, data } as ContractEvent);
            else if (++this.malformed === 1) call(options.onError, new Error(UNREADABLE));
          },
          connect: async (cursor, link) => {
            const isSend = sent && !cursor;
            const { messages } = reducer;
            const body = isSend
              ? {
                  sessionId: this.id,
                  ...Object(await resolve(options.body)),
                  ...sent.body,
                  messages,
                }
              : undefined;
            const response = await request(
              isSend ? '' : 'stream',
              body,
              sent?.headers,
              link,
              cursor,
            );
            // The server was told to stop before it knew of this.
            if (isAborting) request('stop', {}).catch(() => undefined);
            return response;
          },
        });
      } catch (error) {
        // What the server told before it hung up is the better reason.
        if (next.status !== 'error') fail(error as Error, true);
      }
      const isError = next.status === 'error';
      // A server that is not heard any more may have left something open.
      reducer.close();
      run = undefined;
      if (!isError) next.status = 'ready';
      notify({ runStatus: undefined });
      const { messages } = reducer;
      // Unless nothing ran, or nobody waits for it here.
      if (isAborting || (!signal.aborted && (finish || isError))) {
        const message = answered();
        call(options.onFinish, {
          ...(finish as ChatFinish | undefined),
          message,
          messages,
          isAborted: isAborting,
          isError,
        });
      }
      running.abort();
    };

    const queue = (task: () => Promise<void>): Promise<void> => {
      waiting++;
      const done = last.then(task).finally(() => {
        waiting--;
        isAborting = false;
      });
      last = done.catch(() => undefined);
      return done;
    };

    const ask = (messages: M[], sent: ChatCall = {}): Promise<void> => {
      reducer.messages = messages;
      notify({ status: 'submitted', error: undefined });
      return follow(sent);
    };

    Object.assign(this, {
      getSnapshot: () => shown,
      subscribe(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      isWatched: () => listeners.size > 0,
      apply(event) {
        take(event);
        settle();
      },
      configure(changed) {
        options = { ...options, ...changed };
      },
      sendMessage(input, sent) {
        const made = toUserMessage(input).then((message) => {
          pending = [...pending, message];
          notify();
          return message;
        });
        made.catch(() => undefined);
        return queue(async () => {
          const message = await made;
          // Somebody may have taken it out again.
          if (!pending.includes(message)) return;
          pending = pending.filter((one) => one !== message);
          await ask(cut(reducer.messages, message.id, message), sent);
        });
      },
      regenerate: (which, sent) =>
        queue(() => {
          // A message that was never answered keeps its place.
          const messageId = which?.messageId ?? answered()?.id;
          const body = { ...sent?.body, trigger: 'regenerate-message', messageId };
          return ask(cut(reducer.messages, messageId), { ...sent, body });
        }),
      async resume() {
        if (!waiting) await queue(() => follow());
      },
      setMessages(messages) {
        const list = typeof messages === 'function' ? messages(all()) : messages;
        // One that waits and is not among them any more is not sent.
        pending = pending.filter((message) => list.includes(message));
        reducer.messages = list.filter((message) => !pending.includes(message));
        notify();
      },
      async abort() {
        const running = run;
        isAborting = waiting > 0;
        const leave = () => running?.abort();
        // What the server says last comes with the stream; one that says nothing is not waited for.
        await Promise.race([pause(STOP_MS).then(leave), request('stop', {}).catch(leave)]);
      },
      answer: (answer) => toAnswerResult(request('answer', answer)),
      clearError() {
        if (!run) next.status = 'ready';
        notify({ error: undefined });
      },
      detach: () => run?.abort(),
    } satisfies Actions<M>);
  }
}

const UNREADABLE = 'The server sent something that cannot be read.';

/** What a page makes of the news does not change the stream; it hears of its own mistake. */
function call<T>(listener: ((value: T) => void) | undefined, value: T): void {
  if (listener) queueMicrotask(() => listener(value));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const toRecord = (headers?: HeadersInit) => Object.fromEntries(new Headers(headers));

/** A page that is not shown has no frames. */
function nextFrame(run: () => unknown): void {
  if (globalThis.document?.hidden === false) requestAnimationFrame(run);
  else setTimeout(run, 16);
}
