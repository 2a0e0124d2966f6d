import { afterEach, describe, expect, it, vi } from 'vitest';
import { gate, nextTick, startTurn } from '../../test/running-turn.ts';
import { watchTimers } from '../../test/watch-timers.ts';
import type { Chunk } from '../core/chunks.ts';
import { SabirError, TURN_FENCED } from '../core/errors.ts';
import { verifyChunks } from '../core/verify.ts';
import type { TurnWriter } from './log.ts';
import { memoryTurnLog } from './memory.ts';
import type { SessionLease } from './session-pool.ts';

const START: Chunk = { type: 'start', messageId: 'm' };
const FINISH: Chunk = { type: 'finish' };
const delta = (text: string): Chunk => ({ type: 'text-delta', id: '1', delta: text });
const question = (status: string, expiresAt?: number): Chunk => ({
  type: 'data-question',
  id: 'q',
  data: { questionId: 'q', text: 'Sure?', status, ...(expiresAt && { expiresAt }) },
});
const call: Chunk = { type: 'tool-input-available', toolCallId: 't', toolName: 'x', input: {} };

/** Only the clocks: ticks stay what they are. */
function fakeClock(): void {
  const timers = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: [...timers, 'Date', 'performance'] });
}

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await nextTick();
  await nextTick();
}

/** A turn on a fake clock, prompted. */
async function startOnClock(options: Parameters<typeof startTurn>[0] = {}) {
  fakeClock();
  const run = await startTurn(options);
  await nextTick();
  const [agent] = run.session.turns;
  if (!agent) throw new Error('the agent has not been prompted');
  return { ...run, agent };
}

afterEach(() => void vi.useRealTimers());

