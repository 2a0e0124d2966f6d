import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  echo,
  eventually,
  refusal,
} from '../../test/gateway-client.ts';
import { memoryTurnLog, type TurnInfo, type Upstream } from './index.ts';

const REFUSED = { status: 503, code: 'shutting-down' };

/** Something that waits until the test lets it go on. */
function createGate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isReached = false;
  const pass = async () => {
    isReached = true;
    await promise;
  };
  return { pass, open: resolve, reached: () => eventually(() => isReached, 'the gate') };
}

describe('what crosses close()', () => {
  it('begins no turn, and leaves none that a reader would wait for', async () => {
    const gate = createGate();
    const log = memoryTurnLog();
    let opened = 0;
    const upstream: Upstream = {
      open: (where) => {
        opened++;
        return echo.open(where);
      },
    };
    const gateway = createTestGateway(upstream, {
      log: { ...log, begin: (info) => gate.pass().then(() => log.begin(info)) },
    });
    const answer = createUser(gateway, 'carl').post(chatBody('hi'));
    await gate.reached();
    const closing = gateway.close();
    gate.open();
    expect(await refusal(await answer)).toMatchObject(REFUSED);
    await closing;
    expect(opened).toBe(0);
    const turn = (await log.latest('s1', 'c1')) as TurnInfo;
    expect(turn.outcome).toMatchObject({ status: 'failed', code: 'shutting-down' });
    const types: string[] = [];
    for await (const batch of log.read(turn.turnId, 0, AbortSignal.timeout(2_000))) {
      types.push(...batch.map(({ chunk }) => chunk.type));
    }
    expect([types[0], types.at(-1)]).toEqual(['start', 'finish']);
  });

  it('gets no session, nor what a session that was closed makes of it: 503', async () => {
    const opening = createGate();
    const reading = createGate();
    const upstream: Upstream = {
      async open({ sessionId }) {
        if (sessionId === 's1') await opening.pass();
        return {
          isClosed: false,
          prompt: () => {
            throw new Error('not asked for');
          },
          async history() {
            await reading.pass();
            throw new Error('the connection was closed');
          },
          close: () => undefined,
        };
      },
    };
    const gateway = createTestGateway(upstream);
    const early = createUser(gateway, 'carl').channels();
    const late = createUser(gateway, 'carl', 's2').messages();
    await Promise.all([opening.reached(), reading.reached()]);
    const closing = gateway.close();
    opening.open();
    reading.open();
    expect(await refusal(await early)).toMatchObject(REFUSED);
    expect(await refusal(await late)).toMatchObject(REFUSED);
    await closing;
  });

  it('waits for the same end when it closes again', async () => {
    const gateway = createTestGateway(echo, { timing: { shutdownMs: 1 } });
    expect(gateway.close()).toBe(gateway.close());
    await gateway.close();
  });
});
