import { afterEach, describe, expect, it, vi } from 'vitest';
import { nextTick, type RunningTurn, startTurn } from '../../test/running-turn.ts';
import { ScriptedSession } from '../../test/scripted-upstream.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import { verifyChunks } from '../core/verify.ts';
import type { Steer } from './log.ts';
import { memoryTurnLog } from './memory.ts';
import type { SessionLease } from './session-pool.ts';

const START: Chunk[] = [{ type: 'start', messageId: 'm' }, { type: 'start-step' }];
const TEXT: Chunk[] = [
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'Hello ' },
  { type: 'text-delta', id: '1', delta: 'world' },
  { type: 'text-end', id: '1' },
];
const END: Chunk[] = [{ type: 'finish-step' }, { type: 'finish', finishReason: 'stop' }];
const question = (questionId: string, status: string, more = {}): Chunk => ({
  type: 'data-question',
  id: questionId,
  data: { questionId, text: 'Sure?', status, ...more },
});

/** What is true of every turn that has ended, however it did. */
async function expectEnded({ turn, ...run }: RunningTurn, status: string): Promise<void> {
  await turn.done;
  const chunks = await run.chunks();
  expect(verifyChunks(chunks)).toEqual([]);
  expect((await run.outcome())?.status).toBe(status);
  expect(run.onEnd).toHaveBeenCalledOnce();
  expect(run.onFinish).toHaveBeenCalledOnce();
  const { sessionId, chatId, turnId } = { sessionId: 's', chatId: 'c', turnId: run.turnId };
  expect(run.finished()).toMatchObject({ sessionId, chatId, turnId, outcome: { status } });
  expect(run.finished()?.message).toEqual(foldChunks(chunks));
  for (const prompted of run.session.turns) {
    expect(prompted).toMatchObject({ releases: 1, late: [] });
  }
}

afterEach(() => void vi.useRealTimers());

describe('runTurn', () => {
  it('writes what the agent says and ends as the agent ends', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    expect(agent.prompt).toMatchObject({ text: 'Hello', turnId: run.turnId });
    agent.say(...START, ...TEXT, ...END);
    await expectEnded(run, 'finished');
    expect(await run.chunks()).toEqual([...START, ...TEXT, ...END]);
    expect(run.finished()?.message).toMatchObject({
      id: 'm',
      parts: [{}, { text: 'Hello world' }],
    });
    expect(run.lease.releases).toBe(1);
    expect(agent.stops).toBe(0);
  });

  it('hands over what the agent said of its costs', async () => {
    const run = await startTurn();
    const usage = { inputTokens: 1, outputTokens: 2 };
    const messageMetadata = { outcome: 'finished', usage };
    (await run.agent()).say({ type: 'finish', finishReason: 'length', messageMetadata });
    await run.turn.done;
    expect(run.finished()).toMatchObject({ usage, outcome: { finishReason: 'length', usage } });
  });

  it('writes everything of one tick in one append, in the order it came', async () => {
    const appends: Chunk[][] = [];
    const run = await startTurn({
      wrap: (writer) => ({
        ...writer,
        append(chunks) {
          appends.push(chunks);
          return writer.append(chunks);
        },
      }),
    });
    const agent = await run.agent();
    for (const chunk of [...START, ...TEXT]) agent.say(chunk);
    await nextTick();
    expect(appends).toEqual([[...START, ...TEXT]]);
    agent.say(...END);
    await run.turn.done;
    expect(appends).toEqual([[...START, ...TEXT], END]);
  });

  it('has the id that the source gives its message', async () => {
    const run = await startTurn();
    expect(run.turn.messageId).toBe('m');
    (await run.agent()).say({ type: 'start', messageId: 'named' });
    expect(run.turn.messageId).toBe('named');
    await run.stop();
    await expectEnded(run, 'stopped');
    expect(run.finished()?.message.id).toBe('named');
  });

  it('closes what is open when the connection to the agent drops', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    agent.say(...START, ...TEXT.slice(0, 2));
    agent.drop();
    agent.drop();
    await expectEnded(run, 'failed');
    expect((await run.chunks()).slice(-5)).toMatchObject([
      { type: 'text-end' },
      { type: 'finish-step' },
      { type: 'message-metadata', messageMetadata: { code: 'upstream-dropped' } },
      { type: 'error', errorText: 'Stream interrupted' },
      { type: 'finish' },
    ]);
  });

  it('says that the agent cannot be reached, and never the reason', async () => {
    const run = await startTurn({ open: () => Promise.reject(new Error('ECONNREFUSED 10.0.0.1')) });
    await expectEnded(run, 'failed');
    expect(await run.outcome()).toMatchObject({ code: 'upstream-unreachable' });
    expect(JSON.stringify(await run.chunks())).toContain('Connection failed');
    expect(JSON.stringify(await run.chunks())).not.toContain('10.0.0.1');
    expect(run.logger.warn).toHaveBeenCalledOnce();
  });

  it('fails a turn whose prompt could not be sent', async () => {
    const session = new ScriptedSession();
    session.prompt = () => {
      throw new Error('not connected');
    };
    const lease = session.lease();
    const run = await startTurn({ open: async () => lease });
    await expectEnded(run, 'failed');
    expect(await run.outcome()).toMatchObject({ code: 'upstream-dropped' });
    expect(lease.releases).toBe(1);
  });

  it('ends although the agent throws at whatever it is told', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    const fail = () => {
      throw new Error('the socket is gone');
    };
    Object.assign(agent, { stop: fail, release: fail });
    await run.stop('enough');
    await run.turn.done;
    expect(await run.outcome()).toEqual({ status: 'stopped', reason: 'enough' });
    expect(verifyChunks(await run.chunks())).toEqual([]);
    expect(run.onFinish).toHaveBeenCalledOnce();
    expect(run.lease.releases).toBe(1);
  });

  it('can be ended here without a word to the agent', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    agent.say(...START);
    run.turn.abandon({ status: 'failed', code: 'shutting-down', message: 'Restarting.' });
    run.turn.abandon({ status: 'lost' });
    await expectEnded(run, 'failed');
    expect(agent.stops).toBe(0);
  });
});

