import { expect, it, vi } from 'vitest';
import { gate, nextTick, startTurn } from '../../test/running-turn.ts';
import type { Chunk } from '../core/chunks.ts';
import { SabirError, TURN_FENCED } from '../core/errors.ts';
import type { TurnWriter } from './log.ts';
import { memoryTurnLog } from './memory.ts';

type Run = Awaited<ReturnType<typeof startTurn>>;
type Given = NonNullable<Parameters<typeof startTurn>[0]>;

const START: Chunk = { type: 'start', messageId: 'm' };
const TOOL: Chunk = { type: 'tool-input-available', toolCallId: 't', toolName: 'x', input: {} };
const delta = (text: string): Chunk => ({ type: 'text-delta', id: '1', delta: text });
const failing = (error: unknown) => (writer: TurnWriter) => ({
  ...writer,
  append: () => Promise.reject(error),
});

/** What the agent was told when its turn was stopped. */
async function reasonOf(run: Run, chunks: Chunk[]): Promise<unknown> {
  const agent = await run.agent();
  const stop = vi.spyOn(agent, 'stop');
  agent.say(...chunks);
  await vi.waitFor(() => expect(stop).toHaveBeenCalledOnce(), 3_000);
  const [reason] = stop.mock.calls[0] as unknown[];
  return reason;
}

it.each<[string, Given, Chunk[]]>([
  ['upstream-silent', { timing: { idleMs: 40 } }, [START]],
  ['tool-silent', { timing: { idleMs: 40, toolLimitMs: 50 } }, [START, TOOL]],
  ['log-failed', { wrap: failing(new Error('the store is away')) }, [START]],
  ['turn-fenced', { wrap: failing(new SabirError(TURN_FENCED)) }, [START]],
  [
    'turn-too-large',
    { log: memoryTurnLog({ maxTurnBytes: 200 }) },
    [START, delta('x'.repeat(500))],
  ],
])('tells the agent why, where nobody has asked for a stop: %s', async (code, options, chunks) => {
  const reason = await reasonOf(await startTurn(options), chunks);
  expect(reason).toBeInstanceOf(SabirError);
  expect(reason).toMatchObject({ code });
});

it('tells it of a log that is too slow', async () => {
  const run = await startTurn({ queueBytes: 100, wrap: (writer) => gate(writer).writer });
  const agent = await run.agent();
  agent.say(START);
  await nextTick();
  expect(await reasonOf(run, [delta('x'.repeat(500))])).toMatchObject({ code: 'upstream-flood' });
});

it('tells it that nobody can say who wants a stop', async () => {
  const broken = Promise.withResolvers<void>();
  const run = await startTurn({
    wrap: (writer) => ({
      ...writer,
      // biome-ignore lint/correctness/useYield: it fails before it has anything to give.
      async *commands() {
        await broken.promise;
        throw new Error('the store is away');
      },
    }),
  });
  const reason = reasonOf(run, [START]);
  await run.agent();
  await nextTick();
  broken.resolve();
  expect(await reason).toMatchObject({ code: 'log-failed' });
});

it('gives no reason where somebody has asked for it', async () => {
  const run = await startTurn();
  const reason = reasonOf(run, [START]);
  await run.agent();
  await run.stop('enough');
  expect(await reason).toBeUndefined();
});
