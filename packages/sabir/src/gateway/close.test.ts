import { describe, expect, it } from 'vitest';
import { type ApprovalStore, createApprovalAgent } from '../../test/approval-agent.ts';
import {
  chatBody,
  createTestGateway,
  createUser,
  echo,
  eventually,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { asUpstream, memoryTurnLog, type TurnInfo, type Upstream } from './index.ts';

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

  it('pauses also a turn that comes to wait for an answer meanwhile', async () => {
    const gate = createGate();
    const log = memoryTurnLog();
    const upstream = asUpstream({
      name: 'asking',
      async *prompt({ answer }) {
        await gate.pass();
        yield { type: 'data-question', id: 'q', data: { questionId: 'q', status: 'open' } };
        await answer('q');
      },
      restore: () => undefined,
    });
    const gateway = createTestGateway(upstream, { log, timing: { shutdownMs: 5_000 } });
    await createUser(gateway, 'carl').post(chatBody('hi'));
    await gate.reached();
    const begunAt = Date.now();
    const closing = gateway.close();
    gate.open();
    await closing;
    expect(Date.now() - begunAt).toBeLessThan(2_000);
    expect((await log.latest('s1', 'c1'))?.outcome).toEqual({ status: 'paused' });
  });

  it('waits for the same end when it closes again', async () => {
    const gateway = createTestGateway(echo, { timing: { shutdownMs: 1 } });
    expect(gateway.close()).toBe(gateway.close());
    await gateway.close();
  });
});

describe('an answer that crosses close()', () => {
  /** Carl's turn waits; his answer is on its way to it when its process closes. */
  async function cross(answerHow: 'posted' | 'answered', isElsewhere: boolean) {
    const gate = createGate();
    const log = memoryTurnLog();
    const store: ApprovalStore = new Map();
    const slow: typeof log = {
      ...log,
      command: (...given) => gate.pass().then(() => log.command(...given)),
    };
    const agent = createApprovalAgent({ steps: [['a']], store });
    const first = createTestGateway(agent.upstream, { log: isElsewhere ? log : slow });
    const second = createApprovalAgent({ steps: [['a']], store });
    const other = isElsewhere ? createTestGateway(second.upstream, { log: slow }) : first;
    const begun = await createUser(first, 'carl').post(chatBody('go'), { query: 'aiSdk=7' });
    const message = foldChunks(await readChunks(begun));
    const carl = createUser(other, 'carl');
    const answer =
      answerHow === 'answered'
        ? carl.answer('a', true)
        : carl.post(approving(message), { query: 'aiSdk=7' });
    await gate.reached();
    const closing = first.close();
    const outcome = async () => (await log.latest('s1', 'c1'))?.outcome;
    await expect.poll(outcome).toEqual({ status: 'paused' });
    gate.open();
    const response = await answer;
    await closing;
    return { response, second };
  }

  function approving(message: UIMessage) {
    const parts = message.parts.map((part) =>
      'approval' in part
        ? { ...part, state: 'approval-responded', approval: { id: 'a', approved: true } }
        : part,
    );
    return { id: 'c1', messageId: message.id, messages: [{ ...message, parts }] };
  }

  it.each(['posted', 'answered'] as const)('is to be sent again, not too late: %s', async (how) => {
    const { response } = await cross(how, false);
    expect(await refusal(response)).toMatchObject(REFUSED);
  });

  it.each(['posted', 'answered'] as const)('is taken where the turn goes on: %s', async (how) => {
    const { response, second } = await cross(how, true);
    expect(response.status).toBe(how === 'answered' ? 202 : 200);
    await eventually(() => second.heard.a, 'the answer');
    expect(second.turns).toMatchObject([{ isRestored: true }]);
  });
});
