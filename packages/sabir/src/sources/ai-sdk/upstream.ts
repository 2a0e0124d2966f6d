import type { Chunk, ChunkType } from '../../core/chunks.ts';
import {
  QUESTION_EXPIRED,
  SabirError,
  TURN_LOST,
  toShownText,
  UPSTREAM_DROPPED,
} from '../../core/errors.ts';
import { forget } from '../../core/forget.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type {
  Prompt,
  TurnSink,
  Upstream,
  UpstreamTurn,
  User,
  WaitingChat,
  WaitingTurn,
} from '../../turns/upstream.ts';
import { createQuestions } from './questions.ts';
import { createChunkTranslator, type LooseDelta } from './translate.ts';

export type ChunkTurn<Body extends object = Record<string, unknown>> = Pick<
  Prompt,
  | 'sessionId'
  | 'chatId'
  | 'chatKey'
  | 'turnId'
  | 'messageId'
  | 'user'
  | 'text'
  | 'attachments'
  | 'messages'
  | 'traceparent'
> & {
  /**
   * Nothing new is asked: what `waiting` told of goes on. Yield again what was said, the open
   * question included, then wait for its answer.
   */
  isRestored: boolean;
  /** What the application added to the request's body, as it came: nobody has checked it. */
  body: Body;
  /**
   * Aborts when the turn is stopped or lost, and when the handler itself is done. Its reason is an
   * `AbortError` if somebody stopped it, else a `SabirError` whose `code` says what happened: what
   * waits for an answer may then go on some other time.
   */
  signal: AbortSignal;
  /**
   * Waits for the answer to a question of this turn; the first one counts, also if it has come
   * already. Rejects when the question expires or the turn ends.
   */
  answer(questionId: string): Promise<unknown>;
};

/** A generator's chunks are checked one by one; the AI SDK's own streams are taken as they are. */
type Chunks = AsyncIterable<Chunk | LooseDelta> | ReadableStream<{ type: ChunkType }>;
export type ChunkHandler<Body extends object = Record<string, unknown>> = (
  turn: ChunkTurn<Body>,
) => Chunks | Promise<Chunks>;
export type ChunkUpstreamOptions = {
  /** What was said in a session so far, where somebody keeps it: `onFinish` is the place to. */
  history?(where: { sessionId: string; user: User }): Promise<UIMessage[]> | UIMessage[];
  /**
   * The message of a turn of this chat that waits for an answer though nothing runs it any more, as
   * after a restart: the handler is called for it again, with `isRestored`. `userId` is who asked:
   * the handler's `user` is that one again. Without it, it is whoever has come, unless they may
   * only watch: then nothing is called.
   */
  waiting?(
    where: WaitingChat & { sessionId: string },
  ): Promise<WaitingTurn | undefined> | WaitingTurn | undefined;
};

/** What chunks are pulled from, however they are given. */
type Source = { next(): Promise<IteratorResult<unknown>>; leave(): void };
type RunningTurn = UpstreamTurn & { drop(): void };

/** A generator that never waits gives this many chunks before others get their turn. */
const CHUNKS_PER_TICK = 128;
/** How long a handler may go on when it has said its last word. */
const DRAIN_MS = 5_000;

/**
 * An upstream of one function: a prompt in, chunks out.
 *
 * ```ts
 * asUpstream(async function* ({ text, signal }) {
 *   for await (const delta of answer(text, signal)) yield { type: 'text-delta', delta };
 * });
 * ```
 *
 * What the generator leaves out (`start`, ids of texts, their starts and ends, `finish`) is added; an error it throws ends the
 * turn as failed, with its message. `asUpstream<ChatBody>(…)` names what the body is expected to be.
 */
export function asUpstream<Body extends object = Record<string, unknown>>(
  handler: ChunkHandler<Body>,
  options: ChunkUpstreamOptions = {},
): Upstream {
  const { history, waiting } = options;
  return {
    ...(waiting && { canWait: true }),
    async open({ sessionId, signal }) {
      signal.throwIfAborted();
      const turns = new Set<RunningTurn>();
      let isClosed = false;
      return {
        get isClosed() {
          return isClosed;
        },
        prompt(prompt, sink) {
          const turn = startTurn(handler as ChunkHandler, prompt, sink, isClosed, () =>
            turns.delete(turn),
          );
          turns.add(turn);
          return turn;
        },
        ...(history && { history: async (user) => history({ sessionId, user }) }),
        ...(waiting && { waiting: async (where) => waiting({ ...where, sessionId }) }),
        close() {
          isClosed = true;
          for (const turn of turns) turn.drop();
        },
      };
    },
  };
}

