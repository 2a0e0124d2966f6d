import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WEB } from '../../../test/agent-ops-events.ts';
import { anySessionTurn, type TurnStep, toTold } from '../../../test/arbitrary-session-turns.ts';
import { messageOf, promptOf, type Told, takeOver, watch } from '../../../test/upstream-turn.ts';
import type { Chunk } from '../../core/chunks.ts';
import { verifyChunks } from '../../core/verify.ts';
import { LinkedSession } from './linked-session.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 200);
const OURS = { turnId: 't', promptId: 'p', ...WEB };
const OTHERS = { turnId: 'u', promptId: 'o', ...WEB };

const status = (data: object) => ({ type: 'status', data });
const inQueue = (...promptIds: string[]) => ({
  type: 'queue.state',
  data: { queue: promptIds.map((promptId, at) => ({ promptId, position: at + 1 })) },
});
const message = (parts: unknown[]) => ({
  id: 't',
  role: 'assistant',
  content: 'Told otherwise.',
  promptId: 'p',
  ...WEB,
  parts,
});

/** Whatever a server says beside a turn's events, of this turn and of others. */
const ASIDE: object[] = [
  inQueue(),
  inQueue('o'),
  status({ promptDequeued: true, remaining: 1, promptId: 'p', turnId: 't' }),
  status({ runnerBusy: false }),
  status({ runnerBusy: true }),
  status({ runnerConnected: false }),
  status({ promptKnown: 'p', turnId: 't', turnStatus: 'running' }),
  { type: 'agentStatus', status: 'thinking', ...OURS },
  { type: 'agentStatus', status: 'idle', ...OURS },
  { type: 'agentStatus', status: 'tool_calling', detail: 'bash' },
  { type: 'complete', ...OURS },
  { type: 'complete', ...OTHERS },
  { type: 'message.finalize', reason: 'end_turn', ...OTHERS, seq: 1 },
  { type: 'queue.withdrawn', data: { promptId: 'o', turnId: 'u' } },
  { type: 'error', refused: 'answer', questionId: 'q', code: 'question-answered', error: 'No.' },
  { type: 'chunk', content: 'a', messageId: 't', promptId: 'p', ...WEB },
  { type: 'message', data: message([]) },
  { type: 'message.updated', data: message([{ type: 'text', text: 'Told otherwise.' }]) },
  { type: 'pong' },
];
/** Only before it has begun. */
const WAITING: object[] = [
  status({ promptQueued: true, queuePosition: 2, promptId: 'p', turnId: 't' }),
  inQueue('o', 'p'),
  inQueue('p'),
];

const some = (events: object[]) => fc.array(fc.constantFrom(...events), { maxLength: 2 });
/** What is said before each event, by turns. */
const anyAsides = fc.record({
  before: some([...WAITING, ...ASIDE]),
  between: fc.array(some(ASIDE), { minLength: 1, maxLength: 12 }),
});
type Asides = typeof anyAsides extends fc.Arbitrary<infer T> ? T : never;

function tell(
  steps: TurnStep[],
  { before, between }: Asides,
  how: { begin: 'prompt' | 'attach'; approvals: boolean },
): Told[] {
  const session = new LinkedSession({
    channel: WEB,
    approvals: how.approvals,
    pingMs: 1e6,
    returnMs: 1e6,
    connect: () => Promise.reject(new Error('There is one connection.')),
    history: async () => [],
  });
  session.connected({ isOpen: true, send: () => undefined, close: () => undefined });
  const prompt = promptOf('Hi', { turnId: 'p', messageId: 't' });
  const { told } = watch(session, prompt, how.begin);
  for (const event of before) session.event(event);
  for (const [at, step] of steps.entries()) {
    session.event(toTold(step, at));
    for (const event of between[at % between.length] ?? []) session.event(event);
  }
  session.close();
  return told;
}

const chunksOf = (told: Told[]) => told.flatMap(({ chunks }) => chunks);
const isLasting = (chunk: Chunk) =>
  chunk.type !== 'start' && chunk.type !== 'data-queue' && !('transient' in chunk);
const placesOf = (told: Told[]) =>
  told
    .filter(({ hasPlace }) => hasPlace)
    .map(({ event, position, chunks }) => ({ event, position, chunks: chunks.filter(isLasting) }));

describe('a turn that is told again', () => {
  const given = { turn: anySessionTurn(), first: anyAsides, second: anyAsides };

  it('makes the same chunks at the same places, whatever else is said', () => {
    fc.assert(
      fc.property(
        fc.record({ ...given, approvals: fc.boolean() }),
        ({ turn, first, second, approvals }) => {
          const once = tell(turn, first, { begin: 'prompt', approvals });
          const again = tell(turn, second, { begin: 'attach', approvals });
          expect(placesOf(again)).toEqual(placesOf(once));
          const positions = placesOf(once).map(({ position }) => position);
          expect(positions).toEqual(positions.map((_, at) => at + 1));
          // What has no place says nothing that stays.
          const asides = once.filter(({ hasPlace }) => !hasPlace);
          expect(chunksOf(asides).filter(isLasting)).toEqual([]);
        },
      ),
      { numRuns: NUM_RUNS },
    );
  });

  it('is whole when somebody else goes on with it, wherever that is', () => {
    fc.assert(
      fc.property(
        fc.record({ ...given, approvals: fc.boolean() }),
        ({ turn, first, second, approvals }) => {
          const once = tell(turn, first, { begin: 'prompt', approvals });
          const again = tell(turn, second, { begin: 'attach', approvals });
          const whole = chunksOf(once);
          // Older clients have no approvals.
          const options = approvals ? ({ aiSdk: 6 } as const) : {};
          expect(verifyChunks(whole, options)).toEqual([]);
          for (let cut = 0; cut < once.length; cut++) {
            const written = once.slice(0, cut);
            const mark = written.at(-1)?.position ?? 0;
            const chunks = takeOver(chunksOf(written), mark, again);
            expect(verifyChunks(chunks, options)).toEqual([]);
            expect(messageOf(chunks)).toEqual(messageOf(whole));
            const shown = chunks.findLast(({ type }) => type === 'data-queue');
            if (shown) expect(shown).toMatchObject({ data: { position: 0, status: 'begun' } });
          }
        },
      ),
      { numRuns: NUM_RUNS },
    );
  });
});
