import { describe, expect, it, vi } from 'vitest';
import { type ApprovalStore, createApprovalAgent } from '../../test/approval-agent.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import type { User } from '../turns/upstream.ts';
import { asUpstream, type ChatGatewayOptions, memoryTurnLog } from './index.ts';

const SEVEN = { query: 'aiSdk=7' };
const UNREACHABLE = { status: 502, code: 'upstream-unreachable' };

type Options = Omit<Parameters<typeof createApprovalAgent>[0], 'steps' | 'store'> & {
  options?: Partial<ChatGatewayOptions>;
};

function startProcess(store: ApprovalStore, { options, ...agentOptions }: Options = {}) {
  const agent = createApprovalAgent({ steps: [['a']], store, ...agentOptions });
  const opened: User[] = [];
  const upstream = {
    ...agent.upstream,
    open: (where: Parameters<typeof agent.upstream.open>[0]) => {
      opened.push(where.user);
      return agent.upstream.open(where);
    },
  };
  const finished: User[] = [];
  const gateway = createTestGateway(upstream, {
    onFinish: ({ user }) => void finished.push(user),
    ...options,
  });
  return { agent, gateway, opened, finished, carl: createUser(gateway, 'carl') };
}

/** Carl's turn waits, and its process has ended. */
async function restart(options: Options = {}) {
  const store: ApprovalStore = new Map();
  const { beforeTelling: _, ...first } = options;
  const { carl, gateway } = startProcess(store, first);
  const message = foldChunks(await readChunks(await carl.post(chatBody('go'), SEVEN)));
  await gateway.close();
  return { message, ...startProcess(store, options) };
}

/** What a stock client sends when its person has approved everything. */
function approving(message: UIMessage) {
  const parts = message.parts.map((part) => {
    const { approval } = part as { approval?: object };
    return approval
      ? { ...part, state: 'approval-responded', approval: { ...approval, approved: true } }
      : part;
  });
  const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] };
  const messages = [user, { ...message, parts }];
  return { id: 'c1', trigger: 'submit-message', messageId: message.id, messages };
}

const question = (id: string): Chunk[] => [
  { type: 'tool-input-available', toolCallId: `c-${id}`, toolName: 'pay', input: {} },
  { type: 'data-question', id, data: { questionId: id, text: `Pay for ${id}?`, status: 'open' } },
  { type: 'tool-approval-request', toolCallId: `c-${id}`, approvalId: id },
  { type: 'finish-step' },
];

describe('who a restored turn runs as', () => {
  it.each(['vera', 'cora'])('is who asked, though %s has come', async (name) => {
    const { agent, gateway, opened, finished, carl } = await restart();
    const sse = openSse(await createUser(gateway, name).resume());
    await sse.until(() => sse.raw().includes('Pay for a?'));
    expect(agent.turns[0]?.user).toEqual({ id: 'carl' });
    expect(opened).toContainEqual({ id: 'carl' });
    expect((await carl.answer('a', true)).status).toBe(202);
    await sse.ended;
    await vi.waitFor(() => expect(finished).toEqual([{ id: 'carl' }]));
  });

  it('is the visitor as they are now, if they are who asked', async () => {
    const authenticate = () => ({ id: 'carl', token: 'fresh' });
    const { agent, carl } = await restart({ options: { authenticate } });
    await openSse(await carl.resume('c1', SEVEN)).ended;
    expect(agent.turns[0]?.user).toEqual({ id: 'carl', token: 'fresh' });
  });

  it('is whoever has come where nobody knows, unless they may only watch', async () => {
    const { agent, gateway, finished } = await restart({ isForgetful: true });
    expect((await createUser(gateway, 'vera').resume()).status).toBe(204);
    expect(agent.turns).toEqual([]);
    const cora = createUser(gateway, 'cora');
    expect((await cora.answer('a', true)).status).toBe(202);
    await eventually(() => finished[0], 'its end');
    expect([agent.turns[0]?.user, finished]).toEqual([{ id: 'cora' }, [{ id: 'cora' }]]);
  });

  it.each([7, '', {}])('is nobody who is not understood: %j', async (userId) => {
    const { agent, carl } = await restart();
    for (const kept of agent.store.values()) kept.userId = userId as string;
    expect((await carl.resume()).status).toBe(204);
  });
});

describe('an answer that comes after its question has expired', () => {
  const late = async () => {
    const restarted = await restart({ question: { expiresAt: Date.now() + 150 } });
    await new Promise((resolve) => setTimeout(resolve, 170));
    return restarted;
  };

  it('is too late also in a turn that was just restored', async () => {
    const { agent, carl } = await late();
    expect(await refusal(await carl.answer('a', true))).toMatchObject({
      status: 410,
      code: 'question-expired',
    });
    expect(agent.heard).toEqual({});
  });

  it('is not taken of a message either, and its client sees what happens', async () => {
    const { agent, carl, message } = await late();
    const told = await readChunks(await carl.post(approving(message), SEVEN));
    expect(told).toContainEqual(
      expect.objectContaining({ data: expect.objectContaining({ status: 'expired' }) }),
    );
    expect(agent.heard).toEqual({});
  });
});

describe('a cursor', () => {
  it('is told the rest of its turn before anything is restored', async () => {
    const store: ApprovalStore = new Map();
    const options = { log: memoryTurnLog() };
    const first = startProcess(store, { options });
    const begun = openSse(await first.carl.post(chatBody('go')));
    await begun.until(() => begun.raw().includes('Pay for a?'));
    const cursor = begun.frames.findLast(({ id }) => id)?.id as string;
    await first.gateway.close();
    const { agent, carl } = startProcess(store, { options });
    const rest = openSse(await carl.resumeAt(cursor));
    await rest.ended;
    expect(rest.raw()).toContain('"outcome":"paused"');
    expect(agent.turns).toEqual([]);
    const last = rest.frames.findLast(({ id }) => id)?.id as string;
    const again = openSse(await carl.resumeAt(last));
    await again.until(() => again.raw().includes('Pay for a?'));
    expect(agent.turns).toHaveLength(1);
  });
});

