import fc from 'fast-check';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import { nextTick } from '../../test/running-turn.ts';
import { beginTurn, view } from '../../test/viewing-turn.ts';
import { watchTimers } from '../../test/watch-timers.ts';
import type { Chunk } from '../core/chunks.ts';
import { createDowngrade } from '../core/downgrade.ts';
import { foldChunks } from '../core/fold.ts';
import { verifyChunks } from '../core/verify.ts';
import type { TurnLog } from '../turns/log.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import { createFrameEncoder } from '../wires/ai-sdk/encode.ts';
import { Viewer } from './viewer.ts';

const START: Chunk[] = [{ type: 'start', messageId: 'm' }, { type: 'start-step' }];
const OPEN: Chunk = { type: 'text-start', id: '1' };
const delta = (text: string): Chunk => ({ type: 'text-delta', id: '1', delta: text });
const END: Chunk[] = [
  { type: 'text-end', id: '1' },
  { type: 'finish-step' },
  { type: 'finish', finishReason: 'stop' },
];
const ALL = [...START, OPEN, delta('Hello '), delta('world'), ...END];

/** Ids and names as they are on the wire. */
const idsOf = (frames: { id?: string; event?: string }[]) => frames.map(({ id }) => id);

afterEach(() => void vi.useRealTimers());

