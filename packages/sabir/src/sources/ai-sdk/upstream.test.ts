import type { UIMessageChunk as Chunk5 } from 'ai-v5';
import type { UIMessageChunk as Chunk6 } from 'ai-v6';
import type { UIMessageChunk as Chunk7 } from 'ai-v7';
import { describe, expect, it, vi } from 'vitest';
import { openSession, play, run, TEXT, tick, USER } from '../../../test/play-agent.ts';
import type { Chunk } from '../../core/chunks.ts';
import { RUN_FAILED, SabirError, UPSTREAM_DROPPED } from '../../core/errors.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { AgentFunction, AgentPrompt } from '../../turns/agent.ts';
import { asUpstream } from './upstream.ts';

async function* texts(): AsyncGenerator<Chunk> {
  yield* TEXT;
}

const streamOf = (chunks: Chunk[]) =>
  new ReadableStream<Chunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

describe('a handler', () => {
  it.each<[string, AgentFunction]>([
    ['a generator', texts],
    ['a stream', () => streamOf(TEXT)],
    ['a promise of one', async () => streamOf(TEXT)],
    [
      'any async iterable',
      () => {
        const left = [...TEXT];
        const next = async (): Promise<IteratorResult<Chunk>> => {
          const value = left.shift();
          return value ? { value } : { done: true, value: undefined };
        };
        return { [Symbol.asyncIterator]: () => ({ next }) };
      },
    ],
  ])('may give %s, and needs no start, end or finish', async (_what, handler) => {
    const { chunks, outcomes } = await run(handler);
    expect(outcomes).toEqual([{ status: 'finished' }]);
    expect(chunks).toEqual([
      { type: 'start', messageId: 'm' },
      ...TEXT,
      { type: 'text-end', id: 't' },
      { type: 'finish', finishReason: 'stop', messageMetadata: { outcome: 'finished' } },
    ]);
  });

  it('may give a stream of any AI SDK, and has the chunks of a generator checked', () => {
    asUpstream(() => new ReadableStream<Chunk5>());
    asUpstream(() => new ReadableStream<Chunk6>());
    asUpstream(async () => new ReadableStream<Chunk7>());
    // @ts-expect-error a delta is missing
    asUpstream(async function* () {
      yield { type: 'text-delta', id: 't' };
    });
  });

  it('gets what was asked, and who asks', async () => {
    const handler = vi.fn(texts);
    const attachments = [{ url: 'data:,x', mediaType: 'text/plain' }];
    const chatKey = '["s","c"]';
    await run(handler, { chatKey, text: 'what?', attachments, body: { model: 'x' } });
    expect(handler).toHaveBeenCalledWith({
      sessionId: 's',
      chatId: 'c',
      chatKey,
      turnId: 'turn',
      messageId: 'm',
      trigger: 'submit-message',
      isRestored: false,
      user: USER,
      text: 'what?',
      attachments,
      messages: [],
      body: { model: 'x' },
      channel: { channelType: 'web', channelId: 'default' },
      model: 'x',
      signal: expect.any(AbortSignal),
      ask: expect.any(Function),
      answer: expect.any(Function),
      toolOutput: expect.any(Function),
      emit: expect.any(Function),
    });
  });

  it('is never called from inside prompt, and called once', async () => {
    const handler = vi.fn(texts);
    const session = await openSession(handler);
    const { over } = play(session);
    expect(handler).not.toHaveBeenCalled();
    await over;
    await tick();
    expect(handler).toHaveBeenCalledOnce();
  });

  describe('that finishes by itself', () => {
    const finish: Chunk = { type: 'finish', finishReason: 'length' };
    const released = async (handler: AgentFunction) => {
      const session = await openSession(handler);
      const { turn, chunks, outcomes } = play(session, {}, () => turn.release());
      await tick();
      return { session, chunks, outcomes };
    };

    it('may go on to its end, of which nobody hears', async () => {
      const saved = vi.fn();
      let signal: AbortSignal | undefined;
      const { chunks, outcomes } = await released(async function* (turn) {
        signal = turn.signal;
        yield finish;
        yield* TEXT;
        await tick();
        saved(turn.signal.aborted);
      });
      await tick(10);
      expect(saved).toHaveBeenCalledExactlyOnceWith(false);
      expect(signal?.aborted).toBe(true);
      expect(outcomes).toEqual([]);
      expect(chunks).toEqual([{ type: 'start', messageId: 'm' }, finish]);
    });

    it('may not go on for ever', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      try {
        const left = vi.fn();
        const session = await openSession(async function* ({ answer }) {
          try {
            yield finish;
            await answer('q').catch(left);
            for (;;) yield finish;
          } finally {
            left();
          }
        });
        const { turn, over } = play(session, {}, () => turn.release());
        await over;
        await vi.advanceTimersByTimeAsync(4_000);
        expect(left).toHaveBeenCalledOnce();
        await vi.advanceTimersByTimeAsync(2_000);
        await new Promise((resolve) => setImmediate(resolve));
        expect(left).toHaveBeenCalledTimes(2);
        expect(vi.getTimerCount()).toBe(0);
      } finally {
        vi.useRealTimers();
      }
    });

    it('is left when its session closes', async () => {
      const cancel = vi.fn();
      const { session, outcomes } = await released(
        () => new ReadableStream({ start: (controller) => controller.enqueue(finish), cancel }),
      );
      expect(cancel).not.toHaveBeenCalled();
      session.close();
      expect(cancel).toHaveBeenCalledOnce();
      expect(outcomes).toEqual([]);
    });
  });

  it.each<[string, unknown, TurnOutcome]>([
    ['throws', new Error('no\n at x'), { status: 'failed', message: 'no' }],
    ['throws nonsense', undefined, { status: 'failed', message: RUN_FAILED.userMessage }],
    [
      'throws one of ours',
      new SabirError(UPSTREAM_DROPPED, 'detail'),
      { status: 'failed', code: 'upstream-dropped', message: UPSTREAM_DROPPED.userMessage },
    ],
  ])('that %s has failed', async (_how, error, outcome) => {
    const { chunks, outcomes } = await run(async function* () {
      yield* TEXT;
      throw error;
    });
    expect(outcomes).toEqual([outcome]);
    expect(chunks.slice(3)).toMatchObject([
      { type: 'text-end' },
      { type: 'message-metadata', messageMetadata: { outcome: 'failed' } },
      { type: 'error', errorText: (outcome as { message: string }).message },
      { type: 'finish' },
    ]);
  });

  it('that fails before it gives anything has failed too', async () => {
    const throws = () => {
      throw new Error('at once');
    };
    expect((await run(throws)).outcomes).toEqual([{ status: 'failed', message: 'at once' }]);
    const rejects = async () => Promise.reject(new Error('soon'));
    expect((await run(rejects)).outcomes).toEqual([{ status: 'failed', message: 'soon' }]);
    const nothing = (() => undefined) as unknown as AgentFunction;
    expect((await run(nothing)).outcomes).toMatchObject([{ status: 'failed' }]);
    const number = (() => 1) as unknown as AgentFunction;
    expect((await run(number)).outcomes).toMatchObject([{ status: 'failed' }]);
  });

  it('is explained in the words of the application, which see the error itself, once', async () => {
    const errorText = vi.fn((error: unknown) => `Oh, ${(error as Error).message}!`);
    const handler: AgentFunction = async function* () {
      yield* TEXT;
      throw new Error('no');
    };
    const { chunks, outcomes } = await run(handler, { errorText });
    expect(outcomes).toEqual([{ status: 'failed', message: 'Oh, no!' }]);
    expect(chunks).toContainEqual({ type: 'error', errorText: 'Oh, no!' });
    expect(errorText).toHaveBeenCalledOnce();
  });

  it('that never waits lets others have their turn', async () => {
    const session = await openSession(async function* () {
      yield TEXT[0] as Chunk;
      for (;;) yield TEXT[1] as Chunk;
    });
    const { turn, chunks } = play(session);
    await tick(5);
    turn.release();
    expect(chunks.length).toBeGreaterThan(100);
    const { length } = chunks;
    await tick(5);
    expect(chunks).toHaveLength(length);
  });
});

