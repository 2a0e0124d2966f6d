import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import { comparable } from '../../test/comparable.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import { asUpstream, memoryTurnLog } from './index.ts';

/** A chat in which an answer is being written; `carl` reads it. */
async function startTurn(options: Parameters<typeof createTestGateway>[1] = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, options);
  const carl = createUser(gateway, 'carl');
  const response = await carl.post(chatBody('hi'));
  const turnId = response.headers.get('x-sabir-turn') as string;
  const first = openSse(response);
  const run = await agent.run();
  return { agent, gateway, carl, first, run, turnId };
}

const statuses = (responses: Response[]) => responses.map(({ status }) => status);
const deltas = (chunks: Chunk[]) =>
  chunks.flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.delta] : []));

describe('a resume', () => {
  it('after a reload gives the whole turn, compacted, under the same message id, and goes on', async () => {
    const { carl, first, run } = await startTurn();
    for (const word of ['a ', 'b ', 'c ']) run.delta(word);
    await first.until(() => first.text() === 'a b c ');
    await first.leave();
    const response = await carl.resume();
    expect(response.status).toBe(200);
    const second = openSse(response);
    await second.until(() => second.text());
    expect(second.chunks()).toEqual([
      first.chunks()[0],
      { type: 'text-start', id: 'open' },
      { type: 'text-delta', id: 'open', delta: 'a b c ' },
    ]);
    // A merged frame stands for all it covers.
    expect(second.frames.at(-1)?.id).toBe(first.frames.at(-1)?.id);
    run.delta('d');
    run.delta('e');
    await second.until(() => second.text() === 'a b c de');
    expect(deltas(second.chunks())).toEqual(['a b c ', 'd', 'e']);
    run.end();
    await second.ended;
    expect(second.frames.at(-1)?.data).toBe('[DONE]');
  });

  it('gives every viewer the same turn, from its own place', async () => {
    const { gateway, carl, first, run } = await startTurn();
    run.delta('a');
    await first.until(() => first.text());
    const second = openSse(await createUser(gateway, 'vera').resume());
    run.delta('b');
    await second.until(() => second.text() === 'ab');
    const third = openSse(await carl.resume());
    run.delta('c');
    run.end();
    const viewers = [first, second, third];
    await Promise.all(viewers.map(({ ended }) => ended));
    const [message] = viewers.map((viewer) => foldChunks(viewer.chunks()));
    expect(message?.parts).toEqual([{ type: 'text', text: 'abc', state: 'done' }]);
    for (const viewer of viewers) expect(foldChunks(viewer.chunks())).toEqual(message);
  });

  it('gives nothing where nothing runs: 204', async () => {
    const { carl, first, run } = await startTurn();
    expect((await carl.resume('another')).status).toBe(204);
    run.text('a');
    run.end();
    await first.ended;
    const response = await carl.resume();
    expect([response.status, await response.text()]).toEqual([204, '']);
  });

  it('finds a turn that has not said a word yet', async () => {
    const { carl, run } = await startTurn();
    const second = openSse(await carl.resume());
    run.text('at last');
    run.end();
    await second.ended;
    expect(second.text()).toBe('at last');
  });

  it('keeps chats, and chats of the same name in other sessions, apart [RFC-STATE-02]', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream);
    const places = [
      ['s1', 'c1'],
      ['s1', 'c2'],
      ['s2', 'c1'],
    ] as const;
    const viewers = [];
    for (const [sessionId, id] of places) {
      viewers.push(
        openSse(await createUser(gateway, 'carl', sessionId).post(chatBody('hi', { id }))),
      );
      (await agent.run(viewers.length - 1)).delta(`${sessionId} ${id}`);
    }
    for (const [sessionId, id] of places) {
      const resumed = openSse(await createUser(gateway, 'carl', sessionId).resume(id));
      await resumed.until(() => resumed.text());
      expect(resumed.text()).toBe(`${sessionId} ${id}`);
    }
    expect((await createUser(gateway, 'carl', 's2').resume('c2')).status).toBe(204);
    expect((await createUser(gateway, 'carl', 's2').stop('c2')).status).toBe(204);
    expect((await createUser(gateway, 'carl', 's2').stop('c1')).status).toBe(202);
    await viewers[2]?.ended;
    expect(agent.runs.map(({ turn }) => turn.signal.aborted)).toEqual([false, false, true]);
  });

  it('gives the turn that runs, and then the one that was begun behind it', async () => {
    const { agent, carl, first, run } = await startTurn();
    run.delta('old');
    const next = openSse(await carl.post(chatBody('more')));
    (await agent.run(1)).delta('new');
    await next.until(() => next.text());
    const resumed = openSse(await carl.resume());
    await resumed.until(() => resumed.text());
    expect(resumed.text()).toBe('old');
    run.end();
    await Promise.all([first.ended, resumed.ended]);
    const behind = openSse(await carl.resume());
    await behind.until(() => behind.text());
    expect(behind.text()).toBe('new');
  });
});

