import { describe, expect, it } from 'vitest';
import { nextTick } from '../../test/running-turn.ts';
import { beginTurn, view, type WrittenTurn } from '../../test/viewing-turn.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import { verifyChunks } from '../core/verify.ts';
import { memoryTurnLog } from '../turns/memory.ts';

const MEGABYTE = 1_000_000;
const OPENING: Chunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'text-start', id: '1' },
];
const CLOSING: Chunk[] = [{ type: 'text-end', id: '1' }, { type: 'finish' }];
const delta = (text: string): Chunk => ({ type: 'text-delta', id: '1', delta: text });
const textOf = (chunks: Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');

/** A turn that a viewer has seen the beginning of, with another viewer that keeps up. */
async function startWatching() {
  const turn = await beginTurn(memoryTurnLog({ maxTurnBytes: 100 * MEGABYTE }));
  const info = await turn.info();
  const slow = view(turn, info);
  const other = view(turn, info);
  const reading = other.readAll();
  await turn.writer.append(OPENING);
  await slow.pull();
  return { turn, slow, other, reading };
}

/** Resolves when all of it has passed at the turn's tail. */
async function write(
  { writer, fanouts, info }: WrittenTurn,
  count: number,
  chunk: (n: number) => Chunk,
) {
  let lastSeq = 0;
  for (let n = 0; n < count; n++) {
    lastSeq = await writer.append([chunk(n)]);
    if (n % 100 === 0) await nextTick();
  }
  const fanout = fanouts.of(await info());
  while (fanout.position < lastSeq) await nextTick();
}

/** Reads until it has seen the chunk of this number. */
async function pullUntil(viewer: ReturnType<typeof view>, seq: number): Promise<void> {
  const hasSeen = () => viewer.frames.some(({ id }) => id?.endsWith(`:${seq}`));
  while (!hasSeen() && (await viewer.pull()));
}

async function finish({ writer }: WrittenTurn): Promise<void> {
  await writer.append(CLOSING);
  await writer.close({ status: 'finished' });
}

describe('a viewer that falls behind', () => {
  it('gets every delta as it was while it is not far behind', async () => {
    const { turn, slow } = await startWatching();
    await write(turn, 500, () => delta('x'.repeat(1_000)));
    await pullUntil(slow, 502);
    expect(slow.chunks()).toHaveLength(2 + 500);
  });

  it('gets its backlog merged where that makes it small enough', async () => {
    const { turn, slow, reading } = await startWatching();
    // 20,000 small deltas weigh more than they say.
    await write(turn, 20_000, (n) => delta(`${n} `));
    await pullUntil(slow, 20_002);
    const { length } = slow.chunks();
    expect(length).toBeLessThan(20);
    await write(turn, 3, () => delta('!'));
    await pullUntil(slow, 20_005);
    expect(slow.chunks()).toHaveLength(length + 3);
    await finish(turn);
    expect(foldChunks(await slow.readAll())).toEqual(foldChunks(await reading));
    expect(slow.onSlow).not.toHaveBeenCalled();
    expect(slow.onDeparture.mock.calls).toEqual([['ended']]);
  });

  it('is told so and let go where that does not help; nobody else notices', async () => {
    const { turn, slow, other, reading } = await startWatching();
    await write(turn, 2_500, () => delta('x'.repeat(1_000)));
    const chunks = await slow.readAll();
    expect(verifyChunks(chunks)).toEqual([]);
    expect(chunks.map(({ type }) => type)).toEqual([
      'start',
      'text-start',
      'text-end',
      'message-metadata',
      'error',
      'finish',
    ]);
    expect(chunks).toContainEqual({
      type: 'error',
      errorText: 'The connection is too slow to follow the answer.',
    });
    expect(slow.isDone()).toBe(true);
    expect(slow.frames.at(-2)?.id).toBeUndefined();
    expect(slow.onSlow).toHaveBeenCalledOnce();
    expect(slow.onDeparture.mock.calls).toEqual([['let-go']]);
    await finish(turn);
    expect(textOf(await reading)).toHaveLength(2_500_000);
    expect(other.onDeparture.mock.calls).toEqual([['ended']]);
    expect((await turn.info()).outcome).toEqual({ status: 'finished' });
  });

  it('is let go without a word if it comes back by itself, and finds the rest there', async () => {
    const turn = await beginTurn();
    const slow = view(turn, await turn.info(), { isResuming: true });
    await turn.writer.append(OPENING);
    await slow.pull();
    await write(turn, 2_500, () => delta('x'.repeat(1_000)));
    expect(await slow.readAll()).toEqual(OPENING);
    expect(slow.isDone()).toBe(false);
    const again = view(turn, await turn.info(), { after: OPENING.length, isResuming: true });
    await finish(turn);
    expect(textOf(await again.readAll())).toHaveLength(2_500_000);
  });

  it('is never let go for one chunk, however large', async () => {
    const { turn, slow } = await startWatching();
    const huge: Chunk = { type: 'data-x', data: 'x'.repeat(5 * MEGABYTE) };
    await turn.writer.append([huge]);
    await slow.pull();
    expect(slow.chunks().at(-1)).toEqual(huge);
    // Nor for one among a few small ones.
    await turn.writer.append([delta('a'), huge, delta('b'), delta('c')]);
    await finish(turn);
    await slow.readAll();
    expect(slow.onDeparture.mock.calls).toEqual([['ended']]);
  });

  it('is never let go for the first replay, however long it is', async () => {
    const turn = await beginTurn(memoryTurnLog({ maxTurnBytes: 100 * MEGABYTE }));
    await turn.writer.append(OPENING);
    for (let n = 0; n < 5; n++) {
      await turn.writer.append([{ type: 'data-x', data: 'x'.repeat(MEGABYTE) }, delta('a')]);
    }
    const info = await turn.info();
    const whole = view(turn, info);
    const rest = view(turn, info, { after: 2, client: 'portable' });
    await finish(turn);
    expect(await whole.readAll()).toHaveLength(2 + 10 + 2);
    expect(await rest.readAll()).toHaveLength(10 + 2);
    for (const { onDeparture } of [whole, rest]) {
      expect(onDeparture.mock.calls).toEqual([['ended']]);
    }
  });

  it('can be behind by more chunks than a call has room for arguments', async () => {
    const { turn, slow } = await startWatching();
    await turn.writer.append(Array.from({ length: 300_000 }, () => delta('x')));
    await pullUntil(slow, 300_002);
    expect(textOf(slow.chunks())).toHaveLength(300_000);
    expect(slow.chunks().length).toBeLessThan(300);
  });

  it('is let go when the log needs the room of the ended turn that it reads', async () => {
    const log = memoryTurnLog({ retainedBytes: MEGABYTE, retentionMs: 0 });
    const turn = await beginTurn(log);
    await turn.writer.append(OPENING);
    await write(turn, 700, () => delta('x'.repeat(1_000)));
    const slow = view(turn, await turn.info());
    await slow.pull();
    await finish(turn);
    // It may finish what it reads, though the log has forgotten the turn.
    await slow.pull();
    const next = await beginTurn(log);
    await next.writer.append(OPENING);
    await write(next, 700, () => delta('x'.repeat(1_000)));
    const other = view(next, await next.info());
    await other.pull();
    await finish(next);
    const chunks = await slow.readAll();
    expect(verifyChunks(chunks)).toEqual([]);
    expect(JSON.stringify(chunks)).toContain('viewer-too-slow');
    expect(textOf(await other.readAll())).toHaveLength(700_000);
  });
});