describe('a turn that is slow to tell again what it has said', () => {
  const slow = { beforeTelling: () => new Promise(() => undefined) };

  it('may have asked what is answered: 502, and no word of it being closed', async () => {
    const { carl, message } = await restart({ ...slow, options: { timing: { connectMs: 60 } } });
    expect(await refusal(await carl.answer('a', true))).toMatchObject(UNREACHABLE);
    const again = await restart({ ...slow, options: { timing: { connectMs: 60 } } });
    expect(await refusal(await again.carl.post(approving(again.message), SEVEN))).toMatchObject(
      UNREACHABLE,
    );
    // A message that is not its own is no reason to wait.
    const other = approving({ ...message, id: 'other' });
    expect((await carl.post(other, SEVEN)).status).toBe(200);
  });

  it('is waited for until it has come to every approval of the message', async () => {
    const heard: unknown[] = [];
    const upstream = asUpstream({
      name: 'asking',
      async *prompt({ answer }) {
        yield* question('a');
        await new Promise((resolve) => setTimeout(resolve, 50));
        yield* question('b');
        heard.push(await answer('a'), await answer('b'));
      },
      restore: () => (heard.length > 0 ? undefined : { messageId: 'm', userId: 'carl' }),
    });
    const carl = createUser(createTestGateway(upstream), 'carl');
    const said = [...question('a'), { type: 'start-step' } as const, ...question('b')];
    const message = foldChunks([{ type: 'start', messageId: 'm' }, ...said]);
    await readChunks(await carl.post(approving(message), SEVEN));
    expect(heard).toEqual([{ approved: true }, { approved: true }]);
  });

  it('does not keep an answer from another turn', async () => {
    const { gateway, carl, agent } = await restart(slow);
    void carl.resume();
    await eventually(() => agent.turns[0], 'the restored turn');
    const second = openSse(
      await carl.post(chatBody('another'), { headers: { 'x-sabir-detach': '1' } }),
    );
    await second.until(() => second.raw().includes('Pay for a?'));
    expect((await createUser(gateway, 'cora').answer('a', true)).status).toBe(202);
    await second.ended;
  });
});

describe('a restored turn that fails before it has told anything', () => {
  it('does not reach onFinish, and says 502 to whoever answers', async () => {
    const onFinish = vi.fn();
    const upstream = asUpstream({
      name: 'failing',
      async *prompt() {
        yield* [] as Chunk[];
        throw new Error('the store is away');
      },
      restore: () => ({ messageId: 'm', userId: 'carl' }),
    });
    const carl = createUser(createTestGateway(upstream, { onFinish }), 'carl');
    const told = openSse(await carl.resume());
    await told.ended;
    expect(told.raw()).toContain('"outcome":"failed"');
    expect(await refusal(await carl.answer('a', true))).toMatchObject(UNREACHABLE);
    expect(onFinish).not.toHaveBeenCalled();
    // One that was asked for is a message, whatever it holds.
    await readChunks(await carl.post(chatBody('go')));
    await eventually(() => onFinish.mock.calls.length === 1, 'onFinish');
  });
});

describe('of several turns of a chat', () => {
  it('one that began while it was asked what waits is the one to see', async () => {
    const asked = Promise.withResolvers<void>();
    const found = Promise.withResolvers<{ messageId: string; userId: string }>();
    const turns: boolean[] = [];
    const upstream = asUpstream({
      name: 'asking',
      async *prompt({ isRestored, answer }) {
        turns.push(isRestored);
        yield* question('n');
        await answer('n');
      },
      restore: () => {
        asked.resolve();
        return found.promise;
      },
    });
    const carl = createUser(createTestGateway(upstream), 'carl');
    const resuming = carl.resume();
    await asked.promise;
    const begun = await carl.post(chatBody('new'));
    found.resolve({ messageId: 'm', userId: 'carl' });
    const resumed = await resuming;
    expect(resumed.headers.get('x-sabir-turn')).toBe(begun.headers.get('x-sabir-turn'));
    expect(turns).toEqual([false]);
  });

  it('a resume shows the one that says something, not the one that waits for an answer', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const first = openSse(await carl.post(chatBody('go')));
    (await agent.run()).say(...question('a'));
    await first.until(() => first.raw().includes('Pay for a?'));
    const posted = await carl.post(chatBody('something else instead'));
    const turn = posted.headers.get('x-sabir-turn');
    const second = openSse(posted);
    (await agent.run(1)).delta('Sure.');
    await second.until(() => second.text());
    expect((await carl.resume()).headers.get('x-sabir-turn')).toBe(turn);
    // The other one can be answered and stopped all the same.
    expect((await carl.answer('a', true)).status).toBe(202);
    expect((await carl.stop()).status).toBe(202);
    await eventually(() => agent.runs.every((run) => run.turn.signal.aborted), 'both stops');
  });

  it('a stop ends one that has begun and said nothing yet, too', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const first = openSse(await carl.post(chatBody('go')));
    (await agent.run()).delta('One');
    await first.until(() => first.text());
    await carl.post(chatBody('and this'));
    await agent.run(1);
    expect((await carl.stop()).status).toBe(202);
    await eventually(() => agent.runs.every((run) => run.turn.signal.aborted), 'both stops');
  });
});