describe('a resume with a cursor', () => {
  it('gives what follows it, and is not merged with what came before', async () => {
    const { carl, first, run, turnId } = await startTurn();
    for (const word of ['a', 'b', 'c', 'd']) run.delta(word);
    await first.until(() => first.text() === 'abcd');
    const header = openSse(await carl.resumeAt(`${turnId}:4`));
    // An EventSource on a fresh page has no header to say it with.
    const query = `lastEventId=${encodeURIComponent(`${turnId}:4`)}`;
    const address = openSse(await carl.resume('c1', { query }));
    for (const resumed of [header, address]) {
      await resumed.until(() => resumed.text());
      expect(resumed.chunks()).toEqual([{ type: 'text-delta', id: 'open', delta: 'cd' }]);
    }
  });

  it('gives the rest of a turn that has ended, within the retention time only', async () => {
    const log = memoryTurnLog({ retentionMs: 50 });
    const { carl, first, run, turnId } = await startTurn({ log });
    run.text('abc');
    run.end();
    await first.ended;
    expect(await readChunks(await carl.resumeAt(`${turnId}:4`))).toEqual(first.chunks().slice(4));
    await expect
      .poll(async () => (await carl.resumeAt(`${turnId}:4`)).status, { interval: 10 })
      .toBe(204);
  });

  it('gives nothing behind the very end of a turn: 204', async () => {
    const { carl, first, run } = await startTurn();
    run.text('a');
    run.end();
    await first.ended;
    const { id } = first.frames.at(-2) ?? {};
    expect(statuses([await carl.resumeAt(id as string)])).toEqual([204]);
  });

  it('waits for more at the end of what there is of a running turn', async () => {
    const { carl, first, run } = await startTurn();
    run.delta('a');
    await first.until(() => first.text());
    for (const query of ['', 'aiSdk=7']) {
      const { id } = first.frames.at(-1) ?? {};
      const second = openSse(await carl.resumeAt(id as string, 'c1', { query }));
      run.delta(query || 'b');
      await second.until(() => second.text() === (query || 'b'));
    }
  });

  it.each([
    ['past the end', (turnId: string) => `${turnId}:99`],
    ['of a turn nobody knows', () => '3f2c9d1e-0000-4000-8000-000000000000:2'],
    ['that is no cursor', () => 'rubbish'],
    ['without a number', (turnId: string) => `${turnId}:`],
    ['with a number that is none', (turnId: string) => `${turnId}:two`],
    ['before the beginning', (turnId: string) => `${turnId}:-1`],
    ['between two', (turnId: string) => `${turnId}:1.5`],
    ['of nothing', () => ':'],
  ])('%s gets a full replay', async (_, cursorOf) => {
    const { carl, first, run, turnId } = await startTurn();
    run.delta('a');
    run.delta('b');
    await first.until(() => first.text() === 'ab');
    const live = openSse(await carl.resumeAt(cursorOf(turnId)));
    await live.until(() => live.text() === 'ab');
    expect(live.chunks()[0]).toEqual(first.chunks()[0]);
    run.end();
    await first.ended;
    const ended = openSse(await carl.resumeAt(cursorOf(turnId)));
    await ended.ended;
    expect(foldChunks(ended.chunks())).toEqual(foldChunks(first.chunks()));
  });

  it('of another chat or session opens nothing there', async () => {
    const { agent, gateway, carl, first, run, turnId } = await startTurn();
    run.delta('secret');
    await first.until(() => first.text());
    const elsewhere = createUser(gateway, 'carl', 's2');
    const cursor = `${turnId}:1`;
    expect(statuses([await carl.resumeAt(cursor, 'c2'), await elsewhere.resumeAt(cursor)])).toEqual(
      [204, 204],
    );
    // Where that chat has a turn of its own, that is what it gets, whole.
    await elsewhere.post(chatBody('hi'));
    (await agent.run(1)).delta('own');
    const own = openSse(await elsewhere.resumeAt(cursor));
    await own.until(() => own.text());
    expect([own.text(), own.chunks()[0]?.type]).toEqual(['own', 'start']);
  });

  it('finds an earlier turn of its chat', async () => {
    const { agent, carl, first, run, turnId } = await startTurn();
    run.text('old');
    run.end();
    await first.ended;
    await carl.post(chatBody('more'));
    (await agent.run(1)).delta('new');
    const rest = await readChunks(await carl.resumeAt(`${turnId}:2`));
    expect(rest).toEqual(first.chunks().slice(2));
  });

  it('at the end of what there is still knows what this client has seen', async () => {
    const { carl, first, run } = await startTurn();
    run.say({ type: 'start-step' });
    run.delta('a');
    run.say({ type: 'tool-input-start', toolCallId: 'c', toolName: 'look' });
    // Only 7 can take a step back: others keep the call, and it has to end some time.
    run.say({ type: 'reset-step' } as Chunk);
    const last = await first.until(() => first.frames.find(({ event }) => event === 'text-end'));
    const second = openSse(await carl.resumeAt(last.id as string));
    run.say({ type: 'finish-step' });
    run.end();
    await Promise.all([first.ended, second.ended]);
    expect(second.chunks().map(({ type }) => type)).toEqual([
      'tool-output-error',
      'finish-step',
      'finish',
    ]);
  });

  it.each(['', 'aiSdk=5', 'aiSdk=6', 'aiSdk=7'])(
    'anywhere gives each chunk once, and the same message in the end: %j',
    async (query) => {
      await fc.assert(
        fc.asyncProperty(
          chunkSequences(7, 'whole'),
          fc.nat(),
          fc.nat(),
          async (chunks, at, cut) => {
            const held = Promise.withResolvers<void>();
            const pause = cut % (chunks.length + 1);
            const upstream = asUpstream(async function* () {
              yield* chunks.slice(0, pause);
              await held.promise;
              yield* chunks.slice(pause);
            });
            const gateway = createTestGateway(upstream);
            const carl = createUser(gateway, 'carl');
            const whole = openSse(await carl.post(chatBody('hi'), { query }));
            const quiet = () => new Promise((resolve) => setImmediate(resolve));
            for (let i = 0; i < 4; i++) await quiet();
            const known = whole.frames.filter(({ id }) => id !== undefined);
            const index = known.length > 0 ? at % known.length : -1;
            const cursor = known[index]?.id;
            const resumed = openSse(
              cursor === undefined
                ? await carl.resume('c1', { query })
                : await carl.resumeAt(cursor, 'c1', { query }),
            );
            held.resolve();
            await Promise.all([whole.ended, resumed.ended]);
            await gateway.close();
            const seen = whole
              .chunks()
              .slice(0, cursor ? whole.frames.indexOf(known[index] as never) + 1 : 0);
            const seqs = resumed.frames.flatMap(({ id }) => (id ? [Number(id.split(':')[1])] : []));
            expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
            const from = Number(cursor?.split(':')[1] ?? 0);
            expect(seqs.every((seq) => seq > from)).toBe(true);
            expect(comparable(foldChunks([...seen, ...resumed.chunks()]))).toEqual(
              comparable(foldChunks(whole.chunks())),
            );
          },
        ),
        { numRuns: 60 },
      );
    },
  );
});

