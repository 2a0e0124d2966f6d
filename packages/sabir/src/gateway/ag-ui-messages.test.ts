import { describe, expect, it, onTestFinished } from 'vitest';
import { createHttpAgent, saidBy } from '../../test/ag-ui-client.ts';
import { connectAgUi, runInput } from '../../test/ag-ui-gateway.ts';
import { listen } from '../../test/approval-agent.ts';
import { eventually, openSse, refusal } from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import type { AuditEvent } from '../core/audit.ts';
import type { Chunk } from '../core/chunks.ts';
import { createSessions, memorySessionStore } from '../sessions/index.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import { type Agent, asUpstream, type Upstream } from './index.ts';

type Asker = {
  agent: Agent;
  upstream: Upstream;
  asked: string[];
  heard: unknown[];
  ended: string[];
};

/** Asks `hi` back, at once or after a text, and repeats everything else. What waits is kept by `store`. */
function createAsker({ isSilent = false, store = new Map<string, object>() } = {}): Asker {
  const asker = { asked: [] as string[], heard: [] as unknown[], ended: [] as string[] };
  const agent: Agent = {
    name: 'asker',
    concurrent: true,
    async *prompt({ text, chatKey, messageId, isRestored, answer }): AsyncGenerator<Chunk> {
      if (!isRestored) asker.asked.push(text);
      if (!isSilent || text.startsWith('not')) {
        yield { type: 'text-start', id: '1' };
        yield { type: 'text-delta', id: '1', delta: `You said ${text || 'hi'}.` };
        yield { type: 'text-end', id: '1' };
      }
      if (text !== 'hi' && !isRestored) return;
      store.set(chatKey, { messageId, userId: 'carl' });
      const data = { questionId: 'q', text: 'Which port?', status: 'open' };
      yield { type: 'data-question', id: 'q', data };
      asker.heard.push(await answer('q'));
      store.delete(chatKey);
      asker.ended.push('hi');
    },
    restore: ({ chatKey }) => store.get(chatKey) as { messageId: string } | undefined,
  };
  return { agent, upstream: asUpstream(agent), ...asker };
}

const CANCELLED = { approved: false, cancelled: true };

type Connected = Awaited<ReturnType<typeof connectAgUi>>;

/** As a page does it whose user writes a message instead of an answer. */
function writeInstead(agent: Connected['agent'], content: string, id = 'u2') {
  agent.addMessage({ id, role: 'user', content });
  const resume = agent.pendingInterrupts.map(({ id: interruptId }) => {
    return { interruptId, status: 'cancelled' as const };
  });
  return agent.runAgent({ resume });
}