/** One run of the handler. Owns its signal; tells the sink once, and never after the end. */
function startTurn(
  handler: ChunkHandler,
  prompt: Prompt,
  sink: TurnSink,
  isDropped: boolean,
  onOver: () => void,
): RunningTurn {
  const stopping = new AbortController();
  const questions = createQuestions((chunk) => sink.event(chunk));
  let source: Source | undefined;
  /** The sink hears nothing more. */
  let isOver = false;
  let isTelling = false;
  /** The text of our own outcome, which is fit for people already. */
  let said: string | undefined;
  const translator = createChunkTranslator({
    messageId: prompt.messageId,
    errorText: (error) =>
      said !== undefined && error === said ? said : toShownText(error, prompt.errorText),
  });

  /** The handler is told, and not waited for: one that ignores its signal holds nobody. */
  function leave(): void {
    isOver = true;
    // By its reason a handler can tell: nobody has stopped it, and it may go on some other time.
    stopping.abort(new SabirError(TURN_LOST));
    questions.close(stopping.signal.reason);
    leaveSource();
    onOver();
  }

  function leaveSource(): void {
    const left = source;
    source = undefined;
    left?.leave();
  }

  function end(outcome: TurnOutcome): void {
    if (isOver) return;
    leave();
    sink.close(outcome);
  }

  function fail(error: unknown): void {
    said = toShownText(error, prompt.errorText);
    const code = error instanceof SabirError ? { code: error.code } : undefined;
    end({ status: 'failed', ...code, message: said });
  }

  async function run(): Promise<void> {
    // Nothing may reach the sink from inside `prompt`.
    await undefined;
    if (stopping.signal.aborted) return;
    const { signal } = stopping;
    const { sessionId, chatId, chatKey, turnId, messageId, isRestored = false } = prompt;
    const { user, text, attachments, messages, body, traceparent } = prompt;
    const ids = { sessionId, chatId, chatKey, turnId, messageId };
    const asked = {
      ...ids,
      isRestored,
      user,
      text,
      attachments,
      messages,
      body,
      ...(traceparent && { traceparent }),
    };
    const chunks = await handler({ ...asked, signal, answer: questions.wait });
    const opened = open(chunks);
    source = opened;
    // Stopped before there was anything to leave.
    if (signal.aborted) return leaveSource();
    for (let count = 1; ; count++) {
      const { done, value } = await opened.next();
      if (signal.aborted) return;
      if (done) break;
      isTelling = true;
      sink.event(value);
      isTelling = false;
      questions.see(value);
      if (signal.aborted) return;
      if (translator.ended) return drain(opened);
      if (count % CHUNKS_PER_TICK === 0) await nextTick();
    }
    source = undefined;
    end({ status: 'finished' });
  }

  /** Its last word is said, but there may be work behind it, such as saving the message. */
  async function drain(from: Source): Promise<void> {
    isOver = true;
    questions.close(new SabirError(QUESTION_EXPIRED));
    const timer = setTimeout(leave, DRAIN_MS);
    (timer as { unref?: () => void }).unref?.();
    try {
      for (let count = 1; !(await from.next()).done && !stopping.signal.aborted; count++) {
        if (count % CHUNKS_PER_TICK === 0) await nextTick();
      }
    } finally {
      clearTimeout(timer);
      leave();
    }
  }

  function drop(): void {
    if (stopping.signal.aborted) end({ status: 'stopped' });
    else if (!isOver) fail(new SabirError(UPSTREAM_DROPPED));
    leave();
  }

  if (isDropped) queueMicrotask(drop);
  else {
    run().catch((error) => {
      // It has nothing more to give. What an abort makes it throw is no failure.
      source = undefined;
      if (!stopping.signal.aborted) fail(error);
    });
  }
  return {
    translator,
    isQueued: false,
    stop(reason) {
      if (stopping.signal.aborted || isOver) return;
      stopping.abort(reason);
      questions.close(stopping.signal.reason);
      leaveSource();
      // Whoever stops may have more to say about why: it has the first word.
      queueMicrotask(() => end({ status: 'stopped' }));
    },
    answer: ({ questionId, answer }) => questions.answer(questionId, answer),
    expire: questions.expire,
    release() {
      // It has ended the turn by itself, and may go on to its own end.
      if (isTelling && translator.ended) isOver = true;
      else leave();
    },
    drop,
  };
}

function open(chunks: unknown): Source {
  const given = chunks as Partial<ReadableStream<unknown> & AsyncIterable<unknown>> | undefined;
  // Not by its iterator: that could not be left while it waits.
  const reader = given?.getReader?.() as ReadableStreamDefaultReader<unknown> | undefined;
  if (reader) {
    return {
      next: () => reader.read() as Promise<IteratorResult<unknown>>,
      leave: () => forget(() => reader.cancel()),
    };
  }
  const iterator = given?.[Symbol.asyncIterator]?.();
  if (!iterator) throw new TypeError('The handler gave no async iterable of chunks.');
  return { next: () => iterator.next(), leave: () => forget(() => iterator.return?.()) };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
