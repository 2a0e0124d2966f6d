/** Turns of others on the same socket, and what they do to ours. */
import { describe, expect, it } from 'vitest';
import { agentOpsPerTest } from '../../../test/agent-ops-rig.ts';
import { type Script, say, sayWhen } from '../../../test/agent-ops-script.ts';
import type { AgentOpsServer } from '../../../test/agent-ops-server.ts';
import { promptOf, until, watch } from '../../../test/upstream-turn.ts';

const { start, openAt } = agentOpsPerTest();

const DIALECTS = ['snapshot', 'v2'] as const;

/** Prompts that begin with `slow` wait for `go`; `early` waits even before it begins. */
function slowly() {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gateOf = (text: string) => {
    const gate = gates.get(text) ?? Promise.withResolvers<void>();
    gates.set(text, gate);
    return gate;
  };
  const script = (text: string): Script => {
    if (text.startsWith('slow')) return sayWhen(gateOf(text).promise, `${text}: half`, ', whole');
    if (!text.startsWith('early')) return say(text);
    return async function* () {
      await gateOf(text).promise;
      yield { say: text };
    };
  };
  return { script, go: (text: string) => gateOf(text).resolve() };
}

const hasBegun = (server: AgentOpsServer, text: string) =>
  until(() => server.messages('s').some(({ content }) => content.includes(`${text}: half`)));

describe.each(DIALECTS)("another's turn (%s)", (dialect) => {
  it('[RFC-STATE-03] is not ours, though it runs and speaks while we wait', async () => {
    const { script, go } = slowly();
    const server = await start({ dialect, script });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    await until(() => ours.turn.isQueued);
    go('slow theirs');
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
    expect(ours.text).toBe('ours');
    expect(ours.turn.isQueued).toBe(false);
  });

  it('is not ours, though two of them are answered before', async () => {
    const { script, go } = slowly();
    const server = await start({ dialect, script });
    const session = await openAt(server);
    server.ask('s', 'slow first');
    server.ask('s', 'slow second');
    const ours = watch(session, promptOf('slow ours'));
    await until(() => server.received('prompt').length === 1);
    server.ask('s', 'slow last');
    go('slow first');
    await hasBegun(server, 'slow second');
    expect(ours.text).toBe('');
    expect(ours.turn.isQueued).toBe(true);
    go('slow second');
    await until(() => ours.text === 'slow ours: half');
    go('slow ours');
    await ours.done;
    expect(ours.text).toBe('slow ours: half, whole');
  });

  it('is not aborted by a stop of ours that still waits', async () => {
    const { script, go } = slowly();
    const server = await start({ dialect, script });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('slow ours'));
    await until(() => ours.turn.isQueued);
    ours.turn.stop();
    const next = watch(session, promptOf('next'));
    expect(server.received('abort')).toEqual([]);
    go('slow theirs');
    expect(await ours.done).toMatchObject({ outcome: 'stopped' });
    expect(server.received('abort')).toHaveLength(1);
    expect(
      server.messages('s').find(({ content }) => content === 'slow theirs: half, whole'),
    ).toBeDefined();
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
  });

  it('is not aborted by a stop of ours that nobody waits for any more', async () => {
    const { script, go } = slowly();
    const server = await start({ dialect, script });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('slow ours'));
    await until(() => server.received('prompt').length === 1);
    ours.turn.stop();
    ours.turn.release();
    const next = watch(session, promptOf('next'));
    go('slow theirs');
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
    expect(server.received('abort')).toHaveLength(1);
    expect(ours.events.filter((event) => (event as { type: string }).type === 'chunk')).toEqual([]);
  });

  it('queues behind ours, which is not taken for ours being queued', async () => {
    const { script, go } = slowly();
    const server = await start({ dialect, script });
    const session = await openAt(server);
    const ours = watch(session, promptOf('early ours'));
    await until(() => server.received('prompt').length === 1);
    server.ask('s', 'theirs');
    server.ask('s', 'theirs too');
    go('early ours');
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
    expect(ours.text).toBe('early ours');
  });

  it('speaks on another channel in the middle of ours', async () => {
    const { script, go } = slowly();
    const server = await start({ dialect, script });
    const session = await openAt(server);
    const ours = watch(session, promptOf('slow ours'));
    await until(() => ours.text === 'slow ours: half');
    const place = { channelType: 'slack', channelId: 'C1' };
    const data = { id: 'theirs', role: 'assistant', content: '', parts: [], ...place };
    const finish = [{ type: 'finish', reason: 'end_turn' }];
    const events =
      dialect === 'v2'
        ? [
            { type: 'message.create', turnId: 'theirs', ...place },
            { type: 'message.part.text-delta', turnId: 'theirs', delta: 'not ours' },
            { type: 'message.finalize', turnId: 'theirs', reason: 'end_turn' },
          ]
        : [
            { type: 'message', data },
            { type: 'chunk', messageId: 'theirs', content: 'not ours', ...place },
            { type: 'message.updated', data: { ...data, parts: finish } },
          ];
    for (const event of events) server.broadcast('s', event);
    go('slow ours');
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
    expect(ours.text).toBe('slow ours: half, whole');
    expect(session.channels?.()).toContainEqual(place);
  });
});