describe('the time to reach an agent', () => {
  it.each([
    ['gives up when told to', true],
    ['never settles', false],
  ])('is bounded, also by one that %s', async (_, isObedient) => {
    fakeClock();
    const run = await startTurn({
      timing: { connectMs: 3_000 },
      open: (signal) =>
        new Promise<SessionLease>((_resolve, reject) => {
          if (isObedient) signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    await pass(2_900);
    expect(await run.outcome()).toBeUndefined();
    await pass(200);
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ code: 'upstream-unreachable' });
    expect(verifyChunks(await run.chunks())).toEqual([]);
    expect(run.onFinish).toHaveBeenCalledOnce();
  });

  it('leaves no timer behind when the turn is stopped meanwhile', async () => {
    const timers = watchTimers();
    try {
      const run = await startTurn({ open: () => new Promise(() => undefined) });
      await run.stop();
      await run.turn.done;
      await run.log.close();
      expect(timers.count).toBe(0);
    } finally {
      timers.restore();
    }
  });
});

describe('the idle limit', () => {
  it('stops an agent that says nothing', async () => {
    const run = await startOnClock();
    run.agent.say(START);
    await pass(119_000);
    run.agent.say({ type: 'text-start', id: '1' });
    await pass(119_000);
    expect(await run.outcome()).toBeUndefined();
    await pass(3_000);
    expect(await run.outcome()).toMatchObject({ status: 'failed', code: 'upstream-silent' });
    expect(run.agent).toMatchObject({ stops: 1, releases: 1, late: [] });
    expect(verifyChunks(await run.chunks())).toEqual([]);
  });

  it('does not run while the prompt waits behind others', async () => {
    const run = await startOnClock();
    run.agent.isQueued = true;
    await pass(3_600_000);
    expect(await run.outcome()).toBeUndefined();
    run.agent.isQueued = false;
    await pass(119_000);
    expect(await run.outcome()).toBeUndefined();
    await pass(3_000);
    expect(await run.outcome()).toMatchObject({ code: 'upstream-silent' });
  });

  it('gives a tool its own time', async () => {
    const run = await startOnClock({ timing: { toolLimitMs: 1_000_000 } });
    run.agent.say(START, call);
    await pass(999_000);
    expect(await run.outcome()).toBeUndefined();
    await pass(3_000);
    expect(await run.outcome()).toMatchObject({ code: 'tool-silent' });
    expect(run.agent.stops).toBe(1);
  });

  it('runs again when the tool has answered', async () => {
    const run = await startOnClock();
    run.agent.say(START, call);
    await pass(1_000_000);
    run.agent.say({ type: 'tool-output-available', toolCallId: 't', output: 1 });
    await pass(122_000);
    expect(await run.outcome()).toMatchObject({ code: 'upstream-silent' });
  });

  it('does not run while a question is open', async () => {
    const run = await startOnClock();
    run.agent.say(START, question('open', Date.now() + 1_000_000));
    await pass(990_000);
    expect(await run.outcome()).toBeUndefined();
    run.agent.say(question('answered'));
    await pass(119_000);
    expect(await run.outcome()).toBeUndefined();
    await pass(3_000);
    expect(await run.outcome()).toMatchObject({ code: 'upstream-silent' });
  });

  it('runs again from the answer on, also where the agent does not confirm it', async () => {
    const run = await startOnClock();
    run.agent.say(START, question('open', Date.now() + 1_000_000));
    await pass(500_000);
    await run.answer('q', 'yes');
    await pass(119_000);
    expect(await run.outcome()).toBeUndefined();
    await pass(3_000);
    expect(await run.outcome()).toMatchObject({ code: 'upstream-silent' });
    expect(run.agent.expired).toEqual([]);
  });
});

describe('a question nobody answers', () => {
  it('is expired once, and an agent that ignores it is not waited for', async () => {
    const run = await startOnClock();
    run.agent.say(START, question('open', Date.now() + 60_000));
    await pass(59_000);
    expect(run.agent.expired).toEqual([]);
    await pass(60_000);
    expect(run.agent.expired).toEqual(['q']);
    await pass(70_000);
    expect(run.agent.expired).toEqual(['q']);
    expect(await run.outcome()).toMatchObject({ code: 'upstream-silent' });
  });

  it('that is asked anew expires anew', async () => {
    const run = await startOnClock();
    run.agent.say(START, question('open', Date.now() + 10_000));
    await pass(12_000);
    run.agent.say(question('expired'), question('open', Date.now() + 10_000));
    await pass(12_000);
    expect(run.agent.expired).toEqual(['q', 'q']);
    await run.stop();
  });

  it('expires with the limit of tools where it does not say when', async () => {
    const run = await startOnClock({ timing: { toolLimitMs: 300_000 } });
    run.agent.say(START, question('open'));
    await pass(299_000);
    expect(run.agent.expired).toEqual([]);
    await pass(3_000);
    expect(run.agent.expired).toEqual(['q']);
    await run.stop();
  });
});

describe('a log', () => {
  it('hears of a silent turn often enough to leave it its lease', async () => {
    fakeClock();
    const log = memoryTurnLog({ leaseMs: 4_000 });
    const run = await startOnClock({ log });
    run.agent.say(START, call);
    await pass(600_000);
    run.agent.say(FINISH);
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'finished' });
  });

  it('that fails to hear of it once is told again', async () => {
    let failures = 0;
    const run = await startOnClock({
      wrap: (writer) => ({
        ...writer,
        renew: () => (failures++ < 2 ? Promise.reject(new Error('away')) : writer.renew()),
      }),
    });
    run.agent.say(START);
    await pass(60_000);
    expect(failures).toBeGreaterThan(2);
    run.agent.say(FINISH);
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'finished' });
  });

  it('that gave the turn to another ends it here as lost and stops the agent', async () => {
    fakeClock();
    const run = await startOnClock({
      wrap: (writer) => ({ ...writer, renew: () => Promise.reject(new SabirError(TURN_FENCED)) }),
      log: memoryTurnLog({ leaseMs: 4_000 }),
    });
    run.agent.say(START);
    await pass(10_000);
    await run.turn.done;
    expect(await run.outcome()).toEqual({ status: 'lost' });
    expect(run.onFinish).toHaveBeenCalledOnce();
    expect(run.finished()?.outcome).toEqual({ status: 'lost' });
    expect(run.agent).toMatchObject({ stops: 1, releases: 1, late: [] });
    expect(verifyChunks(await run.chunks())).toEqual([]);
  });

  it('that gave the turn to another is not written to again', async () => {
    let now = 1_000;
    const run = await startTurn({ log: memoryTurnLog({ leaseMs: 4_000, elapsed: () => now }) });
    const agent = await run.agent();
    agent.say(START);
    await nextTick();
    now += 5_000;
    agent.say({ type: 'text-start', id: '1' });
    await run.turn.done;
    expect(await run.outcome()).toEqual({ status: 'lost' });
    expect(run.finished()?.outcome).toEqual({ status: 'lost' });
    expect(agent).toMatchObject({ stops: 1, releases: 1, late: [] });
    expect((await run.chunks()).filter(({ type }) => type === 'finish')).toHaveLength(1);
  });

  it('that is slower than the agent fails that turn, and no other', async () => {
    const log = memoryTurnLog();
    let slow: ReturnType<typeof gate> | undefined;
    const wrap = (writer: TurnWriter) => {
      slow = gate(writer);
      return slow.writer;
    };
    const run = await startTurn({ log, wrap, queueBytes: 10_000 });
    const neighbour = await startTurn({ log, chatId: 'other' });
    const agent = await run.agent();
    agent.say(START, { type: 'text-start', id: '1' });
    await vi.waitFor(() => expect(slow?.waiting).toHaveLength(1));
    for (let n = 0; n < 100 && agent.stops === 0; n++) agent.say(delta('x'.repeat(900)));
    expect(agent).toMatchObject({ stops: 1, releases: 1, late: [] });
    slow?.open();
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'failed', code: 'upstream-flood' });
    expect(verifyChunks(await run.chunks())).toEqual([]);
    (await neighbour.agent()).say(START, FINISH);
    await neighbour.turn.done;
    expect(await neighbour.outcome()).toMatchObject({ status: 'finished' });
  });

  it('takes the closings of a turn that grew too large, and only of what it has', async () => {
    const run = await startTurn({ log: memoryTurnLog({ maxTurnBytes: 2_000 }) });
    const agent = await run.agent();
    agent.say(START, { type: 'text-start', id: '1' }, delta('kept'));
    await nextTick();
    // Opened and closed in the batch that is refused: the log has seen nothing of it.
    agent.say(
      { type: 'text-start', id: '2' },
      { type: 'text-delta', id: '2', delta: 'x'.repeat(3_000) },
      { type: 'text-end', id: '2' },
      call,
    );
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'failed', code: 'turn-too-large' });
    const chunks = await run.chunks();
    expect(verifyChunks(chunks)).toEqual([]);
    expect(JSON.stringify(chunks)).not.toContain('"2"');
    expect(chunks).toContainEqual({ type: 'text-end', id: '1' });
    expect(run.finished()?.message.parts).toMatchObject([{ text: 'kept' }]);
    expect(agent).toMatchObject({ stops: 1, releases: 1, late: [] });
  });

  it('that fails once does not stop an agent that has finished', async () => {
    let failures = 0;
    const run = await startTurn({
      wrap: (writer) => ({
        ...writer,
        append: (chunks) =>
          failures++ === 0 ? Promise.reject(new Error('away')) : writer.append(chunks),
      }),
    });
    const agent = await run.agent();
    agent.say(START, FINISH);
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'failed', code: 'log-failed' });
    expect(agent).toMatchObject({ stops: 0, releases: 1, late: [] });
    expect(verifyChunks(await run.chunks())).toEqual([]);
  });

  it('that cannot be closed at first keeps the outcome that is written in it', async () => {
    let failures = 0;
    const run = await startTurn({
      wrap: (writer) => ({
        ...writer,
        close: (outcome) =>
          failures++ === 0 ? Promise.reject(new Error('away')) : writer.close(outcome),
      }),
    });
    (await run.agent()).say(START, FINISH);
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'finished' });
    expect(run.finished()?.outcome).toMatchObject({ status: 'finished' });
  });

  it('that cannot say who wants a stop fails the turn with its closings in place', async () => {
    const run = await startTurn({
      wrap: (writer) => {
        const slow: TurnWriter = {
          ...writer,
          // biome-ignore lint/correctness/useYield: it fails before there is anything to give
          async *commands() {
            await nextTick();
            throw new Error('away');
          },
          async append(chunks) {
            await nextTick();
            await nextTick();
            return writer.append(chunks);
          },
        };
        return slow;
      },
    });
    const agent = await run.agent();
    agent.say(START, { type: 'text-start', id: '1' });
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'failed', code: 'log-failed' });
    expect(verifyChunks(await run.chunks())).toEqual([]);
    expect(agent).toMatchObject({ stops: 1, releases: 1, late: [] });
  });
});