describe('a stop', () => {
  it('from any viewer who may ends the turn for all, and says so in its metadata [RFC-INT-2.3]', async () => {
    const { gateway, first, run } = await startTurn();
    run.delta('half a');
    await first.until(() => first.text());
    const vera = openSse(await createUser(gateway, 'vera').resume());
    const response = await createUser(gateway, 'cora').stop();
    expect([response.status, await response.json()]).toEqual([202, { stopped: true }]);
    await Promise.all([first.ended, vera.ended]);
    for (const viewer of [first, vera]) {
      expect(viewer.chunks().slice(-2)).toEqual([
        { type: 'text-end', id: 'open' },
        {
          type: 'finish',
          finishReason: 'other',
          messageMetadata: { outcome: 'stopped', reason: 'stopped by the user' },
        },
      ]);
    }
    expect(run.turn.signal.aborted).toBe(true);
  });

  it('ends all that runs in the chat', async () => {
    const { agent, carl, first, run } = await startTurn();
    const second = openSse(await carl.post(chatBody('more')));
    const { turn } = await agent.run(1);
    expect((await carl.stop()).status).toBe(202);
    await Promise.all([first.ended, second.ended]);
    expect([run.turn.signal.aborted, turn.signal.aborted]).toEqual([true, true]);
  });

  it('where nothing runs does nothing: 204', async () => {
    const carl = createUser(createTestGateway(echo), 'carl');
    expect((await carl.stop()).status).toBe(204);
    await readChunks(await carl.post(chatBody('hi')));
    expect((await carl.stop()).status).toBe(204);
  });

  it('sent many times at once stops once', async () => {
    const { carl, first, run } = await startTurn();
    run.delta('a');
    await first.until(() => first.text());
    const all = await Promise.all(Array.from({ length: 20 }, () => carl.stop()));
    await first.ended;
    expect(all[0]?.status).toBe(202);
    for (const { status } of all) expect([202, 204]).toContain(status);
    expect(first.chunks().filter(({ type }) => type === 'finish')).toHaveLength(1);
  });
});
