/**
 * Whatever is cut, wherever and how often: the message is the one that would have been there
 * without. Over real TCP, through a real gateway, with random turns. `CUTS_SEED` draws the same
 * cases again, `CUTS_CASE` runs one of them; how things fall in time is not repeated.
 */
import { DefaultChatTransport as Transport6 } from 'ai-v6';
import { DefaultChatTransport as Transport7 } from 'ai-v7';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SabirChatTransport } from '../src/clients/index.ts';
import type { Chunk } from '../src/core/chunks.ts';
import { compactChunks } from '../src/core/compact.ts';
import { createDowngrade } from '../src/core/downgrade.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { UIMessage } from '../src/core/message.ts';
import { createSseDecoder } from '../src/core/sse.ts';
import type { LoggedChunk } from '../src/turns/log.ts';
import { comparable } from './comparable.ts';
import {
  type Client,
  type CutCase,
  type CutPlace,
  cutCases,
  firstOf,
  mark,
  marksOf,
  placeIn,
  placeOf,
  type StockCase,
  stockCases,
} from './cut-cases.ts';
import { type CutRig, startCutRig, type Viewer } from './cut-rig.ts';
import { createClient, runClientOnBytes } from './real-clients.ts';
import { collect, FAST } from './scripted-transport.ts';

// Turns of some length.
fc.configureGlobal({ baseSize: 'medium' });
const CASES = Number(process.env.CUTS_CASES ?? 2_010);
const STOCK_CASES = Number(process.env.CUTS_STOCK_CASES ?? 100);
const SEED = Number(process.env.CUTS_SEED ?? Date.now() % 2 ** 31);
const ONLY = process.env.CUTS_CASE;
const AT_ONCE = 12;
/** A case takes some milliseconds; one that takes so long hangs. */
const CASE_MS = 30_000;

let rig: CutRig;
beforeAll(async () => {
  rig = await startCutRig();
});
afterAll(() => rig.close());

/** What the cases of a run were like. */
class Tally {
  cases = 0;
  /** Those in which something was cut. */
  cutCases = 0;
  pairs = 0;
  chunks = 0;
  ways: Record<string, number> = {};
  places: CutPlace[] = [];

  add(viewers: Viewer[], log: LoggedChunk[]): void {
    this.cases += 1;
    this.chunks += log.length;
    if (viewers.length > 1) this.pairs += 1;
    const made = viewers.flatMap(({ cuts }) => cuts);
    if (made.length > 0) this.cutCases += 1;
    for (const { passage, cut } of made) {
      this.places.push(placeOf(passage, cut, log));
      this.ways[cut.how] = (this.ways[cut.how] ?? 0) + 1;
    }
  }

  share(is: keyof CutPlace): number {
    return this.places.filter((place) => place[is]).length / this.places.length;
  }

  print(what: string): void {
    const percent = (share: number) => `${(100 * share).toFixed(1)} %`;
    const ways = Object.entries(this.ways).map(([how, count]) => `${how} ${count}`);
    const lines = [
      `${what}, seed ${SEED}: ${this.cases} cases, ${this.cutCases} of them cut,`,
      `${percent(this.pairs / this.cases)} with two viewers, ${this.chunks} chunks;`,
      `${this.places.length} cuts (${ways.join(', ')}):`,
      `${percent(this.share('isMidFrame'))} in mid-frame,`,
      `${percent(this.share('isMidPart'))} in mid-part,`,
      `${percent(this.share('isMidGroup'))} between frames of one number,`,
      `${percent(this.share('inHead'))} in a response's head`,
    ];
    console.log(lines.join(' '));
  }
}

