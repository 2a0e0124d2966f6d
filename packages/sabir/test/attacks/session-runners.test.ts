/** Attacks by a runner that was admitted, and by the agent behind it. The frames of its turns: session-runner-frames.test.ts */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { UIMessage } from '../../src/core/message.ts';
import { V2_TYPES } from '../../src/sources/agent-ops/event-shapes.ts';
import { aiSdkAgent } from '../../src/sources/ai-sdk/agent.ts';
import { createOpenCodeAgent } from '../../src/sources/opencode/agent.ts';
import { SESSION_TYPES } from '../../src/wires/agent-ops/protocol.ts';
import { AI_SDK_RELEASES, say as sayText } from '../ai-sdk-models.ts';
import { connectRunner, type HostileTurn, startHostileTurn } from '../hostile-runner.ts';
import { runPrompt } from '../run-prompt.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { joinSession, startSessionChain } from '../session-chain.ts';

const DIALECTS = [
  ['of ours', 'hostile'],
  ['that is deployed', null],
] as const;
/** More events with which a deployed runner writes its turn. */
const OF_TURN = new Set(['agentStatus', 'error', 'question']);
/** Says what each of the session's events could lie about. */
const forgedEvent = (type: string) => ({
  ...{ type, turnId: 't', content: 'forged', delta: 'forged', status: 'forged', error: 'forged' },
  data: { role: 'owner', forged: true, id: 'forged', content: 'forged' },
  prompt: { id: 'forged', text: 'forged' },
  ...{ connectedUsers: [{ id: 'forged' }], questionId: 'forged', promptId: 'forged' },
});
const text = (delta: string) => ({ type: 'text-delta', id: 'text', delta });
const question = (questionId: string, more: object = {}) => ({
  type: 'data-question',
  id: questionId,
  data: { questionId, text: 'Refund?', ...more },
});
const statusOf = async ({ chain, turnId }: HostileTurn, questionId: string) => {
  const { questions = [] } = (await chain.store.log.get(turnId ?? '')) ?? {};
  return questions.find((asked) => asked.questionId === questionId)?.status;
};

