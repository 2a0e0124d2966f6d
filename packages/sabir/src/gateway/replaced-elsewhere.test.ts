import { describe, expect, it } from 'vitest';
import { isSettled } from '../../test/gateway-client.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import type { Place } from './chat-route.ts';
import { createReplacedTurns, noteEnd } from './replaced-turns.ts';
import type { Beginning } from './turn-host.ts';
import type { TurnRunner } from './turn-runner.ts';

const REPLACED = { status: 'stopped', reason: 'replaced' } as const;

/** A turn that another gateway runs, and a regenerate by carl that comes to this one. */
async function regenerate(userId: string, retentionMs = 60_000) {
  const log = { ...memoryTurnLog({ retentionMs }), outlivesProcess: true };
  const chat = { sessionId: 's', chatId: 'c', messageId: 'm' };
  const begun = await log.begin({ ...chat, requestId: 'waiting m', userId });
  if (!('writer' in begun)) throw new Error('The log has it.');
  const { writer } = begun;
  const runner = { unstoredIn: () => [], turnHere: () => undefined } as unknown as TurnRunner;
  const place = {
    logSession: 's',
    logChat: 'c',
    sessionId: 's',
    chatId: 'c',
    user: { id: 'carl' },
  };
  const stopping = createReplacedTurns(log, runner).stop(
    { requestId: 'again' } as Beginning,
    place as unknown as Place,
  );
  const isStopped = async () => {
    const { value } = (await writer.commands()[Symbol.asyncIterator]().next()) ?? {};
    return value?.type === 'stop';
  };
  return { log, writer, stopping, isStopped };
}

describe('a regenerate of a turn that goes on after a restart, in another gateway', () => {
  it('stops it, and waits until its onFinish has run', async () => {
    const { log, writer, stopping, isStopped } = await regenerate('carl');
    expect(await isStopped()).toBe(true);
    await writer.close(REPLACED);
    expect(await isSettled(stopping)).toBe(false);
    await noteEnd(log, writer.turnId, REPLACED);
    await stopping;
  });

  it('does not stop it for another user', async () => {
    const { log, writer, stopping } = await regenerate('cora');
    await stopping;
    expect(await log.get(writer.turnId)).toMatchObject({ status: 'queued' });
    expect(await log.command(writer.turnId, { type: 'stop' })).toBe(true);
  });

  it.each([REPLACED, { status: 'finished' } as const])(
    'waits only a moment for its onFinish where the log has forgotten it: %j',
    async (outcome) => {
      const { writer, stopping, isStopped } = await regenerate('carl', 0);
      await isStopped();
      const began = performance.now();
      await writer.close(outcome);
      await stopping;
      expect(performance.now() - began).toBeLessThan(2_500);
    },
  );
});