/** Some at a time; one that fails is told with all there is to know of it. */
async function runAll<T>(
  what: string,
  arbitrary: fc.Arbitrary<T>,
  numRuns: number,
  run: (one: T, id: string, viewers: Viewer[]) => Promise<void>,
): Promise<void> {
  const queue = fc.sample(arbitrary, { seed: SEED, numRuns }).entries();
  async function runOne(index: number, one: T): Promise<void> {
    const viewers: Viewer[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('It hangs.')), CASE_MS);
    });
    try {
      await Promise.race([run(one, `${what}-${index}`, viewers), late]);
    } catch (cause) {
      const made = viewers.map(({ name, cuts }) => {
        const told = cuts.map(({ passage: { method, cursor, body }, cut }) => {
          const { how, inHead, at } = cut;
          return `${method} ${cursor ?? ''} ${how} at ${at}${inHead ? ' of the head' : ''}, ${body.length} bytes of body`;
        });
        return `${name}:\n  ${told.join('\n  ')}`;
      });
      const message = `${(cause as Error).message}\nCUTS_SEED=${SEED} CUTS_CASE=${index}\n`;
      throw new Error(`${message}${made.join('\n')}\n${JSON.stringify(one)}`, { cause });
    } finally {
      clearTimeout(timer);
      rig.forget(`${what}-${index}`, viewers);
    }
  }
  const work = async () => {
    for (const [index, one] of queue) {
      if (ONLY === undefined || Number(ONLY) === index) await runOne(index, one);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

const compacted = (chunks: Chunk[]) => compactChunks(chunks);

/** Each chunk of the log once, in order, as this client is told it. */
function expectAll(delivered: Chunk[], log: LoggedChunk[], client: Client): void {
  const downgrade = createDowngrade(client);
  const expected = log.flatMap(({ chunk }) => downgrade(chunk));
  expect(marksOf(delivered)).toEqual(marksOf(expected));
  expect(new Set(marksOf(delivered)).size).toBe(marksOf(delivered).length);
  expect(compacted(delivered)).toEqual(compacted(expected));
  expect(delivered.at(-1)?.type).toBe('finish');
  expect(foldChunks(delivered)).toEqual(foldChunks(expected));
}

function chunksOf(sse: string): Chunk[] {
  const chunks: Chunk[] = [];
  const decoder = createSseDecoder({
    frame: ({ data }) => data !== '[DONE]' && chunks.push(JSON.parse(data)),
  });
  decoder.push(sse);
  return chunks;
}

describe('what is compared', () => {
  const chunks: Chunk[] = [
    { type: 'start', messageId: 'm' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: mark('', 0) },
    { type: 'text-delta', id: 't', delta: mark('', 1) },
    { type: 'text-end', id: 't' },
    { type: 'data-a', data: 1, transient: true },
    { type: 'finish' },
  ];
  const log = chunks.map((chunk, index) => ({ seq: index + 1, chunk }));

  it('is the same in pieces and merged', () => {
    expectAll(chunks, log, 7);
    expectAll(compacted(chunks), log, 7);
  });

  it.each(chunks.map((chunk, index) => [chunk.type, index] as const))(
    'is not the same with a %s missing, twice or in another place (%i)',
    (_type, at) => {
      expect(() => expectAll(chunks.toSpliced(at, 1), log, 7)).toThrow();
      expect(() => expectAll(chunks.toSpliced(at, 0, chunks[at] as Chunk), log, 7)).toThrow();
      const other = (at + 1) % chunks.length;
      const swapped = chunks.with(at, chunks[other] as Chunk).with(other, chunks[at] as Chunk);
      expect(() => expectAll(swapped, log, 7)).toThrow();
    },
  );
});

describe('SabirChatTransport', () => {
  const tally = new Tally();

  async function run(one: CutCase, id: string, viewers: Viewer[]): Promise<void> {
    const { content, pacing, client, second } = one;
    const reached = Promise.withResolvers<void>();
    const joined = Promise.withResolvers<void>();
    const wait = () => {
      reached.resolve();
      return joined.promise;
    };
    const hold = second && { at: placeIn(content, second.joinPermille), wait };
    rig.play(id, { content, pacing, ...(hold && { hold }) });

    function open(cuts: CutCase['cuts']) {
      const viewer = rig.watch(`${id}-${viewers.length}`, { content, client, cuts, isHeld: false });
      viewers.push(viewer);
      return new SabirChatTransport({
        api: rig.api(id),
        headers: { 'x-viewer': viewer.name },
        backoff: FAST,
        ...(client !== 'portable' && { aiSdk: client }),
      });
    }
    async function send(): Promise<Chunk[]> {
      const message: UIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: id }] };
      const stream = await open(one.cuts).sendMessages({
        trigger: 'submit-message',
        chatId: 'c',
        messageId: undefined,
        messages: [message],
        abortSignal: undefined,
      });
      return (await collect(stream)) as Chunk[];
    }
    async function join(cuts: CutCase['cuts']): Promise<Chunk[]> {
      await reached.promise;
      const stream = await open(cuts).reconnectToStream({ chatId: 'c' });
      joined.resolve();
      expect(stream).not.toBeNull();
      return (await collect(stream)) as Chunk[];
    }

    const heard = await Promise.all([send(), ...(second ? [join(second.cuts)] : [])]);
    for (const [index, { turnId }] of viewers.entries()) {
      const log = await rig.read(turnId);
      const delivered = heard[index] as Chunk[];
      expectAll(delivered, log, client);
      const uncut = await rig.readUncut(id, turnId, { 'x-sabir-ai-sdk': `${client}` });
      expect(compacted(chunksOf(uncut))).toEqual(compacted(delivered));
      const { message, outcome } = await rig.finished(turnId);
      if (client === 7) expect(foldChunks(delivered)).toEqual(message);
      // What has failed or was stopped may be asked for again.
      if (outcome.status === 'finished') expect(rig.prompts(id)).toBe(1);
      if (index === 0) tally.add(viewers, log);
    }
  }

  it('gives every viewer the message that nobody cut, each chunk once, however often the connection is cut', async () => {
    await runAll('sabir', cutCases(), CASES, run);
    tally.print('SabirChatTransport');
    if (ONLY !== undefined) return;
    expect(tally.cutCases).toBeGreaterThanOrEqual(CASES - 10);
    expect(tally.share('isMidFrame')).toBeGreaterThanOrEqual(0.3);
    expect(tally.share('isMidPart')).toBeGreaterThanOrEqual(0.3);
    expect(tally.pairs / tally.cases).toBeGreaterThanOrEqual(0.3);
  }, 300_000);
});