describe('stopping', () => {
  it('aborts the signal, leaves the generator and is no failure', async () => {
    let seen: AgentPrompt | undefined;
    const left = vi.fn();
    const session = await openSession(async function* (turn) {
      seen = turn;
      yield* TEXT;
      try {
        await new Promise((_, reject) => {
          turn.signal.addEventListener('abort', () => reject(turn.signal.reason));
        });
      } finally {
        left();
      }
    });
    const { turn, outcomes, over } = play(session);
    await tick();
    turn.stop();
    turn.stop();
    expect(outcomes).toEqual([]);
    await over;
    await tick();
    expect(seen?.signal.aborted).toBe(true);
    expect(left).toHaveBeenCalledOnce();
    expect(outcomes).toEqual([{ status: 'stopped' }]);
  });

  it('waits for no generator that ignores it', async () => {
    const session = await openSession(async function* () {
      yield* TEXT;
      await new Promise(() => undefined);
    });
    const { turn, outcomes, over } = play(session);
    await tick();
    turn.stop();
    await over;
    expect(outcomes).toEqual([{ status: 'stopped' }]);
  });

  it('cancels a stream that waits', async () => {
    const cancel = vi.fn();
    const session = await openSession(() => new ReadableStream({ cancel }));
    const { turn, over } = play(session);
    await tick();
    turn.stop();
    await over;
    expect(cancel).toHaveBeenCalledOnce();
  });

  it('before there is anything to stop never calls the handler', async () => {
    const handler = vi.fn(texts);
    const { turn, outcomes, over } = play(await openSession(handler));
    turn.stop();
    await over;
    await tick();
    expect(handler).not.toHaveBeenCalled();
    expect(outcomes).toEqual([{ status: 'stopped' }]);
  });

  it('while the handler still thinks leaves what it then gives', async () => {
    const cancel = vi.fn();
    const ready = Promise.withResolvers<void>();
    const session = await openSession(async () => {
      await ready.promise;
      return new ReadableStream({ cancel });
    });
    const { turn, over } = play(session);
    await tick();
    turn.stop();
    await over;
    ready.resolve();
    await tick();
    expect(cancel).toHaveBeenCalledOnce();
  });

  it('stops that turn and no other', async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const session = await openSession(async function* ({ body }) {
      yield* TEXT;
      await gates[body.at as number]?.promise;
    });
    const [first, second] = [0, 1].map((at) => play(session, { body: { at } }));
    await tick();
    first?.turn.stop();
    await first?.over;
    gates[1]?.resolve();
    await second?.over;
    expect(first?.outcomes).toEqual([{ status: 'stopped' }]);
    expect(second?.outcomes).toEqual([{ status: 'finished' }]);
  });

  it('by release says nothing any more', async () => {
    let signal: AbortSignal | undefined;
    const left = vi.fn();
    const session = await openSession(async function* (turn) {
      signal = turn.signal;
      try {
        for (;;) {
          yield* TEXT;
          await tick();
        }
      } finally {
        left();
        // Nobody may hear of it.
        yield* TEXT;
      }
    });
    const { turn, chunks, outcomes } = play(session);
    await tick(5);
    turn.release();
    const { length } = chunks;
    turn.stop();
    turn.answer({ type: 'answer', questionId: 'q', answer: 1 });
    session.close();
    await tick(5);
    expect(signal?.aborted).toBe(true);
    expect(left).toHaveBeenCalledOnce();
    expect(chunks).toHaveLength(length);
    expect(outcomes).toEqual([]);
  });
});