describe("another's stop", () => {
  it.each(DIALECTS)('of our turn ends it, and our next is answered (%s)', async (dialect) => {
    const { script } = slowly();
    const server = await start({ dialect, script, release: 'head' });
    const session = await openAt(server, { settleMs: 2_000 });
    const ours = watch(session, promptOf('slow ours'));
    const next = watch(session, promptOf('next'));
    await until(() => ours.text === 'slow ours: half');
    server.abort('s');
    expect(await ours.done).toMatchObject({ outcome: 'stopped' });
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
    expect(server.received('abort')).toEqual([]);
  });

  it('of our turn, while others wait, ends ours when theirs begins', async () => {
    const { script } = slowly();
    const server = await start({ script, release: 'head', clearsQueue: false, lateMs: 60_000 });
    const session = await openAt(server);
    const ours = watch(session, promptOf('slow ours'));
    await until(() => ours.text === 'slow ours: half');
    server.ask('s', 'slow theirs');
    server.abort('s');
    expect(await ours.done).toMatchObject({ outcome: 'stopped' });
  });

  it('of their own turn takes ours out of the queue, and that is told', async () => {
    const { script } = slowly();
    const server = await start({ script });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('ours'));
    await until(() => ours.turn.isQueued);
    await until(() => server.received('prompt').length === 1);
    server.abort('s');
    expect(await ours.done).toEqual({ outcome: 'stopped', reason: 'withdrawn' });
    const next = watch(session, promptOf('next'));
    await next.done;
    expect(next.text).toBe('next');
  });

  it('of their own turn leaves ours in a queue that is not cleared', async () => {
    const { script } = slowly();
    const server = await start({ script, release: 'head', clearsQueue: false });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    server.abort('s');
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
    expect(ours.text).toBe('ours');
  });
});

describe('the queue of the newest servers', () => {
  it('tells our message only when it is sent to the runner', async () => {
    const { script, go } = slowly();
    const server = await start({ script, keepsQueued: true, release: 'head' });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    await until(() => ours.turn.isQueued);
    go('slow theirs');
    await ours.done;
    expect(ours.text).toBe('ours');
  });

  it('keeps one prompt: ours is withdrawn by the next of another', async () => {
    const { script, go } = slowly();
    const server = await start({ script, keepsQueued: true, release: 'head' });
    const session = await openAt(server);
    server.ask('s', 'slow theirs');
    await hasBegun(server, 'slow theirs');
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    server.ask('s', 'instead');
    expect(await ours.done).toEqual({ outcome: 'stopped', reason: 'withdrawn' });
    go('slow theirs');
  });
});

describe('a runner that comes and goes', () => {
  const place = { channelType: 'web', channelId: 'default' };
  const begin = (id: string) => ({
    type: 'message',
    data: { id, role: 'assistant', content: '', parts: [], ...place },
  });
  const finish = (id: string) => ({
    type: 'message.updated',
    data: { id, role: 'assistant', parts: [{ type: 'finish', reason: 'end_turn' }], ...place },
  });
  const status = (data: object) => ({ type: 'status', data });
  /** Never answers: the test does. */
  const mute = { script: () => sayNothing };
  const sayNothing: Script = async function* () {
    await new Promise(() => undefined);
  };

  it('wakes up: the first prompt leaves the queue without a word', async () => {
    const server = await start(mute);
    const session = await openAt(server);
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    const queued = { promptQueued: true, queuePosition: 1, queueReason: 'waking' };
    server.broadcast('s', status(queued));
    await until(() => ours.turn.isQueued);
    server.broadcast('s', status({ runnerConnected: true }));
    await until(() => !ours.turn.isQueued);
    for (const event of [begin('t'), finish('t')]) server.broadcast('s', event);
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
  });

  it('goes away in our turn: another turn answers the same prompt', async () => {
    const server = await start(mute);
    const session = await openAt(server);
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    const chunk = (messageId: string, content: string) => ({ type: 'chunk', messageId, content });
    for (const event of [
      begin('first'),
      chunk('first', 'Half'),
      status({ runnerConnected: false, runnerDisconnected: true }),
      begin('second'),
      chunk('second', 'Whole'),
      finish('second'),
    ]) {
      server.broadcast('s', event);
    }
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
    expect(ours.text).toContain('Whole');
  });

  it.each(['before', 'after'])(
    'never answers: a stop %s the next prompt lets that go',
    async (order) => {
      const server = await start(mute);
      const session = await openAt(server);
      const ours = watch(session, promptOf('ours'));
      await until(() => server.received('prompt').length === 1);
      if (order === 'after') watch(session, promptOf('next'));
      ours.turn.stop();
      ours.turn.release();
      if (order === 'before') watch(session, promptOf('next'));
      await until(() => server.received('prompt').length === 2);
      expect(server.received('abort')).toEqual([]);
    },
  );

  it('is idle though our turn has not begun: after a while that is its end', async () => {
    const server = await start(mute);
    const session = await openAt(server);
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    server.broadcast('s', status({ runnerBusy: false }));
    expect(await ours.done).toMatchObject({ outcome: 'stopped' });
  });

  it('works and is done, but announces no turn: after a while that is the end of ours', async () => {
    const server = await start(mute);
    const session = await openAt(server);
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    server.broadcast('s', { type: 'agentStatus', status: 'thinking' });
    server.broadcast('s', { type: 'complete' });
    expect(await ours.done).toEqual({ outcome: 'finished' });
  });

  it('is idle a moment before our turn begins: that was the end of another', async () => {
    const server = await start(mute);
    const session = await openAt(server, { settleMs: 2_000 });
    const ours = watch(session, promptOf('ours'));
    await until(() => server.received('prompt').length === 1);
    for (const event of [status({ runnerBusy: false }), begin('t'), finish('t')]) {
      server.broadcast('s', event);
    }
    expect(await ours.done).toMatchObject({ outcome: 'finished' });
  });
});