type TransportOptions = { api: string; headers: Record<string, string> };

describe.each([
  { name: 'ai@6', createTransport: (options: TransportOptions) => new Transport6(options) },
  { name: 'ai@7', createTransport: (options: TransportOptions) => new Transport7(options) },
] as const)('a stock chat of $name', ({ name, createTransport }) => {
  const tally = new Tally();

  async function run(one: StockCase, id: string, viewers: Viewer[]): Promise<void> {
    const { content, pacing, cuts } = one;
    const at = placeIn(content, one.holdPermille);
    const viewer = rig.watch(`${id}-0`, {
      content: firstOf(content, at),
      client: 'portable',
      cuts,
      isHeld: true,
    });
    viewers.push(viewer);
    const hold = { at, wait: () => viewer.isThrough };
    rig.play(id, { content, pacing, hold });
    const transport = createTransport({ api: rig.api(id), headers: { 'x-viewer': viewer.name } });
    const { chat, result } = await createClient(name, transport, { id: 'c' });
    await chat.sendMessage({ text: id });
    for (const _ of cuts) await chat.resumeStream();
    expect(viewer.cuts).toHaveLength(cuts.length);

    const uncut = await runClientOnBytes(name, await rig.readUncut(id, viewer.turnId));
    const { status, message, messages } = result();
    expect(comparable(message)).toEqual(comparable(uncut.message));
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(status).toBe(uncut.status);
    expect(rig.prompts(id)).toBe(1);
    tally.add(viewers, await rig.read(viewer.turnId));
  }

  it('has the message that nobody cut, once it has been resumed by a full replay as often as it was cut', async () => {
    await runAll(name, stockCases(), STOCK_CASES, run);
    tally.print(`A stock chat of ${name}`);
    if (ONLY !== undefined) return;
    expect(tally.cutCases).toBe(STOCK_CASES);
    expect(tally.share('isMidFrame')).toBeGreaterThanOrEqual(0.3);
    expect(tally.share('isMidPart')).toBeGreaterThanOrEqual(0.2);
  }, 120_000);
});