describe('an AG-UI run with answers and a new message of its user', () => {
  it.each([
    ['after a text', false],
    ['before any text', true],
  ])(
    'asked %s: cancels the question, prompts the message and streams its turn',
    async (_, isSilent) => {
      const asker = createAsker({ isSilent });
      const { agent, events } = await connectAgUi(asker.upstream);
      await agent.runAgent();
      expect(agent.pendingInterrupts).toHaveLength(1);
      const { newMessages } = await writeInstead(agent, 'not now');
      expect(asker.heard).toEqual([CANCELLED]);
      expect(asker.asked).toEqual(['hi', 'not now']);
      expect(saidBy(newMessages).text).toBe('You said not now.');
      expect(agent.pendingInterrupts).toEqual([]);
      expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
      await eventually(() => asker.ended[0]);
    },
  );

  it('sent twice prompts once', async () => {
    const audited: AuditEvent[] = [];
    const asker = createAsker();
    const { agent, carl } = await connectAgUi(asker.upstream, {
      onAudit: (event) => audited.push(event),
    });
    await agent.runAgent();
    const interruptId = agent.pendingInterrupts[0]?.id ?? '';
    const input = runInput({
      runId: 'r2',
      messages: [...agent.messages, { id: 'u2', role: 'user', content: 'not now' }],
      resume: [{ interruptId, status: 'cancelled' }],
    });
    const send = async () => {
      const sse = openSse(await carl.send('POST', '/api/sessions/s1/ag-ui', {}, input));
      await sse.ended;
      return sse.raw();
    };
    const first = await send();
    expect(first).toContain('You said not now.');
    expect(await send()).toBe(first);
    expect(asker.asked).toEqual(['hi', 'not now']);
    expect(audited.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'prompt accepted',
      'answer accepted',
      'prompt accepted',
    ]);
  });

  it('whose last message is the one that the turn answers goes on with the turn, and prompts nothing', async () => {
    const asker = createAsker({ isSilent: true });
    const { agent } = await connectAgUi(asker.upstream);
    await agent.runAgent();
    expect(agent.messages).toHaveLength(1);
    const interruptId = agent.pendingInterrupts[0]?.id ?? '';
    await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: 'Tunis' }] });
    expect(asker.heard).toEqual(['Tunis']);
    expect(asker.asked).toEqual(['hi']);
  });

  it.each([
    ['its message was asked before, prompts nothing', undefined, ['hi']],
    ['its message is new, prompts it', 'not now', ['not now']],
  ])('for a turn that goes on in another process: where %s', async (_, text, asked) => {
    const store = new Map();
    const first = await connectAgUi(createAsker({ isSilent: true, store }).upstream);
    await first.agent.runAgent();
    await first.gateway.close();
    const after = createAsker({ isSilent: true, store });
    const { agent } = (await connectAgUi(after.upstream)).as('carl');
    agent.pendingInterrupts = first.agent.pendingInterrupts;
    if (text) await writeInstead(agent, text);
    else {
      const interruptId = agent.pendingInterrupts[0]?.id ?? '';
      await agent.runAgent({ resume: [{ interruptId, status: 'cancelled' }] });
    }
    expect(after.heard).toEqual([CANCELLED]);
    expect(after.asked).toEqual(text ? asked : []);
  });

  it('prompts its message also when the turn that asked has ended', async () => {
    const store = new Map();
    const asker = createAsker({ store });
    const { agent, url } = await connectAgUi(asker.upstream);
    await agent.runAgent();
    const stop = { method: 'POST', headers: { authorization: 'Bearer carl' } };
    expect((await fetch(`${url}/api/sessions/s1/ag-ui/c1/stop`, stop)).status).toBe(202);
    store.clear();
    const { newMessages } = await writeInstead(agent, 'not now');
    expect(saidBy(newMessages).text).toBe('You said not now.');
    expect(asker.heard).toEqual([]);
  });

  describe.each([
    ['is not the latest any more', undefined],
    ['is forgotten', 0],
  ])('for a turn that has ended and %s,', (_, retentionMs) => {
    const told = [
      ['no session', undefined],
      ['a session', {}],
    ] as const;

    /** The turn has asked without a word, was stopped, and another one has ended since. */
    async function askAndEnd(inSession: object | undefined) {
      const store = new Map();
      const asker = createAsker({ isSilent: true, store });
      const log = memoryTurnLog(retentionMs === undefined ? {} : { retentionMs });
      const sessions =
        inSession &&
        createSessions({
          store: memorySessionStore(),
          agent: () => asker.agent,
          log,
        });
      const { as, agent, carl, gateway } = await connectAgUi(
        sessions ? undefined : asker.upstream,
        sessions ? { sessions } : { log },
      );
      if (sessions) {
        onTestFinished(async () => {
          await gateway.close();
          await sessions.close(0);
        });
      }
      await agent.runAgent();
      const path = '/api/sessions/s1/ag-ui/c1/stop';
      await eventually(async () => (await carl.send('POST', path)).status === 202, 'the stop');
      store.clear();
      const { agent: other } = as('carl', [{ id: 'u2', role: 'user', content: 'not two' }]);
      await other.runAgent();
      await eventually(async () => (await log.live('s1')).length === 0);
      expect(asker.asked).toEqual(['hi', 'not two']);
      return { asker, agent };
    }

    it.each(told)('prompts its old message never again, with %s', async (_, inSession) => {
      const { asker, agent } = await askAndEnd(inSession);
      const [{ id: interruptId } = { id: '' }] = agent.pendingInterrupts;
      await agent.runAgent({ resume: [{ interruptId, status: 'resolved', payload: 'Tunis' }] });
      expect(asker.asked).toEqual(['hi', 'not two']);
    });

    it.each(told)('prompts a new message, with %s', async (_, inSession) => {
      const { asker, agent } = await askAndEnd(inSession);
      await writeInstead(agent, 'not now', 'u3');
      expect(asker.asked).toEqual(['hi', 'not two', 'not now']);
    });
  });

  it('with a message that says nothing is refused, and nothing is answered', async () => {
    const asker = createAsker();
    const { agent, carl } = await connectAgUi(asker.upstream);
    await agent.runAgent();
    const interruptId = agent.pendingInterrupts[0]?.id ?? '';
    const response = await carl.send(
      'POST',
      '/api/sessions/s1/ag-ui',
      {},
      runInput({
        runId: 'r2',
        messages: [{ id: 'u2', role: 'user', content: ' ' }],
        resume: [{ interruptId, status: 'cancelled' }],
      }),
    );
    expect(await refusal(response)).toMatchObject({ status: 400, code: 'no-user-message' });
    expect(asker.heard).toEqual([]);
  });

  it('in a session waits behind the turn that goes on, and shows its place in the queue', async () => {
    const { agent: led, gateway } = startHosted();
    const { agent, events } = createHttpAgent({
      url: `${await listen(gateway)}/api/sessions/s1/ag-ui`,
      headers: { authorization: 'Bearer carl' },
      threadId: 'c1',
      initialMessages: [{ id: 'u1', role: 'user', content: 'hi' }],
    });
    const asking = agent.runAgent();
    const first = await led.run();
    const answered = first.prompt.ask({ text: 'Which port?' });
    await asking;
    const written = writeInstead(agent, 'not now');
    expect(await answered).toEqual({ status: 'answered', answer: CANCELLED });
    const queue = { type: 'CUSTOM', name: 'data-queue' };
    const placed = (position: number, status: string) => ({
      ...queue,
      value: { id: 'queue', data: { position, status } },
    });
    await eventually(() =>
      events.some((event) => event.type === 'CUSTOM' && event.name === 'data-queue'),
    );
    expect(events.at(-1)).toEqual(placed(1, 'waiting'));
    expect(led.runs).toHaveLength(1);
    first.text('Fine.');
    first.end();
    const next = await led.run(1);
    next.text('You said not now.');
    next.end();
    expect(saidBy((await written).newMessages).text).toBe('You said not now.');
    expect(events).toContainEqual(placed(0, 'begun'));
  });
});
