import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import { nextTick, startTurn } from '../../test/running-turn.ts';
import { ScriptedSession } from '../../test/scripted-upstream.ts';
import { watchTimers } from '../../test/watch-timers.ts';
import type { Chunk } from '../core/chunks.ts';
import { SabirError, TURN_FENCED } from '../core/errors.ts';
import { foldChunks } from '../core/fold.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { verifyChunks } from '../core/verify.ts';
import type { TurnWriter } from './log.ts';
import { memoryTurnLog } from './memory.ts';
import type { SessionLease } from './session-pool.ts';

type Step =
  | 'event'
  | 'events'
  | 'tick'
  | 'micro'
  | 'open'
  | 'stop'
  | 'answer'
  | 'drop'
  | 'close'
  | 'abandon';
type Fault = { at: number; on: 'append' | 'close'; isFence: boolean } | undefined;
type Case = {
  steps: Step[];
  chunks: Chunk[];
  open: 'now' | 'asked' | 'fails' | 'never';
  fault: Fault;
  isSlow: boolean;
  maxTurnBytes: number;
};

const steps: Step[] = ['event', 'event', 'events', 'events', 'tick', 'tick', 'micro', 'open'];
const ends: Step[] = ['stop', 'answer', 'drop', 'close', 'abandon'];
const cases: fc.Arbitrary<Case> = fc.record({
  steps: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...steps) },
      { weight: 1, arbitrary: fc.constantFrom(...ends) },
    ),
    { maxLength: 25 },
  ),
  chunks: chunkSequences(7),
  open: fc.oneof(
    { weight: 5, arbitrary: fc.constant('now' as const) },
    { weight: 3, arbitrary: fc.constant('asked' as const) },
    { weight: 1, arbitrary: fc.constantFrom('fails' as const, 'never' as const) },
  ),
  fault: fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    {
      weight: 1,
      arbitrary: fc.record({
        at: fc.nat(3),
        on: fc.constantFrom('append' as const, 'close' as const),
        isFence: fc.boolean(),
      }),
    },
  ),
  isSlow: fc.boolean(),
  maxTurnBytes: fc.constantFrom(1_000, 3_000, 8_000_000),
});

const OUTCOMES: TurnOutcome[] = [{ status: 'finished' }, { status: 'paused' }, { status: 'lost' }];

/** A writer that is slow, fails once if told to, and counts how often it was closed. */
function trouble(writer: TurnWriter, { fault, isSlow }: Case, fence: () => void) {
  const calls = { append: 0, close: 0, closed: 0 };
  async function pass(kind: 'append' | 'close'): Promise<void> {
    if (isSlow) await nextTick();
    if (fault?.on !== kind || calls[kind]++ !== fault.at) return;
    if (!fault.isFence) throw new Error('the store is away');
    fence();
    throw new SabirError(TURN_FENCED);
  }
  const troubled: TurnWriter = {
    ...writer,
    async append(chunks) {
      await pass('append');
      return writer.append(chunks);
    },
    async close(outcome) {
      await pass('close');
      await writer.close(outcome);
      calls.closed++;
    },
  };
  return { writer: troubled, calls };
}

async function play(script: Case): Promise<void> {
  const timers = watchTimers();
  try {
    let now = Date.now();
    const log = memoryTurnLog({ maxTurnBytes: script.maxTurnBytes, elapsed: () => now });
    let calls = { closed: 0 };
    let isTaken = false;
    const session = new ScriptedSession();
    const leases: Array<SessionLease & { releases: number }> = [];
    const asked = Promise.withResolvers<void>();
    if (script.open === 'now') asked.resolve();
    const run = await startTurn({
      log,
      timing: { connectMs: 5 },
      async open() {
        if (script.open === 'fails') throw new Error('refused');
        await asked.promise;
        const lease = session.lease();
        leases.push(lease);
        return lease;
      },
      wrap(writer) {
        const troubled = trouble(writer, script, () => {
          now += 60_000;
          isTaken = true;
        });
        calls = troubled.calls;
        return troubled.writer;
      },
    });
    const events = [...script.chunks];
    const moves: Record<Step, () => unknown> = {
      event: () => session.turns[0]?.say(...events.splice(0, 1)),
      events: () => session.turns[0]?.say(...events.splice(0, 7)),
      tick: nextTick,
      micro: () => undefined,
      open: () => script.open !== 'never' && asked.resolve(),
      stop: () => run.stop('asked'),
      answer: () => run.answer('q', 1),
      drop: () => session.turns[0]?.drop(),
      close: () => session.turns[0]?.close(OUTCOMES[events.length % 3] as TurnOutcome),
      abandon: () => run.turn.abandon({ status: 'failed', code: 'shutting-down', message: 'Bye.' }),
    };
    for (const step of script.steps) await moves[step]();
    await run.stop();
    await run.turn.done;

    // A store that refused the turn and then failed at its end: the end of its lease ends it.
    const isLeft = script.fault !== undefined && (await run.outcome()) === undefined;
    if (isLeft) now += 60_000;
    const chunks = await run.chunks();
    const outcome = await run.outcome();
    expect(verifyChunks(chunks, { aiSdk: 7 })).toEqual([]);
    expect(run.onEnd).toHaveBeenCalledOnce();
    expect(run.onFinish).toHaveBeenCalledOnce();
    if (isLeft) expect(run.finished()?.outcome).toMatchObject({ code: 'turn-too-large' });
    else {
      expect(run.finished()?.outcome).toEqual(outcome);
      expect(run.finished()?.message).toEqual(foldChunks(chunks));
    }
    expect(calls.closed).toBe(isLeft || isTaken ? 0 : 1);
    const [prompted] = session.turns;
    if (prompted) expect(prompted).toMatchObject({ releases: 1, late: [] });
    expect(prompted?.stops ?? 0).toBeLessThanOrEqual(1);
    // A session that opened too late is given back as well.
    asked.resolve();
    await nextTick();
    for (const lease of leases) expect(lease.releases).toBe(1);
    await log.close();
    expect(timers.count).toBe(0);
  } finally {
    timers.restore();
  }
}

describe('runTurn, whatever happens in whatever order', () => {
  it('ends once, with a valid log, and lets go of everything', async () => {
    const onUnhandled = vi.fn();
    process.on('unhandledRejection', onUnhandled);
    try {
      await fc.assert(fc.asyncProperty(cases, play), { numRuns: 600, timeout: 5_000 });
    } finally {
      process.off('unhandledRejection', onUnhandled);
    }
    expect(onUnhandled).not.toHaveBeenCalled();
  });
});
