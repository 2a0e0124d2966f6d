/** Prompts that were stopped before they began, and begin all the same. */
import { describe, expect, it } from 'vitest';
import { agentOpsPerTest } from '../../../test/agent-ops-rig.ts';
import { type Script, say, sayWhen } from '../../../test/agent-ops-script.ts';
import type { AgentOpsServerOptions } from '../../../test/agent-ops-server.ts';
import { promptOf, until, watch } from '../../../test/upstream-turn.ts';

const { start, openAt } = agentOpsPerTest();

/** `late` prompts begin when they may, and then speak until they are stopped. */
function lately() {
  const gate = Promise.withResolvers<void>();
  const stopped: string[] = [];
  const script = (text: string): Script => {
    if (!text.startsWith('late')) return say(text);
    return async function* (turn) {
      await gate.promise;
      turn.signal.addEventListener('abort', () => stopped.push(text));
      yield* sayWhen(new Promise(() => undefined), `${text}: half`)(turn);
    };
  };
  return { script, stopped, go: () => gate.resolve() };
}

async function stopEarly(options: AgentOpsServerOptions) {
  const { script, stopped, go } = lately();
  const server = await start({ script, ...options });
  const session = await openAt(server, { settleMs: 150 });
  const late = watch(session, promptOf('late'));
  await until(() => server.received('prompt').length === 1);
  late.turn.stop();
  late.turn.release();
  return { server, session, late, stopped, go };
}

const KINDS = (['snapshot', 'v2'] as const).flatMap((dialect) =>
  (['rfc', 'head'] as const).flatMap((release) =>
    [true, false].flatMap((hasQueueStatus) =>
      [true, false].flatMap((clearsQueue) =>
        [true, false].map((hasEcho) => ({
          dialect,
          release,
          hasQueueStatus,
          clearsQueue,
          hasEcho,
        })),
      ),
    ),
  ),
);

describe('a prompt that was stopped and given up', () => {
  it.each(KINDS)('is stopped when it begins, and the next is answered: %j', async (kind) => {
    const { server, session, stopped, go } = await stopEarly(kind);
    const next = watch(session, promptOf('next'));
    await until(() => server.received('prompt').length === 2);
    expect(session.isBusy).toBe(true);
    go();
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
    expect(stopped).toEqual(['late']);
    expect(server.received('abort')).toHaveLength(1);
    // Only a queue that was cleared has to be told again.
    expect(server.received('prompt')).toHaveLength(kind.clearsQueue ? 3 : 2);
    expect(session.isBusy).toBe(false);
    const last = watch(session, promptOf('last'));
    expect(await last.done).toMatchObject({ outcome: 'finished' });
    expect(last.text).toBe('last');
  });

  it.each(['snapshot', 'v2'] as const)(
    'ends late, in the middle of the next (%s)',
    async (dialect) => {
      const half = Promise.withResolvers<void>();
      const { script, go } = lately();
      const server = await start({
        dialect,
        release: 'head',
        clearsQueue: false,
        script: (text) =>
          text === 'next' ? sayWhen(half.promise, 'half', ', whole') : script(text),
      });
      const session = await openAt(server);
      const late = watch(session, promptOf('late'));
      late.turn.stop();
      late.turn.release();
      const next = watch(session, promptOf('next'));
      await until(() => server.received('prompt').length === 2);
      go();
      await until(() => next.text === 'half');
      // Twice as long as the server takes to say for the second time that it has aborted.
      await new Promise((resolve) => setTimeout(resolve, 80));
      half.resolve();
      expect(await next.done).toMatchObject({ outcome: 'finished' });
      expect(next.text).toBe('half, whole');
    },
  );

  it.each(['snapshot', 'v2'] as const)('may be the same words again (%s)', async (dialect) => {
    const { server, session, stopped, go } = await stopEarly({ dialect });
    const next = watch(session, promptOf('late'));
    await until(() => server.received('prompt').length === 2);
    go();
    await until(() => next.text === 'late: half');
    expect(stopped).toEqual(['late']);
    next.turn.stop();
    expect(await next.done).toMatchObject({ outcome: 'stopped' });
    expect(stopped).toEqual(['late', 'late']);
  });

  it('may be one of several', async () => {
    const { server, session, stopped, go } = await stopEarly({ clearsQueue: false });
    const second = watch(session, promptOf('late too'));
    await until(() => server.received('prompt').length === 2);
    second.turn.stop();
    second.turn.release();
    const next = watch(session, promptOf('next'));
    go();
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
    expect(stopped).toEqual(['late', 'late too']);
  });

  it('is not sent again if it is the next that is stopped then', async () => {
    const { server, session, go } = await stopEarly({});
    const next = watch(session, promptOf('next'));
    await until(() => server.received('prompt').length === 2);
    go();
    await until(() => server.received('abort').length === 1);
    next.turn.stop();
    expect(await next.done).toMatchObject({ outcome: 'stopped' });
    expect(server.received('prompt')).toHaveLength(2);
    const last = watch(session, promptOf('last'));
    expect(await last.done).toMatchObject({ outcome: 'finished' });
    expect(last.text).toBe('last');
  });

  it('fails before it begins: that is not the failure of the next', async () => {
    const { server, session } = await stopEarly({ hasQueueStatus: false });
    const next = watch(session, promptOf('next'));
    await until(() => server.received('prompt').length === 2);
    server.broadcast('s', { type: 'error', error: 'It broke.' });
    const place = { channelType: 'web', channelId: 'default' };
    const data = { id: 't', role: 'assistant', content: '', parts: [], ...place };
    server.broadcast('s', { type: 'message', data });
    const parts = [{ type: 'finish', reason: 'end_turn' }];
    server.broadcast('s', { type: 'message.updated', data: { ...data, parts } });
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(server.received('abort')).toEqual([]);
  });

  it('begins in both dialects at once, and is one turn', async () => {
    const { server, session } = await stopEarly({ hasQueueStatus: false });
    const next = watch(session, promptOf('next'));
    await until(() => server.received('prompt').length === 2);
    const data = { id: 't', role: 'assistant', content: '', parts: [] };
    server.broadcast('s', { type: 'message', data });
    server.broadcast('s', { type: 'message.create', turnId: 't' });
    server.broadcast('s', { type: 'message.part.text-delta', turnId: 't', delta: 'not ours' });
    await until(() => server.received('abort').length === 1);
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
  });
});

describe('a prompt that was stopped while it waits', () => {
  it.each(['snapshot', 'v2'] as const)('keeps the session busy (%s)', async (dialect) => {
    const { script, stopped, go } = lately();
    const server = await start({ dialect, script, clearsQueue: false });
    const session = await openAt(server);
    expect(session.isBusy).toBe(false);
    server.ask('s', 'late theirs');
    const ours = watch(session, promptOf('late ours'));
    await until(() => ours.turn.isQueued && server.received('prompt').length === 1);
    expect(session.isBusy).toBe(false);
    ours.turn.stop();
    ours.turn.release();
    expect(session.isBusy).toBe(true);
    go();
    server.abort('s');
    await until(() => server.received('abort').length === 1);
    expect(stopped).toContain('late ours');
    expect(session.isBusy).toBe(false);
  });

  it('keeps no session busy that is closed', async () => {
    const { session } = await stopEarly({});
    expect(session.isBusy).toBe(true);
    session.close();
    expect(session.isBusy).toBe(false);
  });
});
