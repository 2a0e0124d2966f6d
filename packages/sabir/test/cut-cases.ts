/** Random turns, the pace at which they are told, and where their viewers are cut off. */
import { setImmediate, setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import type { AiSdkMajor, Chunk } from '../src/core/chunks.ts';
import { compactChunks } from '../src/core/compact.ts';
import { createDowngrade } from '../src/core/downgrade.ts';
import type { LoggedChunk } from '../src/turns/log.ts';
import type { Step } from './agent-ops-script.ts';
import { chunkSequences } from './arbitrary-chunks.ts';
import type { Cut, Passage } from './cutting-proxy.ts';

export type Content =
  | { via: 'generator'; chunks: Chunk[] }
  /** A real agent on a WebSocket, in one of its dialects. */
  | { via: 'snapshot' | 'v2'; steps: Step[] };

export type Client = AiSdkMajor | 'portable';

export type Pacing = 'at once' | 'bursts' | 'live';

/** Where a connection is cut, in thousandths of what is left to send. */
export type PlannedCut = Omit<Cut, 'at'> & { permille: number };

export type CutCase = {
  content: Content;
  pacing: Pacing;
  client: Client;
  /** One connection after another; those that have no cut are left alone. */
  cuts: PlannedCut[];
  /** A second viewer who joins after so many thousandths of the turn. */
  second: { joinPermille: number; cuts: PlannedCut[] } | undefined;
};

const rarely = (oneIn: number) => fc.nat({ max: oneIn - 1 }).map((n) => n === 0);

/** Every delta can be told from every other: `<0>`, `<1>` and so on. */
export const mark = (text: string, index: number) => `${text}<${index}>`;
const MARK = /<\d+>/g;
export const marksOf = (chunks: Chunk[]): string[] =>
  chunks.flatMap((chunk) =>
    chunk.type === 'text-delta' || chunk.type === 'reasoning-delta'
      ? (chunk.delta.match(MARK) ?? [])
      : [],
  );

/** A step that is taken back: clients before 7 are told in several frames under one number. */
function withdraw(id: number): Chunk[] {
  const ids = [`w${id}-a`, `w${id}-b`];
  return [
    ...ids.map((text): Chunk => ({ type: 'text-start', id: text })),
    ...ids.map((text): Chunk => ({ type: 'text-delta', id: text, delta: 'back' })),
    { type: 'tool-input-start', toolCallId: `w${id}-c`, toolName: 'tool0' },
    { type: 'reset-step' },
  ];
}

/** A text that is open nearly all the time, and goes on between what else there is. */
function interweave(chunks: Chunk[]): Chunk[] {
  let id: string | undefined;
  let isInStep = false;
  return chunks.flatMap((chunk, index): Chunk[] => {
    const { type } = chunk;
    const open = id;
    if (type === 'start-step') isInStep = true;
    if (type === 'finish-step') isInStep = false;
    if (type === 'finish-step' || type === 'reset-step') id = undefined;
    if (type === 'finish-step' && open) return [{ type: 'text-end', id: open }, chunk];
    if (!isInStep || type === 'reset-step' || (open && index % 2 === 0)) return [chunk];
    id = open ?? `long-${index}`;
    const delta: Chunk = { type: 'text-delta', id, delta: 'It goes on and on and on. ' };
    return open ? [chunk, delta] : [chunk, { type: 'text-start', id }, delta];
  });
}

function markDeltas(chunks: Chunk[]): Chunk[] {
  let deltas = 0;
  return chunks.map((chunk) =>
    chunk.type === 'text-delta' || chunk.type === 'reasoning-delta'
      ? { ...chunk, delta: mark(chunk.delta, deltas++) }
      : chunk,
  );
}

function generated(major: AiSdkMajor): fc.Arbitrary<Content> {
  return fc
    .record({
      chunks: chunkSequences(major, 'whole'),
      isFailing: rarely(5),
      isStopping: rarely(10),
      isWithdrawing: fc.boolean().map((is) => is && major === 7),
      isWoven: rarely(5).map((isNot) => !isNot || major === 5),
    })
    .map(({ chunks, isFailing, isStopping, isWithdrawing, isWoven }) => {
      const kept = chunks.filter(
        ({ type }) => (type !== 'error' || isFailing) && (type !== 'abort' || isStopping),
      );
      const told = (isWoven ? interweave(kept) : kept).flatMap((chunk, index): Chunk[] =>
        chunk.type === 'start-step' && isWithdrawing ? [chunk, ...withdraw(index)] : [chunk],
      );
      return { via: 'generator', chunks: markDeltas(told) };
    });
}

function played(): fc.Arbitrary<Content> {
  const text = fc.string({ unit: 'grapheme', minLength: 1 });
  const step = fc.oneof(
    { weight: 4, arbitrary: text.map((say) => ({ say })) },
    fc.record({ call: fc.string(), result: fc.jsonValue({ maxDepth: 1 }), isFailing: rarely(4) }),
  );
  return fc
    .record({
      via: fc.constantFrom('snapshot' as const, 'v2' as const),
      drawn: fc.array(step, { minLength: 2, maxLength: 25 }),
      isFailing: rarely(6),
    })
    .map(({ via, drawn, isFailing }) => {
      const steps = drawn.flatMap((one, index): Step[] => {
        if ('say' in one) return [{ say: mark(one.say, index) }];
        const { call, result } = one;
        const tool = { callId: `call-${index}`, toolName: 'search', args: { q: call } };
        const end = one.isFailing
          ? { status: 'error' as const, error: 'no' }
          : { status: 'completed' as const, result };
        return [{ tool: { ...tool, status: 'running' } }, { tool: { ...tool, ...end } }];
      });
      if (isFailing) steps.push({ fail: 'It broke.' });
      return { via, steps };
    });
}

const plannedCut: fc.Arbitrary<PlannedCut> = fc.record({
  how: fc.constantFrom('reset', 'close', 'end'),
  inHead: rarely(12),
  // Mostly early: each cut takes its share of what the one before it left.
  permille: fc.oneof(fc.nat({ max: 950 }), fc.nat({ max: 300 }), fc.nat({ max: 300 })),
});

/** A request that nobody has answered yet is made four times in all. */
const hasFewHeads = (cuts: PlannedCut[]) => cuts.slice(0, 4).some(({ inHead }) => !inHead);
const plan = (maxLength: number) =>
  fc
    .array(plannedCut, { minLength: 1, maxLength })
    .filter((cuts) => cuts.length < 4 || hasFewHeads(cuts));

export const cutCases = (): fc.Arbitrary<CutCase> =>
  fc.record({
    content: fc.oneof({ weight: 4, arbitrary: generated(7) }, { weight: 1, arbitrary: played() }),
    pacing: fc.constantFrom('at once', 'bursts', 'live'),
    client: fc.constantFrom<Client[]>('portable', 5, 6, 7),
    cuts: plan(8),
    second: fc.option(fc.record({ joinPermille: fc.nat({ max: 999 }), cuts: plan(5) }), {
      nil: undefined,
      freq: 2,
    }),
  });

/** What any stock client can be told. It holds on at some place until the last cut has been made. */
export type StockCase = Pick<CutCase, 'content' | 'pacing' | 'cuts'> & { holdPermille: number };

export const stockCases = (): fc.Arbitrary<StockCase> =>
  fc.record({
    content: fc.oneof({ weight: 3, arbitrary: generated(5) }, { weight: 1, arbitrary: played() }),
    pacing: fc.constantFrom('at once', 'bursts', 'live'),
    // Each replay begins at the beginning, so they may fall anywhere in it.
    cuts: fc.array(
      fc.record({ plannedCut, permille: fc.integer({ min: 150, max: 950 }) }).map((drawn) => ({
        ...drawn.plannedCut,
        permille: drawn.permille,
      })),
      { minLength: 1, maxLength: 5 },
    ),
    holdPermille: fc.integer({ min: 300, max: 999 }),
  });

/** Tells the items at their pace; at one place it waits, if it is told to. */
export async function* paced<T>(
  items: T[],
  pacing: Pacing,
  hold?: { at: number; wait(): Promise<unknown> },
): AsyncGenerator<T, void> {
  for (const [index, item] of items.entries()) {
    if (index === hold?.at) await hold.wait();
    yield item;
    if (pacing === 'live') await setImmediate();
    if (pacing === 'bursts' && index % 7 === 6) await setTimeout(1);
  }
}

export const itemsOf = (content: Content): Array<Chunk | Step> =>
  content.via === 'generator' ? content.chunks : content.steps;

/** Its first items only. */
export const firstOf = (content: Content, count: number): Content =>
  content.via === 'generator'
    ? { ...content, chunks: content.chunks.slice(0, count) }
    : { ...content, steps: content.steps.slice(0, count) };

const isTerminal = (item: Chunk | Step) =>
  'fail' in item || ('type' in item && (item.type === 'error' || item.type === 'abort'));

/** A place before the turn has ended. */
export function placeIn(content: Content, permille: number): number {
  const items = itemsOf(content);
  const end = items.findIndex(isTerminal);
  return Math.floor(((end < 0 ? items.length : end + 1) * permille) / 1000);
}

/** About what the log of such a turn will be. */
function likelyLog(content: Content, client: Client): LoggedChunk[] {
  const items = itemsOf(content);
  const end = items.findIndex(isTerminal);
  const downgrade = createDowngrade(client);
  return items.slice(0, end < 0 ? items.length : end + 1).flatMap((item, index) => {
    const chunk: Chunk =
      'type' in item
        ? item
        : 'say' in item
          ? { type: 'text-delta', id: 't', delta: item.say }
          : { type: 'data-step', data: item };
    return downgrade(chunk).map((sent) => ({ seq: index + 1, chunk: sent }));
  });
}

/** What goes around the JSON of a chunk: event, id, coding. */
const FRAME_BYTES = 50;
const HEAD_BYTES = 350;

/** Thousandths → bytes of about what the response to this request will have. */
export function toCut(
  content: Content,
  client: Client,
  { cursor }: Passage,
  { how, inHead, permille }: PlannedCut,
): Cut {
  const seq = Number(cursor?.slice(cursor.lastIndexOf(':') + 1) ?? 0);
  const left = likelyLog(content, client).filter((one) => one.seq > seq);
  let bytes = 0;
  // Merged, as in most responses: behind the end of one nothing can be cut.
  for (const chunk of compactChunks(left.map(({ chunk }) => chunk))) {
    bytes += FRAME_BYTES + Buffer.byteLength(JSON.stringify(chunk));
  }
  return { how, inHead, at: Math.floor(((inHead ? HEAD_BYTES : bytes) * permille) / 1000) };
}

export type CutPlace = {
  inHead: boolean;
  isMidFrame: boolean;
  /** Between frames that stand for one number. */
  isMidGroup: boolean;
  /** A text, a reasoning or a tool's input is open. */
  isMidPart: boolean;
};

/** Where a cut has fallen, by what had been forwarded. */
export function placeOf({ cursor, body }: Passage, cut: Cut, log: LoggedChunk[]): CutPlace {
  const text = body.toString('latin1');
  const end = text.lastIndexOf('\n\n');
  const whole = end < 0 ? '' : text.slice(0, end + 2);
  const ids = [...whole.matchAll(/^id: \S+:(\d+)$/gm)];
  const seq = Number(ids.at(-1)?.[1] ?? cursor?.slice(cursor.lastIndexOf(':') + 1) ?? 0);
  const open = new Set<string>();
  for (const { seq: at, chunk } of log) {
    if (at > seq) break;
    const { type } = chunk;
    const key = 'toolCallId' in chunk ? chunk.toolCallId : 'id' in chunk ? `${chunk.id}` : '';
    if (/^(text|reasoning|tool-input)-start$/.test(type)) open.add(key);
    if (/^(text-end|reasoning-end|tool-input-available|tool-input-error)$/.test(type)) {
      open.delete(key);
    }
    if (type === 'reset-step') open.clear();
  }
  return {
    inHead: cut.inHead,
    isMidFrame: body.length > whole.length,
    isMidGroup:
      !cut.inHead && whole !== '' && !/\nid: [^\n]+\ndata: [^\n]+\n\n$/.test(`\n${whole}`),
    isMidPart: !cut.inHead && open.size > 0,
  };
}
