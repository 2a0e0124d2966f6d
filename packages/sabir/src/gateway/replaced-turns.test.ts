import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  editBody,
  eventually,
  isSettled,
  openSse,
  regenerateBody,
} from '../../test/gateway-client.ts';
import { turnOf } from '../../test/hosted-gateway.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import type { ChatGatewayOptions, FinishedTurn } from './index.ts';

/** A gateway without sessions where carl's message "one" is being answered, without a viewer. */
async function startAnswering(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const finished: FinishedTurn[] = [];
  const onFinish = (turn: FinishedTurn) => void finished.push(turn);
  const gateway = createTestGateway(agent.upstream, { onFinish, ...options });
  const user = (name: string) => createUser(gateway, name);
  const first = openSse(await user('carl').post(chatBody('one')));
  const run = await agent.run();
  run.delta('Half');
  await first.until(() => first.text());
  // As the `stop()` of a stock client does.
  await first.leave();
  const answer = async (at: number) => {
    const next = await agent.run(at);
    next.delta('Whole');
    next.end();
  };
  return { agent, user, run, finished, answer };
}

describe('a regenerate or an edit in a chat without a session', () => {
  it.each([
    ['a regenerate', regenerateBody('one')],
    ['an edit', editBody('u-one', 'uno')],
    ['an edit of an earlier message', editBody('u-zero', 'zero')],
  ])('stops the turn that still runs, and begins after its onFinish: %s', async (_, body) => {
    const stored = Promise.withResolvers<void>();
    const outcomes: string[] = [];
    const { agent, user, run, answer } = await startAnswering({
      async onFinish({ outcome }) {
        if (outcome.status === 'stopped') await stored.promise;
        outcomes.push(outcome.status);
      },
    });
    const asking = user('carl').post(body);
    await eventually(() => run.turn.signal.aborted, 'the stop');
    expect(await isSettled(asking)).toBe(false);
    expect(agent.runs).toHaveLength(1);
    stored.resolve();
    const second = openSse(await asking);
    await answer(1);
    await second.ended;
    expect(second.text()).toBe('Whole');
    await eventually(() => outcomes.length === 2, 'onFinish');
    expect(outcomes).toEqual(['stopped', 'finished']);
  });

  it('stops nothing of another user, of another chat, or for a message that is new', async () => {
    const { user, run, answer } = await startAnswering();
    const bodies = [
      () => user('cora').post(regenerateBody('one')),
      () => user('carl').post({ ...regenerateBody('one'), id: 'c2' }),
      () => user('carl').post(chatBody('two')),
    ];
    for (const [at, post] of bodies.entries()) {
      const other = openSse(await post());
      await answer(at + 1);
      await other.ended;
    }
    expect(run.turn.signal.aborted).toBe(false);
  });

  it('attaches and stops nothing when it is sent again', async () => {
    const { agent, user, answer } = await startAnswering();
    const carl = user('carl');
    for (const [at, body] of [regenerateBody('one'), editBody('u-one', 'uno')].entries()) {
      const sent = await Promise.all([carl.post(body), carl.post(body)]);
      sent.push(await carl.post(body));
      sent.push(await carl.post(body, { headers: { 'x-sabir-resume': '1' } }));
      expect(new Set(sent.map(turnOf)).size).toBe(1);
      await answer(at + 1);
      for (const sse of sent.map(openSse)) {
        await sse.ended;
        expect(sse.text()).toBe('Whole');
      }
    }
    expect(agent.runs).toHaveLength(3);
  });

  it.each([
    ['with a name', { 'x-sabir-attempt': 'a' }],
    ['without a name', {}],
  ])('stops the turn where only its repeat arrives, %s', async (_, headers) => {
    const { user, run, finished, answer } = await startAnswering();
    const repeat = () =>
      user('carl').post(regenerateBody('one'), { headers: { ...headers, 'x-sabir-resume': '1' } });
    const sent = [await repeat()];
    expect(run.turn.signal.aborted).toBe(true);
    await answer(1);
    const [second] = sent.map(openSse);
    await second?.ended;
    await eventually(() => finished.length === 2, 'onFinish');
    expect(finished.map(({ outcome }) => outcome.status)).toEqual(['stopped', 'finished']);
  });

  it('stops nothing where its turn has ended when it is sent again', async () => {
    const { agent, user, run, answer } = await startAnswering();
    run.end();
    const edited = await user('carl').post(editBody('u-one', 'uno'));
    await answer(1);
    await openSse(edited).ended;
    await user('carl').post(chatBody('two'));
    const later = await agent.run(2);
    const repeat = await user('carl').post(editBody('u-one', 'uno'), {
      headers: { 'x-sabir-resume': '1' },
    });
    expect(turnOf(repeat)).toBe(turnOf(edited));
    expect(later.turn.signal.aborted).toBe(false);
  });

  it.each([
    ['its log', 503, () => ({ log: memoryTurnLog({ liveBytes: 1_000 }) })],
    ['a limit of its user', 429, () => ({ limits: { liveTurnsPerUser: 1 } })],
  ])('stops nothing where %s refuses it', async (_, status, open) => {
    const options: Partial<ChatGatewayOptions> = open();
    const { agent, user, run } = await startAnswering(options);
    run.delta('x'.repeat(1_500));
    const isFull = () => (options.log?.limits.liveBytes?.use?.() ?? Infinity) > 1_000;
    await eventually(isFull, 'a full log');
    expect((await user('carl').post(regenerateBody('one'))).status).toBe(status);
    expect(run.turn.signal.aborted).toBe(false);
    expect(agent.runs).toHaveLength(1);
  });

  it('stops nothing for another attempt that a limit refuses', async () => {
    const { agent, user } = await startAnswering({ limits: { liveTurnsPerUser: 1 } });
    const send = (attempt: string) =>
      user('carl').post(regenerateBody('one'), { headers: { 'x-sabir-attempt': attempt } });
    (await agent.run()).end();
    await eventually(async () => (await send('a')).status === 200, 'room');
    const running = await agent.run(1);
    expect((await send('b')).status).toBe(429);
    expect(running.turn.signal.aborted).toBe(false);
  });

  it('prompts anew for an edit back to earlier words, and attaches when that is sent twice', async () => {
    const { agent, user, answer } = await startAnswering();
    const ask = async (text: string, times = 1) => {
      const at = agent.runs.length;
      const sent = [await user('carl').post(editBody('u-one', text))];
      await answer(at);
      while (sent.length < times) sent.push(await user('carl').post(editBody('u-one', text)));
      for (const sse of sent.map(openSse)) await sse.ended;
      return sent.map(turnOf);
    };
    const turns = [];
    for (const text of ['uno', 'due', 'uno', 'due', 'uno']) turns.push(...(await ask(text)));
    expect(new Set(turns).size).toBe(5);
    expect(new Set(await ask('due', 3)).size).toBe(1);
    expect(agent.runs).toHaveLength(7);
  });

  it('waits for an onFinish of a turn that has just ended', async () => {
    const stored = Promise.withResolvers<void>();
    const outcomes: string[] = [];
    const { user, run, answer } = await startAnswering({
      async onFinish({ message }) {
        const [part] = message.parts.slice(-1);
        const text = part?.type === 'text' ? part.text : '';
        if (text === 'Half') await stored.promise;
        outcomes.push(text);
      },
    });
    run.end();
    await eventually(async () => (await user('carl').resume()).status === 204, 'its end');
    const asking = user('carl').post(regenerateBody('one'));
    expect(await isSettled(asking)).toBe(false);
    stored.resolve();
    const second = openSse(await asking);
    await answer(1);
    await second.ended;
    await eventually(() => outcomes.length === 2, 'onFinish');
    expect(outcomes).toEqual(['Half', 'Whole']);
  });
});