describe('Viewer', () => {
  it('sends what is in the log as it comes, each with its place and name, and then [DONE]', async () => {
    const turn = await beginTurn();
    const viewer = view(turn, await turn.info());
    for (const chunk of ALL) {
      const reading = viewer.pull();
      await turn.writer.append([chunk]);
      await reading;
    }
    await turn.writer.close({ status: 'finished' });
    expect(await viewer.readAll()).toEqual(ALL);
    const { turnId } = turn.writer;
    expect(idsOf(viewer.frames)).toEqual([...ALL.map((_, i) => `${turnId}:${i + 1}`), undefined]);
    expect(viewer.frames[0]?.event).toBe('message-start');
    expect(viewer.frames[3]?.event).toBe('text-delta');
    expect(viewer.isDone()).toBe(true);
    expect(viewer.onDeparture.mock.calls).toEqual([['ended']]);
    expect(viewer.onReplay).not.toHaveBeenCalled();
  });

  it('replays to whoever comes late, merged, and goes on as it comes', async () => {
    const turn = await beginTurn();
    await turn.writer.append(ALL.slice(0, 5));
    const viewer = view(turn, await turn.info());
    await viewer.pull();
    expect(viewer.chunks()).toEqual([...START, OPEN, delta('Hello world')]);
    expect(viewer.frames.at(-1)?.id).toBe(`${turn.writer.turnId}:5`);
    expect(viewer.onReplay).toHaveBeenCalledOnce();
    await turn.writer.append([delta('!'), delta('!')]);
    await viewer.pull();
    expect(viewer.chunks().slice(4)).toEqual([delta('!'), delta('!')]);
  });

  it('merges nothing across a cursor', async () => {
    const turn = await beginTurn();
    await turn.writer.append([...START, OPEN, ...['a', 'b', 'c', 'd'].map(delta)]);
    for (const client of [7, 'portable'] as const) {
      const viewer = view(turn, await turn.info(), { after: 5, client });
      await viewer.pull();
      expect(viewer.chunks()).toEqual([delta('cd')]);
      expect(viewer.frames[0]?.id).toBe(`${turn.writer.turnId}:7`);
      await viewer.reader.cancel();
    }
  });

  it('knows what a client has seen before its cursor', async () => {
    // A text that goes on behind its step, as 7 allows: older clients need it opened again.
    const across: Chunk[] = [
      ...START,
      OPEN,
      delta('a'),
      { type: 'finish-step' },
      { type: 'start-step' },
      delta('b'),
      { type: 'text-end', id: '1' },
      { type: 'finish-step' },
      { type: 'finish' },
    ];
    const turn = await beginTurn();
    await turn.writer.append(across);
    await turn.writer.close({ status: 'finished' });
    const whole = across.flatMap(createDowngrade('portable'));
    const first = await view(turn, await turn.info(), { client: 'portable' }).readAll();
    expect(first).toEqual(whole);
    for (let after = 0; after <= across.length; after++) {
      const seen = across.slice(0, after).flatMap(createDowngrade('portable'));
      const viewer = view(turn, await turn.info(), { client: 'portable', after });
      expect([...seen, ...(await viewer.readAll())]).toEqual(whole);
    }
    expect(verifyChunks(whole)).toEqual([]);
  });

  it('numbers only the last frame of a chunk that becomes several', async () => {
    const turn = await beginTurn();
    await turn.writer.append([...START, OPEN, delta('a'), { type: 'finish-step' }]);
    const viewer = view(turn, await turn.info(), { client: 'portable' });
    await viewer.pull();
    expect(viewer.chunks().slice(-2)).toEqual([
      { type: 'text-end', id: '1' },
      { type: 'finish-step' },
    ]);
    expect(idsOf(viewer.frames.slice(-2))).toEqual([undefined, `${turn.writer.turnId}:5`]);
  });

  it('sends nothing that is not in the log, from any cursor, to any client', async () => {
    const input = fc.record({
      chunks: chunkSequences(7, 'whole'),
      client: fc.constantFrom(5 as const, 6 as const, 7 as const, 'portable' as const),
      at: fc.nat(),
      sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(input, async ({ chunks, client, at, sizes }) => {
        const turn = await beginTurn();
        const after = at % (chunks.length + 1);
        await turn.writer.append(chunks.slice(0, after));
        const viewer = view(turn, await turn.info(), { client, after });
        const reading = viewer.readAll();
        for (let i = after, n = 0; i < chunks.length; n++) {
          const size = sizes[n % sizes.length] as number;
          await turn.writer.append(chunks.slice(i, i + size));
          i += size;
          await nextTick();
        }
        await turn.writer.close({ status: 'finished' });
        const downgrade = createDowngrade(client);
        const seen = chunks.slice(0, after).flatMap(downgrade);
        expect(await reading).toEqual(chunks.slice(after).flatMap(downgrade));
        expect(foldChunks([...seen, ...(await reading)])).toEqual(
          foldChunks(chunks.flatMap(createDowngrade(client))),
        );
      }),
      { numRuns: 200 },
    );
  });

  it('serves a hundred viewers of one turn the same', async () => {
    const turn = await beginTurn();
    const info = await turn.info();
    const viewers = Array.from({ length: 100 }, () => view(turn, info));
    const reading = viewers.map((viewer) => viewer.readAll());
    for (const chunk of ALL) {
      await turn.writer.append([chunk]);
      await nextTick();
    }
    await turn.writer.close({ status: 'finished' });
    for (const chunks of await Promise.all(reading)) expect(chunks).toEqual(ALL);
    for (const { onDeparture } of viewers) expect(onDeparture.mock.calls).toEqual([['ended']]);
  });
});

describe('viewers at the tail of a turn', () => {
  it('are given the same bytes, not each a copy, on each wire', async () => {
    const turn = await beginTurn();
    const info = await turn.info();
    const open = (client: 7 | 'portable') => {
      const written: Uint8Array[] = [];
      const viewer = new Viewer({
        fanouts: turn.fanouts,
        turn: info,
        after: 0,
        isResuming: false,
        encoder: createFrameEncoder(info, client),
        keepAliveMs: 0,
        maxBacklogBytes: 1_000_000,
      });
      viewer.open({ write: (bytes) => written.push(bytes) > 0, end: () => undefined });
      viewer.resume();
      onTestFinished(() => viewer.cancel());
      return written;
    };
    const [one, other, third] = [open(7), open(7), open('portable')];
    await turn.writer.append([...START, OPEN, delta('Hello')]);
    await nextTick();
    expect(one).toHaveLength(1);
    expect(one[0]).toBe(other[0]);
    expect(third).toHaveLength(1);
    expect(third[0]).not.toBe(one[0]);
  });
});

describe('a viewer that leaves', () => {
  it('is gone at once, while it waits too, and leaves no timer', async () => {
    const timers = watchTimers();
    try {
      const turn = await beginTurn();
      const before = timers.count;
      const viewer = view(turn, await turn.info(), {
        keepAliveMs: 1_000,
        expiresAt: Date.now() + 60_000,
      });
      const reading = viewer.pull();
      await nextTick();
      expect(timers.count).toBe(before + 2);
      await viewer.reader.cancel();
      expect(await reading).toBe(false);
      expect(viewer.onDeparture.mock.calls).toEqual([['left']]);
      expect(timers.count).toBe(before);
      await turn.writer.append(ALL);
      await turn.writer.close({ status: 'finished' });
      expect(viewer.onDeparture).toHaveBeenCalledOnce();
    } finally {
      timers.restore();
    }
  });
});

describe('keep-alive', () => {
  it('is sent while there is nothing else, and only once to whoever does not read', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const turn = await beginTurn();
    const viewer = view(turn, await turn.info(), { keepAliveMs: 15_000 });
    await vi.advanceTimersByTimeAsync(60_000);
    // Nobody has asked for anything: nobody is waiting.
    await turn.writer.append([...START]);
    await viewer.pull();
    expect(viewer.text).not.toContain(': keep-alive');
    for (let n = 1; n <= 3; n++) {
      const reading = viewer.pull();
      await vi.advanceTimersByTimeAsync(15_000);
      await reading;
      expect(viewer.text.match(/: keep-alive\n\n/g)).toHaveLength(n);
    }
    // It asked, got a sign of life, and does not come back for more.
    await vi.advanceTimersByTimeAsync(600_000);
    await turn.writer.append([OPEN, delta('a'), ...END]);
    await turn.writer.close({ status: 'finished' });
    await viewer.readAll();
    expect(viewer.text.match(/: keep-alive\n\n/g)?.length).toBeLessThanOrEqual(4);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('an end that is not the turn’s', () => {
  /** What a stock client gets when its stream ends before the turn does. */
  function expectFarewell(viewer: ReturnType<typeof view>, code: string): void {
    expect(verifyChunks(viewer.chunks())).toEqual([]);
    expect(viewer.chunks().filter(({ type }) => type === 'error')).toHaveLength(1);
    expect(JSON.stringify(viewer.chunks())).toContain(code);
    expect(viewer.isDone()).toBe(true);
    expect(viewer.onDeparture.mock.calls).toEqual([['let-go']]);
  }

  it.each([
    ['in the middle of a text', [...START, OPEN, delta('a')]],
    ['before the first chunk', []],
  ])('comes when the sign-in runs out, %s', async (_, said: Chunk[]) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    const turn = await beginTurn();
    const viewer = view(turn, await turn.info(), { expiresAt: Date.now() + 10_000 });
    const reading = viewer.readAll();
    if (said.length > 0) await turn.writer.append(said);
    await vi.advanceTimersByTimeAsync(11_000);
    await reading;
    expectFarewell(viewer, 'sign-in-expired');
    // Nothing of it is in the log, and no number could make it a cursor.
    expect((await turn.info()).lastSeq).toBe(said.length);
    expect(idsOf(viewer.frames).filter(Boolean)).toHaveLength(said.length);
  });

  it.each([
    ['in the middle of a text', [...START, OPEN, delta('a')]],
    ['before the first chunk', []],
  ])('comes when the log is closed under it, %s', async (_, said: Chunk[]) => {
    const turn = await beginTurn();
    const viewer = view(turn, await turn.info(), { client: 'portable' });
    const reading = viewer.readAll();
    if (said.length > 0) await turn.writer.append(said);
    await nextTick();
    await turn.log.close();
    await reading;
    expectFarewell(viewer, 'shutting-down');
    expect(viewer.chunks().filter(({ type }) => type === 'start')).toHaveLength(1);
  });

  it('comes when the log can no longer be read', async () => {
    const inner = memoryTurnLog();
    const { promise: broken, reject: breakIt } = Promise.withResolvers<never>();
    broken.catch(() => undefined);
    const log: TurnLog = {
      ...inner,
      async *read(turnId, after, signal) {
        const batches = inner.read(turnId, after, signal)[Symbol.asyncIterator]();
        for (;;) {
          const { done, value } = await Promise.race([batches.next(), broken]);
          if (done) return;
          yield value;
        }
      },
    };
    const timers = watchTimers();
    try {
      const turn = await beginTurn(log);
      const before = timers.count;
      const viewer = view(turn, await turn.info(), { keepAliveMs: 1_000 });
      const reading = viewer.readAll();
      await turn.writer.append([...START, OPEN]);
      await nextTick();
      breakIt(new Error('the store is away'));
      await reading;
      expectFarewell(viewer, 'log-failed');
      expect(viewer.text).not.toContain('the store is away');
      expect(timers.count).toBe(before);
    } finally {
      timers.restore();
    }
  });

  it('says nothing to a client that comes back by itself', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    const turn = await beginTurn();
    const viewer = view(turn, await turn.info(), {
      isResuming: true,
      expiresAt: Date.now() + 10_000,
    });
    const reading = viewer.readAll();
    await turn.writer.append([...START, OPEN]);
    await vi.advanceTimersByTimeAsync(11_000);
    expect(await reading).toEqual([...START, OPEN]);
    expect(viewer.isDone()).toBe(false);
    expect(viewer.onDeparture.mock.calls).toEqual([['let-go']]);
  });
});