describe('a stop', () => {
  it('ends a running turn and tells the agent once, however often it is asked for', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    agent.say(...START, ...TEXT.slice(0, 2));
    await Promise.all([run.stop('by hand'), run.stop('again')]);
    await expectEnded(run, 'stopped');
    expect(await run.outcome()).toEqual({ status: 'stopped', reason: 'by hand' });
    expect(agent.stops).toBe(1);
    expect(await run.stop()).toBe(false);
  });

  it('before the agent is reached ends the turn at once, and never prompts', async () => {
    const { promise, resolve } = Promise.withResolvers<SessionLease>();
    let opening: AbortSignal | undefined;
    const run = await startTurn({
      open(signal) {
        opening = signal;
        return promise;
      },
    });
    await run.stop();
    await expectEnded(run, 'stopped');
    expect(opening?.aborted).toBe(true);
    expect(run.logger.warn).not.toHaveBeenCalled();
    resolve(run.lease);
    await nextTick();
    expect(run.lease.releases).toBe(1);
    expect(run.session.turns).toEqual([]);
  });

  it('that comes while the end is being stored does not reach the agent', async () => {
    const { promise: stored, resolve: letThrough } = Promise.withResolvers<void>();
    const run = await startTurn({
      wrap: (writer) => ({
        ...writer,
        async append(chunks) {
          await stored;
          return writer.append(chunks);
        },
      }),
    });
    const agent = await run.agent();
    agent.say(...START, ...END);
    await nextTick();
    expect(await run.stop()).toBe(true);
    await nextTick();
    letThrough();
    await expectEnded(run, 'finished');
    expect(agent.stops).toBe(0);
  });
});

describe('a message for the turn', () => {
  const message = (id: string): Steer => ({ type: 'steer', id, text: 'More!', attachments: [] });
  const refusal = (id: string): Chunk => ({
    type: 'data-steering',
    id,
    data: { id, status: 'refused' },
    transient: true,
  });

  it('is refused in the log, behind the start, where the upstream takes none', async () => {
    const run = await startTurn();
    await run.log.command(run.turnId, message('m1'));
    const agent = await run.agent();
    await nextTick();
    expect((await run.log.get(run.turnId))?.lastSeq).toBe(0);
    agent.say(...START);
    await nextTick();
    await run.log.command(run.turnId, message('m2'));
    await nextTick();
    agent.say(...END);
    await expectEnded(run, 'finished');
    const [refused, other] = [refusal('m1'), refusal('m2')];
    expect(await run.chunks()).toEqual([...START, refused, other, ...END]);
  });

  it('reaches an upstream that takes them, in their order', async () => {
    const run = await startTurn();
    const taken: string[] = [];
    const agent = Object.assign(await run.agent(), {
      steer: ({ id }: { id: string }) => void taken.push(id),
    });
    for (const id of ['m1', 'm2', 'm1']) await run.log.command(run.turnId, message(id));
    await nextTick();
    agent.say(...START, ...END);
    await expectEnded(run, 'finished');
    expect(taken).toEqual(['m1', 'm2']);
    expect(await run.chunks()).toEqual([...START, ...END]);
  });
});

