import type { Trigger } from '../core/chat-request.ts';
import { createId } from '../core/id.ts';
import type { MessageLike, UIMessage } from '../core/message.ts';
import type { Usage } from '../core/outcome.ts';
import type { SseFrame } from '../core/sse.ts';
import type { ContractEvent, ContractMeta, ContractStatus } from '../wires/contract/events.ts';
import { createReducer, lastAnswer } from '../wires/contract/reduce.ts';
import { type FollowOptions, followTurn } from './follow-turn.ts';
import {
  type AnswerResult,
  chatUrl,
  type Resolvable,
  resolve,
  toAnswerResult,
  toError,
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
  // Declared, so that their names are not in the page once more.
  /** The server may choose another. */
  declare id: string;
  /** Frames of the last answer that could not be read and were passed over. */
  malformed = 0;
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
  constructor(options: ChatStreamOptions<M>) {
    const reducer = createReducer(options.initialMessages);
    const listeners = new Set<() => void>();
    /** What the next notification shows, beside the messages. */
    const next = { status: 'ready' } as Writable<ChatState<M>>;
    let shown: ChatState<M>;
    /** What waits to be shown: nothing, what can wait for the next frame, what cannot. */
    let due: 0 | 1 | 2;
    let wasDelta: boolean | undefined;
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

    /** What comes before a message, or everything. */
    const before = (list: M[], id: string | undefined): M[] => {
      const at = list.findIndex((message) => message.id === id);
      return at < 0 ? list : list.slice(0, at);
    };

    /** A message at its place, or at the end, and nothing behind it. */
    const add = (list: M[], message: M): M[] => [...before(list, message.id), message];

    const all = () => pending.reduce(add, reducer.messages);

    const notify = (): void => {
      due = 0;
      shown = { ...next, messages: all() };
      listeners.forEach(queueMicrotask);
    };
    notify();

    const isPending = ({ id }: M) => pending.some((one) => one.id === id);

    /** Of those that wait, the ones in this list: what nobody sees any more is not sent. */
    const keep = (list: M[]): void => {
      pending = list.filter(isPending);
      notify();
    };

    const request = async (
      verb: string,
      body: object | false | undefined,
      headers?: HeadersInit,
      signal?: AbortSignal,
      more?: object,
    ): Promise<Response> => {
      const { api, credentials, fetch: load = fetch } = options;
      const response = await load(verb ? chatUrl(api, this.id, verb) : api, {
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
        credentials,
        signal,
        headers: {
          ...Object.fromEntries([
            ...new Headers(await resolve(options.headers)),
            ...new Headers(headers),
          ]),
          ...(body && { 'content-type': 'application/json' }),
          ...more,
        },
      });
      // Some servers answer with their page whatever they are asked.
      if (!response.ok || /html/.test(response.headers.get('content-type') as string))
        throw await toRequestError(response);
      return response;
    };

    /** The end, unless the server says that it goes on. */
    const fail = (error: Error, terminal?: boolean): void => {
      next.error = error;
      if (terminal !== false) next.status = 'error';
      call(options.onError, error);
    };

    const take = (event: ContractEvent): void => {
      const { type, data } = event;
      reducer.apply(event);
      const isDelta = type.endsWith('.delta');
      if (!(isDelta && wasDelta)) due = 2;
      wasDelta = isDelta;
      if (type === 'error') {
        const { message, code, retryable, terminal } = data;
        fail(toError(message, { code, retryable }), terminal);
        if (terminal) finish = {};
      } else if (type === 'meta') {
        next.meta = data;
        this.id = data.conversationId ?? this.id;
      } else if (type === 'status') next.runStatus = data;
      else if (type === 'done') {
        finish = data;
        if (next.status !== 'error') next.status = 'ready';
      } else next.status = 'streaming';
      call(options.onEvent, event);
    };

    const settle = () => {
      if (due > 1) notify();
      else if (!due) {
        due = 1;
        // A page that is not shown has no frames.
        const isShown = globalThis.document?.hidden === false;
        const after = (isShown ? requestAnimationFrame : setTimeout) as Window['setTimeout'];
        // Unless something else has shown it by then.
        after(() => due && notify(), 16);
      }
      return finish;
    };

    /**
     * One answer, from what is sent, or from what runs already, to its end. Never rejects. `messageId` names what an edit or a
     * regenerate replaces.
     */
    const follow = async (
      messages?: M[],
      sent?: ChatCall,
      messageId?: string,
      trigger?: Trigger,
    ): Promise<void> => {
      run = new AbortController();
      finish = undefined;
      this.malformed = 0;
      if (messages) {
        reducer.messages = messages;
      }
      next.status = (messages ? 'submitted' : 'ready') as ChatStatus;
      next.error = undefined;
      notify();
      // Somebody may have thought better of it already.
      if (isAborting) run.abort();
      // Tells a second try from another click: both have the same words.
      const attempt = createId();
      await followTurn(
        options,
        run.signal,
        messages,
        async (cursor, link, attempts) => {
          const body = messages &&
            !cursor && {
              sessionId: this.id,
              ...(await resolve(options.body)),
              ...sent?.body,
              messages: reducer.messages,
              messageId,
              trigger,
            };
          const response = await request(body ? '' : 'stream', body, sent?.headers, link, {
            ...(cursor && { 'last-event-id': cursor }),
            // A promise to come back by itself, and to stop explicitly; and how often this was tried.
            'x-sabir-resume': attempts,
            'x-sabir-attempt': attempt,
          });
          // The server was told to stop before it knew of this.
          if (isAborting) request('stop', {}).catch(() => undefined);
          return response;
        },
        // A server that names its turn numbers its frames: an `id` says that everything up to it
        // is there. What it sends anew from its beginning begins with `meta`, and so does the
        // reducer. Without a name nothing can be taken up again.
        (frame, held: SseFrame[], turnId) => {
          held.push(frame);
          if (turnId && !frame.id) return;
          for (const { event: type, data: text } of held.splice(0)) {
            let data: unknown;
            try {
              data = JSON.parse(text);
            } catch {
              // Counted like what says nothing.
            }
            if (type && data) take({ type, data } as ContractEvent);
            else if (!this.malformed++) call(options.onError, toError());
          }
          return turnId && frame.id;
        },
        settle,
        // Without a cursor, what was heard of at all cannot be taken up again; what was sent and
        // not answered at all can be sent again: the server knows a message by its id.
        ({ status }, cursor, isHeard) =>
          cursor
            ? (status as number) < 500 && status !== 429
              ? 0
              : 20
            : status || isHeard
              ? 0
              : 3,
      ).catch((error) => {
        // What the server told before it hung up is the better reason.
        if (!isAborting && next.status !== 'error') fail(error);
      });
      const isError = next.status === 'error';
      // A server that is not heard any more may have left something open.
      reducer.close();
      if (!isError) next.status = 'ready';
      next.runStatus = undefined;
      notify();
      // Unless nothing ran, or nobody waits for it here.
      if (isAborting || (!run.signal.aborted && (finish || isError))) {
        call(options.onFinish, {
          ...(finish as ChatFinish | undefined),
          message: lastAnswer(reducer.messages),
          messages: reducer.messages,
          isAborted: isAborting,
          isError,
        });
      }
      run.abort();
      run = undefined;
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

    Object.assign(this, {
      getSnapshot: () => shown,
      subscribe: (listener) => {
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
        const made = toUserMessage(input);
        made.then(
          (message) => {
            // What it takes the place of is not sent any more, nor what followed that.
            const list = add(all(), message);
            pending.push(message);
            keep(list);
          },
          // Told when its turn has come.
          () => undefined,
        );
        return queue(() =>
          made.then(({ id }) => {
            const message = pending.find((one) => one.id === id);
            // Unless somebody has taken it out again.
            if (message) {
              pending = pending.filter((one) => one !== message);
              // Only with `messageId` a server takes it for an edit.
              const { messageId } = input as { messageId?: string };
              return follow(add(reducer.messages, message), sent, messageId);
            }
          }),
        );
      },
      regenerate: (which, sent) =>
        queue(() => {
          // A message that was never answered keeps its place.
          const messageId = which?.messageId ?? lastAnswer(reducer.messages)?.id;
          return follow(before(reducer.messages, messageId), sent, messageId, 'regenerate-message');
        }),
      async resume() {
        if (!waiting) await queue(() => follow());
      },
      setMessages(messages) {
        const list = resolve(messages, all());
        reducer.messages = list.filter((message) => !isPending(message));
        keep(list);
      },
      abort() {
        /** How long a server that is told to stop may take to end its stream. */
        const STOP_MS = 2_000;
        isAborting = waiting > 0;
        const running = run;
        return new Promise<void>((done) => {
          const leave = () => done(running?.abort());
          // What the server says last comes with the stream; one that says nothing is not waited for.
          setTimeout(leave, STOP_MS);
          request('stop', {}).then(done as () => void, leave);
        });
      },
      answer: (answer) => toAnswerResult(request('answer', answer)),
      clearError() {
        if (!run) next.status = 'ready';
        next.error = undefined;
        notify();
      },
      detach() {
        run?.abort();
      },
    } satisfies Actions<M>);
  }
}

/** What a page makes of the news does not change the stream; it hears of its own mistake. */
function call<T>(listener: ((value: T) => void) | undefined, value: T): void {
  if (listener) queueMicrotask(() => listener(value));
}
