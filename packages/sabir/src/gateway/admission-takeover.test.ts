/** What counts of a turn that changes gateways: it counts where it runs, and only there. */
import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  openSse,
} from '../../test/gateway-client.ts';
import { scriptedUpstream } from '../../test/scripted-upstream.ts';
import { SabirError, TURN_FENCED } from '../core/errors.ts';
import type { OrphanedTurn, TurnInfo } from '../turns/log.ts';
import { memoryTurnLog, type TurnLog } from './index.ts';

/** A log that others share, as far as a gateway can tell. */
function createSharedLog() {
  const log = memoryTurnLog();
  let adopt: (orphan: OrphanedTurn) => Promise<boolean> = async () => false;
  const shared: TurnLog = {
    ...log,
    outlivesProcess: true,
    onOrphan(given) {
      adopt = given;
      return () => undefined;
    },
  };
  return { log: shared, adopt: (orphan: OrphanedTurn) => adopt(orphan) };
}

const useOf = async (user: ReturnType<typeof createUser>) =>
  (await user.metrics())['sabir_limit_use{limit="liveTurnsPerUser"}'];

describe('a turn that a gateway takes over', () => {
  it('counts for its user, is not refused past the limit, and frees its place when the gateway closes', async () => {
    const { log, adopt } = createSharedLog();
    const gateway = createTestGateway(scriptedUpstream(), { log, limits: { liveTurnsPerUser: 1 } });
    const carl = createUser(gateway, 'carl');
    for (const chatId of ['a', 'b']) {
      const ids = { sessionId: 's1', chatId, requestId: chatId, messageId: `m-${chatId}` };
      const begun = await log.begin(ids);
      if (!('writer' in begun)) throw new Error('unreachable');
      const { writer } = begun;
      const origin = {
        route: 'sessions',
        sessionId: 's1',
        user: { id: 'carl' },
        role: 'collaborator',
        asked: { userMessage: chatBody('hi').messages[0], body: {} },
      };
      const turn = (await log.get(writer.turnId)) as TurnInfo;
      expect(await adopt({ turn, origin, mark: 0, writer })).toBe(true);
    }
    expect(await useOf(carl)).toBe(2);
    expect((await carl.post(chatBody('hi'))).status).toBe(429);
    await gateway.close();
    expect(await useOf(carl)).toBe(0);
  });
});

describe('a turn that another gateway has taken', () => {
  it('frees its place', async () => {
    const { log } = createSharedLog();
    const agent = createAgent();
    const fenced: TurnLog = {
      ...log,
      async begin(info) {
        const begun = await log.begin(info);
        if (!('writer' in begun)) return begun;
        const append = () => Promise.reject(new SabirError(TURN_FENCED));
        return { writer: { ...begun.writer, append } };
      },
    };
    const carl = createUser(createTestGateway(agent.upstream, { log: fenced }), 'carl');
    openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    expect(await useOf(carl)).toBe(1);
    run.delta('a');
    await expect.poll(() => useOf(carl)).toBe(0);
  });
});