describe('an answer', () => {
  it('reaches the agent once: the first one counts', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    agent.say(...START, question('q', 'open'));
    await run.answer('unknown', 'no');
    await run.answer('q', 'yes');
    await run.answer('q', 'no');
    await nextTick();
    expect(agent.answers).toEqual([{ type: 'answer', questionId: 'q', answer: 'yes' }]);
    agent.say(question('q', 'answered', { answer: 'yes' }), ...END);
    await expectEnded(run, 'finished');
  });

  it('that comes after the time of its question expires it instead', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    agent.say(...START, question('q', 'open', { expiresAt: Date.now() }));
    // The clock would be looked at in a second.
    await run.answer('q', 'yes');
    await run.answer('q', 'yes');
    await nextTick();
    expect([agent.answers, agent.expired]).toEqual([[], ['q']]);
    await run.stop();
    await expectEnded(run, 'stopped');
  });

  it('to a question that is no longer open is not passed on', async () => {
    const run = await startTurn();
    const agent = await run.agent();
    agent.say(...START, question('q', 'open'), question('q', 'expired'));
    await run.answer('q', 'yes');
    await nextTick();
    expect(agent.answers).toEqual([]);
    await run.stop();
    await expectEnded(run, 'stopped');
  });
});

describe('onFinish', () => {
  it.each([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])('that %s is logged and changes nothing', async (_, onFinish) => {
    const run = await startTurn({ onFinish });
    (await run.agent()).say(...START, ...END);
    await run.turn.done;
    expect(await run.outcome()).toMatchObject({ status: 'finished' });
    expect(run.logger.error).toHaveBeenCalledOnce();
  });

  it('that never settles holds up nothing but itself', async () => {
    const log = memoryTurnLog();
    const run = await startTurn({ log, onFinish: () => new Promise(() => undefined) });
    (await run.agent()).say(...START, ...END);
    expect(verifyChunks(await run.chunks())).toEqual([]);
    expect(await run.outcome()).toMatchObject({ status: 'finished' });
    expect(run.lease.releases).toBe(1);
    const next = await startTurn({ log });
    (await next.agent()).say(...START, ...END);
    await expectEnded(next, 'finished');
  });

  it('runs although what counts the turns throws', async () => {
    const onEnd = () => {
      throw new Error('no');
    };
    const run = await startTurn({ onEnd });
    (await run.agent()).say(...START, ...END);
    await run.turn.done;
    expect(run.onFinish).toHaveBeenCalledOnce();
  });

  it('gets the message of a log that retains nothing', async () => {
    const run = await startTurn({ log: memoryTurnLog({ retentionMs: 0 }) });
    (await run.agent()).say(...START, ...TEXT, ...END);
    await run.turn.done;
    expect(run.finished()?.message).toEqual(foldChunks([...START, ...TEXT, ...END]));
    expect(await run.log.get(run.turnId)).toBeUndefined();
  });

  it('runs although the log cannot be read back, and the log is closed all the same', async () => {
    const inner = memoryTurnLog();
    let isBroken = true;
    const log = {
      ...inner,
      read(...args: Parameters<typeof inner.read>) {
        if (isBroken) throw new Error('the store is away');
        return inner.read(...args);
      },
    };
    const run = await startTurn({ log });
    (await run.agent()).say(...START, ...TEXT, ...END);
    await run.turn.done;
    isBroken = false;
    expect(await run.outcome()).toMatchObject({ status: 'finished' });
    expect(run.onFinish).toHaveBeenCalledOnce();
    expect(run.finished()?.message).toMatchObject({ id: 'm', role: 'assistant' });
  });
});