describe('a runner', () => {
  it.each([
    ['with a turn of another session', { turnId: 'other' }],
    ['with the turn’s id as a list', { turnId: ['t'] }],
    ['with the turn’s id as an object', { turnId: { toString: 't' } }],
  ])('that is deployed cannot write into a turn %s', async (_, about) => {
    const { chain, ann, say, finish } = await startHostileTurn({ runnerId: null });
    const bob = await joinSession(chain, { user: 'bob', sessionId: 'other' });
    say({ type: 'message.part.text-delta', delta: 'forged', ...about });
    await finish();
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(bob.of('message.part.text-delta')).toEqual([]);
  });

  it.each([...SESSION_TYPES])('cannot forge the session’s own event %s', async (type) => {
    const { ann, runner, finish } = await startHostileTurn();
    await ann.until((event) => event.type === 'agentStatus');
    const before = ann.of(type).length;
    runner.send({ type: 'event', event: forgedEvent(type) });
    runner.send(forgedEvent(type));
    await runner.settled();
    expect(ann.of(type)).toHaveLength(before);
    await finish();
    expect(JSON.stringify(ann.events)).not.toContain('forged');
  });

  it.each([...SESSION_TYPES].filter((type) => !V2_TYPES.has(type) && !OF_TURN.has(type)))(
    'that is deployed cannot forge the session’s own event %s',
    async (type) => {
      const { ann, runner, finish } = await startHostileTurn({ runnerId: null });
      await ann.until((event) => event.type === 'agentStatus');
      const before = ann.of(type).length;
      runner.send(forgedEvent(type));
      await runner.settled();
      expect(ann.of(type)).toHaveLength(before);
      await finish();
      expect(JSON.stringify(ann.events)).not.toContain('forged');
    },
  );

  it('sends its own events to all clients of its session, and to no other', async () => {
    const { chain, ann, runner } = await startHostileTurn();
    const bob = await joinSession(chain, { user: 'bob' });
    const elsewhere = await joinSession(chain, { user: 'bob', sessionId: 'other' });
    runner.send({ type: 'event', event: { type: 'diff', files: 3 } });
    for (const client of [ann, bob]) {
      expect(await client.until(({ type }) => type === 'diff')).toEqual({ type: 'diff', files: 3 });
    }
    expect(elsewhere.of('diff')).toEqual([]);
  });

  it('cannot ask or settle a question beside the session’s own', async () => {
    const { ann, runner, say, finish } = await startHostileTurn({ runnerId: null });
    const answerBy = { role: 'owner' };
    say({ type: 'question', questionId: 'q', text: 'Refund?', answerBy });
    await ann.until((event) => event.type === 'question');
    for (const type of [
      'interactive_prompt',
      'interactive_prompt_resolved',
      'interactive_prompt_expired',
    ]) {
      runner.send({ type, promptId: 'q', prompt: { id: 'forged', text: 'Refund?' }, answer: true });
    }
    await finish();
    expect(ann.events.filter(({ type }) => type.startsWith('interactive'))).toEqual([]);
  });

  it.each(DIALECTS)(
    '%s cannot answer its own question with the words of people',
    async (_, runnerId) => {
      const turn = await startHostileTurn({ runnerId });
      const { chain, ann, say, runner } = turn;
      say(
        runnerId === null ? { type: 'question', questionId: 'q', text: 'Refund?' } : question('q'),
      );
      await ann.until(({ type }) => type === 'question');
      runner.send({ type: 'answer', turnId: turn.turnId, questionId: 'q', answer: true });
      runner.send({ type: 'expire', turnId: turn.turnId, questionId: 'q' });
      runner.send({ type: 'status', data: { questionAnswered: 'q', answer: true } });
      await runner.settled();
      const bob = await joinSession(chain, { user: 'bob' });
      expect(bob.events[0]).toMatchObject({ data: { questions: [{ questionId: 'q' }] } });
      if (runnerId !== null) expect(await statusOf(turn, 'q')).toBe('open');
    },
  );

  it.each([
    ['no list of turns', '{"type":"hello","turnId":null}'],
    ['numbers as turns', '{"type":"hello","turnId":null,"known":[1]}'],
    ['a list as its turn', '{"type":"hello","turnId":["x"],"known":[]}'],
    ['a frame in V2', '{"type":"message.part.text-delta","turnId":"t","delta":"forged"}'],
    ['chunks that are no list', '{"type":"chunks","turnId":"TURN","seq":2,"chunks":{"length":1}}'],
    ['an event without a type', '{"type":"event","event":{"data":"forged"}}'],
    ['an event that is no object', '{"type":"event","event":"forged"}'],
  ])('that sends %s is not believed, and its turn ends well', async (_, frame) => {
    const { ann, runner, turnId = '', finish } = await startHostileTurn();
    runner.send(frame.replace('TURN', turnId));
    expect(await finish()).toMatchObject({ reason: 'end_turn' });
    expect(JSON.stringify(ann.events)).not.toContain('forged');
    expect(runner.of('prompt')).toHaveLength(1);
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
      for (const runnerId of ['hostile', null]) {
        const { ann, say, finish } = await startHostileTurn({ runnerId });
        say(
          runnerId === null
            ? { type: 'question', questionId: 'q', text: 'Sure?', expiresAt }
            : question('q', { expiresAt }),
        );
        await ann.until(({ type }) => type === 'question');
        expect(await finish()).toMatchObject({ reason: 'end_turn' });
      }
    },
  );

  it.each([
    ['__proto__ at the top', { type: 'text-delta', id: '__proto__', delta: 'x' }],
    ['__proto__ as the type', { type: '__proto__', constructor: { prototype: { polluted: 1 } } }],
    ['constructor as the type', { type: 'constructor' }],
    ['toString as the type of data', { type: 'data-toString', id: 'toString', data: 1 }],
    [
      '__proto__ as a tool’s id',
      '{"type":"tool-input-available","toolCallId":"__proto__","toolName":"__proto__","input":{"__proto__":{"polluted":1}}}',
    ],
    [
      '__proto__ as the name of data',
      '{"type":"data-__proto__","id":"__proto__","data":{"__proto__":{"polluted":1}}}',
    ],
    [
      '__proto__ in metadata',
      '{"type":"message-metadata","messageMetadata":{"__proto__":{"polluted":1}}}',
    ],
  ])('changes no prototype with %s, and its turn ends well', async (_, chunk) => {
    const { ann, runner, turnId } = await startHostileTurn();
    const written = typeof chunk === 'string' ? chunk : JSON.stringify(chunk);
    runner.send(`{"type":"event","event":{"type":"diff","__proto__":{"polluted":1}}}`);
    runner.send(
      `{"type":"chunks","turnId":"${turnId}","seq":2,"chunks":[${written}],"__proto__":{"polluted":1}}`,
    );
    runner.chunks(turnId, 3, [{ type: 'finish' }]);
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      reason: 'end_turn',
    });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('does not take the place of the one that is connected, without knowing its id', async () => {
    const { chain, ann, say, finish } = await startHostileTurn();
    for (const runnerId of [null, 'other', '', 'HOSTILE']) {
      const intruder = await connectRunner(chain, { runnerId });
      expect(await intruder.closed).toBe(4409);
      expect(intruder.of('prompt')).toEqual([]);
    }
    say(text('still here'));
    await finish();
    expect(ann.text('t')).toBe('still here');
  });

  it('that sends what is no text and no JSON is not disconnected from its turn, and logs are few', async () => {
    const warn = vi.fn();
    const { runner, finish } = await startHostileTurn({ logger: { warn, error: warn } });
    for (let n = 0; n < 300; n++) runner.socket.send(Buffer.from([0xff, 0xfe, n]));
    for (let n = 0; n < 300; n++) runner.send({ type: `init`, n });
    for (let n = 0; n < 300; n++) runner.send({ type: `type-${n}` });
    for (let n = 0; n < 300; n++) runner.send({ type: n as never });
    expect(await finish()).toMatchObject({ reason: 'end_turn' });
    // One line for each of the first hundred types.
    expect(warn.mock.calls.length).toBeLessThan(110);
  });

  it('that nests deeper than anything means is skipped, and its turn goes on', async () => {
    const { ann, runner, turnId, say, finish } = await startHostileTurn();
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    runner.send(`{"type":"event","event":{"type":"diff","deep":${deep}}}`);
    runner.send(
      `{"type":"chunks","turnId":"${turnId}","seq":2,"chunks":[{"type":"data-x","data":${deep}}]}`,
    );
    say(text('still here'));
    await finish();
    expect(ann.of('diff')).toEqual([]);
    expect(ann.text('t')).toBe('still here');
  });

  it('that does not read what it is sent holds up no person, and is disconnected', async () => {
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      onRunnerWanted: () => undefined,
      timing: { pingMs: 1_000, runnerGraceMs: 50 },
    });
    const runner = await connectRunner(chain);
    runner.socket.pause();
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    const began = performance.now();
    ann.send({ type: 'prompt', content: 'x'.repeat(9_000_000), promptId: 'p', turnId: 't' });
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      code: 'runner-lost',
    });
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('that sends frames and does not read their confirmations is disconnected', async () => {
    const limits = { runnerFrameBytes: 200_000 };
    const { ann, runner } = await startHostileTurn({ limits });
    runner.socket.pause();
    // The confirmation of a frame names its turn.
    const turnId = 'x'.repeat(100_000);
    const flood = setInterval(() => runner.chunks(turnId, 1, []), 1);
    onTestFinished(() => clearInterval(flood));
    await ann.until(
      ({ type, data }) => type === 'status' && Object(data).runnerConnected === false,
    );
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
    expect(chain.sessions.sessions.size).toBe(1);
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
