import { describe, expect, it, vi } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import { type FinishedTurn, memoryTurnLog, type TurnLog } from './index.ts';

/** A log that has only what it must have. */
function createLog(): TurnLog {
  const { begin, latest, read, command } = memoryTurnLog();
  return { begin, latest, read, command };
}

function createRig() {
  const agent = createAgent();
  const onFinish = vi.fn((_: FinishedTurn) => undefined);
  const gateway = createTestGateway(agent.upstream, {
    log: createLog(),
    onFinish,
    timing: { disconnectGraceMs: 10 },
  });
  return { agent, onFinish, carl: createUser(gateway, 'carl') };
}

describe('a log without get', () => {
  it('serves posts, resumes, cursors and onFinish', async () => {
    const { agent, onFinish, carl } = createRig();
    const first = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    run.delta('half');
    await first.until(() => first.text());
    const second = openSse(await carl.resume());
    const cursor = first.frames.at(-1)?.id ?? '';
    const third = openSse(await carl.resumeAt(cursor));
    await second.until(() => second.text());
    run.delta(' and half');
    run.end();
    await Promise.all([first.ended, second.ended, third.ended]);
    expect([first.text(), second.text(), third.text()]).toEqual([
      'half and half',
      'half and half',
      ' and half',
    ]);
    for (const { frames } of [first, second, third]) expect(frames.at(-1)?.data).toBe('[DONE]');
    await eventually(() => onFinish.mock.calls.length);
    expect(onFinish.mock.calls[0]?.[0].message.parts).toMatchObject([{ text: 'half and half' }]);
    // The latest of the chat can be read by its cursor after its end too.
    expect(await readChunks(await carl.resumeAt(cursor))).not.toEqual([]);
  });

  it('finds a turn that runs here though another waits behind it', async () => {
    const { agent, carl } = createRig();
    const first = openSse(await carl.post(chatBody('one')));
    (await agent.run()).delta('half');
    await first.until(() => first.text());
    const waiting = openSse(await carl.post(chatBody('two')));
    const cursor = first.frames.at(-1)?.id ?? '';
    const resumed = openSse(await carl.resumeAt(cursor));
    const whole = openSse(await carl.resume());
    await whole.until(() => whole.text() === 'half');
    expect((await carl.stop()).status).toBe(202);
    await Promise.all([first.ended, waiting.ended, resumed.ended, whole.ended]);
    expect(resumed.text()).toBe('');
  });

  it('stops a turn that nobody watches any more', async () => {
    const { agent, carl } = createRig();
    const sse = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    await sse.leave();
    await eventually(() => run.turn.signal.aborted);
  });
});