describe('a session', () => {
  it('is not opened for somebody who has left', async () => {
    const signal = AbortSignal.abort();
    await expect(
      asUpstream(texts).open({ sessionId: 's', user: USER, role: 'owner', signal }),
    ).rejects.toThrow();
  });

  it('that closes tells the turns that are open, and takes no other', async () => {
    const handler = vi.fn(async function* (): AsyncGenerator<Chunk> {
      yield* TEXT;
      await new Promise(() => undefined);
    });
    const session = await openSession(handler);
    const open = play(session);
    await tick();
    expect(session.isClosed).toBe(false);
    session.close();
    expect(session.isClosed).toBe(true);
    await open.over;
    const late = play(session);
    expect(late.outcomes).toEqual([]);
    await late.over;
    const dropped = { code: 'upstream-dropped', message: UPSTREAM_DROPPED.userMessage };
    for (const { outcomes } of [open, late]) {
      expect(outcomes).toEqual([{ status: 'failed', ...dropped }]);
    }
    expect(handler).toHaveBeenCalledOnce();
  });
});

it('has a history where somebody keeps one', async () => {
  const user = { id: 'u' };
  const { signal } = new AbortController();
  const asked: unknown[] = [];
  const remembering = asUpstream(texts, {
    history(where) {
      asked.push(where);
      return [{ id: 'm', role: 'user', parts: [] }];
    },
  });
  const session = await remembering.open({ sessionId: 's', user, role: 'owner', signal });
  const other = { id: 'u', tenant: 'blue' };
  expect(await session.history?.(other)).toEqual([{ id: 'm', role: 'user', parts: [] }]);
  expect(asked).toEqual([{ sessionId: 's', user: other }]);
  const forgetful = asUpstream(texts);
  expect(
    (await forgetful.open({ sessionId: 's', user, role: 'owner', signal })).history,
  ).toBeUndefined();
});
