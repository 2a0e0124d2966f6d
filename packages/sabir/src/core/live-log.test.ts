import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Chunk } from './chunks.ts';
import { foldChunks } from './fold.ts';
import { LiveLog } from './live-log.ts';

const delta = (text: string): Chunk => ({ type: 'text-delta', id: 't', delta: text });
const OPENING: Chunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'text-start', id: 't' },
];
const CLOSING: Chunk[] = [{ type: 'text-end', id: 't' }, { type: 'finish' }];

async function readAll(stream: ReadableStream<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

describe('LiveLog', () => {
  it('gives a viewer that was there from the start every chunk as it came', async () => {
    const log = new LiveLog();
    const reading = readAll(log.read());
    log.append([...OPENING, delta('a'), delta('b')]);
    log.append(CLOSING);
    log.close();
    expect(await reading).toEqual([...OPENING, delta('a'), delta('b'), ...CLOSING]);
  });

  it('gives a late viewer the same, merged, and what follows as it comes', async () => {
    const log = new LiveLog();
    log.append([...OPENING, delta('a'), delta('b')]);
    const reader = log.read().getReader();
    const next = async () => (await reader.read()).value;
    expect([await next(), await next(), await next()]).toEqual([...OPENING, delta('ab')]);
    log.append([delta('c')]);
    expect(await next()).toEqual(delta('c'));
  });

  it('replays a log that is closed', async () => {
    const log = new LiveLog();
    log.append([...OPENING, ...CLOSING]);
    log.close();
    expect(await readAll(log.read())).toEqual([...OPENING, ...CLOSING]);
  });

  it('tells when the last viewer has left, and only while it is open', async () => {
    const log = new LiveLog();
    log.onAbandoned = vi.fn();
    const [first, second] = [log.read(), log.read()];
    await first.cancel();
    expect(log.onAbandoned).not.toHaveBeenCalled();
    await second.cancel();
    expect(log.onAbandoned).toHaveBeenCalledOnce();
    log.close();
    await log.read().cancel();
    expect(log.onAbandoned).toHaveBeenCalledOnce();
  });

  it('gives each viewer a data chunk of its own, because clients write into theirs', async () => {
    const log = new LiveLog();
    const chunk: Chunk = { type: 'data-x', id: 'x', data: 1 };
    const live = readAll(log.read());
    log.append([chunk]);
    const late = readAll(log.read());
    log.close();
    const [[first], [second]] = [await live, await late];
    expect([first, second]).toEqual([chunk, chunk]);
    expect(first).not.toBe(second);
    expect(first).not.toBe(chunk);
  });

  it('holds as much as the message, not as many chunks as came', async () => {
    const log = new LiveLog();
    log.append(OPENING);
    for (let n = 0; n < 10_000; n++) log.append([delta('x')]);
    log.append(CLOSING);
    log.close();
    const replay = await readAll(log.read());
    expect(replay.length).toBeLessThan(10);
    expect(foldChunks(replay).parts[0]).toMatchObject({ text: 'x'.repeat(10_000) });
  });

  it('does not merge again and again where little can be merged', () => {
    const log = new LiveLog();
    log.append(OPENING);
    for (let n = 0; n < 1_020; n++) log.append([{ type: 'data-x', data: n }]);
    const start = performance.now();
    for (let n = 0; n < 50_000; n++) log.append([delta('word ')]);
    expect(performance.now() - start).toBeLessThan(1_000);
  });

  it('gives every viewer the same message, whenever it joins and however it reads', async () => {
    type Move = { append: number } | { join: true } | { read: number };
    const moves = fc.array(
      fc.oneof<fc.Arbitrary<Move>[]>(
        fc.record({ append: fc.integer({ min: 1, max: 1_500 }) }),
        fc.constant({ join: true as const }),
        fc.record({ read: fc.nat(3) }),
      ),
      { maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(moves, async (script) => {
        const log = new LiveLog();
        const viewers: { reader: ReadableStreamDefaultReader<Chunk>; seen: Chunk[] }[] = [];
        const join = () => viewers.push({ reader: log.read().getReader(), seen: [] });
        let written = 0;
        join();
        log.append(OPENING);
        for (const move of script) {
          if ('join' in move) join();
          else if ('append' in move) {
            log.append(Array.from({ length: move.append }, () => delta(`${written++} `)));
          } else {
            const viewer = viewers[move.read % viewers.length];
            const { value } = (await viewer?.reader.read()) ?? {};
            if (value) viewer?.seen.push(value);
            // Nothing may be there to read yet; then this viewer is simply live.
          }
          if ('read' in move) log.append([delta(`${written++} `)]);
        }
        log.append(CLOSING);
        log.close();
        const expected = Array.from({ length: written }, (_, n) => `${n} `).join('');
        for (const { reader, seen } of viewers) {
          for (let step = await reader.read(); !step.done; step = await reader.read()) {
            seen.push(step.value);
          }
          const text = seen
            .map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : ''))
            .join('');
          expect(text).toBe(expected);
          expect(seen.filter(({ type }) => type !== 'text-delta')).toEqual([
            ...OPENING,
            ...CLOSING,
          ]);
        }
      }),
      { numRuns: 200 },
    );
  });
});
