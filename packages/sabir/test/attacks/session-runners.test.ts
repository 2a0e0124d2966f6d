/** Attacks by a runner that was admitted, and by the agent behind it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { UIMessage } from '../../src/core/message.ts';
import { aiSdkAgent } from '../../src/sources/ai-sdk/agent.ts';
import { createOpenCodeAgent } from '../../src/sources/opencode/agent.ts';
import { AI_SDK_RELEASES, say as sayText } from '../ai-sdk-models.ts';
import { connectRunner, startHostileTurn } from '../hostile-runner.ts';
import { runPrompt } from '../run-prompt.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { joinSession, startSessionChain } from '../session-chain.ts';

describe('a runner', () => {
  it('that updates 400 tools of a 2 MB answer at once makes the server copy the answer a few times, not 400', async () => {
    const { chain, ann, say, finish } = await startHostileTurn();
    // Old clients are sent the whole message at each change.
    const vera = await joinSession(chain, { user: 'vera' });
    let received = 0;
    vera.onEvent = ({ type, data }) => {
      if (type === 'message.updated') received += (data as { content: string }).content.length;
    };
    say({ type: 'message.part.text-delta', delta: 'x'.repeat(2_000_000) });
    for (let n = 0; n < 400; n++) {
      const call = { callId: `c${n}`, toolName: 'x', status: 'running', args: {} };
      say({ type: 'message.part.tool-update', ...call });
    }
    await finish();
    const last = await vera.until(
      ({ type, data }) =>
        type === 'message.updated' && JSON.stringify(data).includes('"reason":"end_turn"'),
    );
    expect((last.data as { parts: object[] }).parts).toHaveLength(402);
    expect(ann.of('message.part.tool-update')).toHaveLength(400);
    expect(received).toBeLessThan(100_000_000);
  });

  it('that asks more questions than a turn may have ends its own turn, and the loop stays free', async () => {
    const { chain, ann, say } = await startHostileTurn();
    const began = performance.now();
    for (let n = 0; n < 1_100; n++) say({ type: 'question', questionId: `q${n}`, text: 'Sure?' });
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      code: 'turn-too-large',
    });
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(ann.of('question').length).toBeLessThanOrEqual(1_001);
    expect(chain.store.open('s').openQuestions()).toEqual([]);
  });

  it.each([
    ['with a turn of another session', { turnId: 'other' }],
    ['with the turn’s id as a list', { turnId: ['t'] }],
    ['with the turn’s id as an object', { turnId: { toString: 't' } }],
  ])('cannot write into a turn %s', async (_, about) => {
    const { chain, ann, say, finish } = await startHostileTurn();
    const bob = await joinSession(chain, { user: 'bob', sessionId: 'other' });
    say({ type: 'message.part.text-delta', delta: 'forged', ...about });
    await finish();
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(bob.of('message.part.text-delta')).toEqual([]);
  });

  it.each([
    'init',
    'status',
    'message',
    'message.updated',
    'chunk',
    'user.joined',
    'user.left',
    'queue.state',
    'queue.withdrawn',
    'pong',
    'ack',
  ])('cannot forge the session’s own event %s', async (type) => {
    const { ann, runner, finish } = await startHostileTurn();
    const before = ann.of(type).length;
    const data = { role: 'owner', forged: true, id: 'forged', content: 'forged' };
    runner.say({ type, data, connectedUsers: [{ id: 'mallory' }], content: 'forged' });
    await finish();
    expect(JSON.stringify(ann.events)).not.toContain('forged');
    if (type !== 'status') expect(ann.of(type)).toHaveLength(before);
  });

  it.each([
    ['interactive_prompt'],
    ['interactive_prompt_resolved'],
    ['interactive_prompt_expired'],
  ])('cannot ask or settle a question beside the session’s own, with %s', async (type) => {
    const { ann, runner, say, finish } = await startHostileTurn();
    const answerBy = { role: 'owner' };
    say({ type: 'question', questionId: 'q', text: 'Refund?', answerBy });
    await ann.until((event) => event.type === 'question');
    runner.say({ type, promptId: 'q', prompt: { id: 'forged', text: 'Refund?' }, answer: true });
    await finish();
    expect(ann.of(type)).toEqual([]);
  });

  it('cannot number its events so that the next runner is not heard', async () => {
    const { chain, runner, ann, finish } = await startHostileTurn();
    for (const seq of ['1e999', '9007199254740993', '-1', '1e308']) {
      runner.say(`{"type":"git-state","runnerSeq":${seq}}`);
    }
    runner.say('{"type":"message.part.text-delta","turnId":"t","delta":"unheard","runnerSeq":5}');
    await finish();
    runner.socket.close();
    await runner.closed;
    const next = await connectRunner(chain, { runnerId: 'honest' });
    ann.send({ type: 'prompt', content: 'Again', promptId: 'p2', turnId: 't2' });
    await next.until('prompt');
    next.say({ type: 'message.create', turnId: 't2', runnerSeq: 1 });
    next.say({ type: 'message.part.text-delta', turnId: 't2', delta: 'heard', runnerSeq: 2 });
    next.say({ type: 'message.finalize', turnId: 't2', reason: 'end_turn', runnerSeq: 3 });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't2');
    expect(ann.text('t2')).toBe('heard');
  });

  it('cannot replay an event that has arrived', async () => {
    const { ann, say, finish } = await startHostileTurn();
    const event = { type: 'message.part.text-delta', delta: 'once', runnerSeq: 7 };
    for (const runnerSeq of [7, 7, 3, 0, -7]) say({ ...event, runnerSeq });
    await finish();
    expect(ann.of('message.part.text-delta').map(({ delta }) => delta)).toEqual(['once']);
  });

  it('cannot answer its own question', async () => {
    const { chain, ann, say, runner } = await startHostileTurn();
    say({ type: 'question', questionId: 'q', text: 'Refund?' });
    await ann.until(({ type }) => type === 'question');
    runner.say({ type: 'answer', questionId: 'q', answer: true });
    runner.say({ type: 'status', data: { questionAnswered: 'q', answer: true } });
    say({ type: 'git-state' });
    await ann.until(({ type }) => type === 'git-state');
    expect(chain.store.open('s').question('q')?.status).toBe('open');
  });

  it.each([
    ['in the past', 1],
    ['in the far future', 1e300],
    ['below zero', -5],
    ['as text', 'soon'],
    ['as a list', [1]],
  ])(
    'that lets a question end %s breaks neither its turn nor the session',
    async (_, expiresAt) => {
      const { ann, say, finish } = await startHostileTurn();
      say({ type: 'question', questionId: 'q', text: 'Sure?', expiresAt });
      await ann.until(({ type }) => type === 'question');
      expect(await finish()).toMatchObject({ reason: 'end_turn' });
    },
  );

  it.each([
    ['__proto__ at the top', '{"type":"git-state","__proto__":{"polluted":1}}'],
    ['__proto__ as the type', '{"type":"__proto__","constructor":{"prototype":{"polluted":1}}}'],
    ['constructor as the type', '{"type":"constructor"}'],
    ['toString as the type of a part', '{"type":"message.part.toString","turnId":"t"}'],
    [
      '__proto__ as a tool’s id',
      '{"type":"message.part.tool-update","turnId":"t","callId":"__proto__","toolName":"__proto__","status":"running","args":{"__proto__":{"polluted":1}}}',
    ],
    [
      '__proto__ as the name of data',
      '{"type":"message.part.data","turnId":"t","name":"__proto__","id":"__proto__","data":{"polluted":1}}',
    ],
  ])('changes no prototype with %s, and its turn ends well', async (_, frame) => {
    const { runner, finish } = await startHostileTurn();
    runner.say(frame);
    expect(await finish()).toMatchObject({ reason: 'end_turn' });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('does not take the place of the one that is connected, without knowing its id', async () => {
    const { chain, ann, say, finish } = await startHostileTurn();
    for (const runnerId of [null, 'other', '', 'HOSTILE']) {
      const intruder = await connectRunner(chain, { runnerId });
      expect(await intruder.closed).toBe(4409);
      expect(intruder.commands.filter(({ type }) => type === 'prompt')).toEqual([]);
    }
    say({ type: 'message.part.text-delta', delta: 'still here' });
    await finish();
    expect(ann.text('t')).toBe('still here');
  });

  it('that sends what is no text and no JSON is not disconnected from its turn, and logs are few', async () => {
    const warn = vi.fn();
    const { runner, finish } = await startHostileTurn({ logger: { warn, error: warn } });
    for (let n = 0; n < 300; n++) runner.socket.send(Buffer.from([0xff, 0xfe, n]));
    for (let n = 0; n < 300; n++) runner.say({ type: `init`, n });
    for (let n = 0; n < 300; n++) runner.say({ type: n as never });
    expect(await finish()).toMatchObject({ reason: 'end_turn' });
    expect(warn.mock.calls.length).toBeLessThan(20);
  });

  it('of another session is refused by an admitRunner that checks the session', async () => {
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      admitRunner: ({ headers }, sessionId) =>
        headers.get('authorization') === `Bearer runner-of-${sessionId}`,
    });
    const theirs = { ...chain, RUNNER_TOKEN: 'runner-of-theirs' };
    await connectRunner(theirs, { sessionId: 'theirs' });
    await expect(
      Promise.race([
        connectRunner(theirs, { sessionId: 'mine' }),
        new Promise((_, reject) => setTimeout(reject, 200)),
      ]),
    ).rejects.toBeUndefined();
    expect(chain.sessions.sessionCount).toBe(1);
  });
});

describe('an attached file', () => {
  it.each([
    'file:///etc/passwd',
    'http://169.254.169.254/latest/meta-data',
    'https://example.com/x.png',
    '/etc/passwd',
    'javascript:alert(1)',
  ])('that is only an address is not given to OpenCode: %s', async (url) => {
    const fetch = vi.fn();
    const agent = createOpenCodeAgent({ url: 'http://127.0.0.1:9', fetch });
    const attachments = [{ url, mediaType: 'text/plain' }];
    const prompt = runPrompt(agent, 'Read it', { attachments });
    await expect(prompt.done).rejects.toMatchObject({ code: 'file-refused' });
    expect(fetch).not.toHaveBeenCalled();
  });

  describe.each(AI_SDK_RELEASES)('for a model of $name', (release) => {
    async function startSecretServer() {
      const seen: (string | undefined)[] = [];
      const server = createServer(({ url }, response) => {
        seen.push(url);
        response.setHeader('content-type', 'image/png').end('SECRET');
      }).listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await new Promise((resolve) => server.once('listening', resolve));
      return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret` };
    }

    it('is not fetched from the server’s own network, from a prompt or from the history', async () => {
      const { seen, url } = await startSecretServer();
      const { model, calls } = release.model([sayText('ok'), sayText('ok')]);
      const agent = aiSdkAgent({ ai: release.ai, model });
      const file = { url, mediaType: 'image/png' };
      const prompt = runPrompt(agent, 'Look', { attachments: [file] });
      await expect(prompt.done).rejects.toMatchObject({ code: 'file-refused' });
      const messages: UIMessage[] = [
        { id: 'm', role: 'user', parts: [{ type: 'file', ...file }] },
        { id: 'p', role: 'user', parts: [{ type: 'text', text: 'Look' }] },
      ];
      await runPrompt(agent, 'Look', { messages }).done;
      expect(seen).toEqual([]);
      expect(calls).toHaveLength(1);
    });
  });
});
