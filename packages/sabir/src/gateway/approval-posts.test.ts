import { describe, expect, it, vi } from 'vitest';
import { createApprovalAgent } from '../../test/approval-agent.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  isSettled,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { verifyChunks } from '../core/verify.ts';
import { type ChatGatewayOptions, memoryTurnLog } from './index.ts';

const SEVEN = { query: 'aiSdk=7' };

type Given = { approved: boolean; reason?: string };

/** What a stock client sends when its person has answered. */
function answering(message: UIMessage, answers: Record<string, Given>, more: object = {}) {
  const parts = message.parts.map((part) => {
    const { approval } = part as { approval?: { id: string } };
    const given = approval && answers[approval.id];
    return given
      ? { ...part, state: 'approval-responded', approval: { ...approval, ...given } }
      : part;
  });
  const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] };
  const messages = [user, { ...message, parts }];
  return { id: 'c1', trigger: 'submit-message', messageId: message.id, messages, ...more };
}

async function setUp(
  { steps = [['a']], question = {} }: { steps?: string[][]; question?: object } = {},
  options: Partial<ChatGatewayOptions> = {},
) {
  const agent = createApprovalAgent({ steps, question });
  const gateway = createTestGateway(agent.upstream, options);
  const carl = createUser(gateway, 'carl');
  const headers = { 'x-sabir-detach': '1' };
  const sse = openSse(await carl.post(chatBody('go'), { ...SEVEN, headers }));
  await sse.until(() => typesOf(sse.chunks()).includes('finish-step'));
  // Who may answer is let go then; others stay.
  const isLetGo = await isSettled(sse.ended);
  const chunks = sse.chunks();
  return { agent, gateway, carl, chunks, isLetGo, sse, message: foldChunks(chunks) };
}

const typesOf = (chunks: Chunk[]) => chunks.map(({ type }) => type);

describe('a stream for AI SDK 6 or 7 that comes to an approval', () => {
  it.each(['6', '7'])('ends there: %s', async (major) => {
    const { carl, chunks } = await setUp();
    const sse = openSse(await carl.resume('c1', { headers: { 'x-sabir-ai-sdk': major } }));
    await sse.ended;
    // 6 is shown the call as its own before it is asked about it.
    const again6 = major === '6' ? ['tool-input-available'] : [];
    expect(typesOf(sse.chunks())).toEqual([
      ...['start', 'start-step', 'tool-input-available', 'data-question', ...again6],
      ...['tool-approval-request', 'finish-step', 'finish'],
    ]);
    for (const told of [chunks, sse.chunks()]) {
      expect(verifyChunks(told, { aiSdk: major === '6' ? 6 : 7 })).toEqual([]);
    }
    expect(sse.frames.at(-1)?.data).toBe('[DONE]');
    // Whoever comes back with the last number is told the end again, and no more.
    const again = await readChunks(
      await carl.resumeAt(sse.frames.at(-3)?.id as string, 'c1', SEVEN),
    );
    expect(typesOf(again)).toEqual(['finish']);
  });

  it.each(['', 'aiSdk=5', 'aiSdk=8', 'wire=contract', 'wire=contract&aiSdk=7'])(
    'goes on for others: ?%s',
    async (query) => {
      const { carl } = await setUp();
      const sse = openSse(await carl.resume('c1', { query }));
      await sse.until(() => sse.raw().includes('Pay for a?'));
      expect(await isSettled(sse.ended)).toBe(false);
      expect((await carl.answer('a', true)).status).toBe(202);
      await sse.ended;
      expect(sse.raw()).toContain('Done: a true.');
    },
  );

  it('goes on where nobody is asked: a request without a question, or one that has its answer', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const sse = openSse(await carl.post(chatBody('go'), SEVEN));
    const run = await agent.run();
    const ask = (id: string): Chunk[] => [
      { type: 'tool-input-available', toolCallId: `c-${id}`, toolName: 'pay', input: {} },
      { type: 'tool-approval-request', toolCallId: `c-${id}`, approvalId: id },
    ];
    const question = (id: string, status: string): Chunk => ({
      type: 'data-question',
      id,
      data: { questionId: id, status },
    });
    run.say(...ask('bare'), { type: 'finish-step' });
    run.say(question('b', 'open'), ...ask('b'), question('b', 'withdrawn'), {
      type: 'finish-step',
    });
    run.say(question('c', 'open'), ...ask('c'));
    run.say({ type: 'tool-approval-response', approvalId: 'c', approved: true });
    run.say({ type: 'finish-step' });
    run.say(question('d', 'open'), ...ask('d'), { type: 'tool-output-denied', toolCallId: 'c-d' });
    run.say({ type: 'finish-step' });
    await sse.until(() => typesOf(sse.chunks()).filter((t) => t === 'finish-step').length === 4);
    expect(await isSettled(sse.ended)).toBe(false);
    run.end();
    await sse.ended;
  });

  it('does not end at one that was answered since', async () => {
    const { carl } = await setUp({ steps: [['a'], ['b']] });
    expect((await carl.answer('a', true)).status).toBe(202);
    const told = await readChunks(await carl.resume('c1', SEVEN));
    expect(typesOf(told).filter((type) => type === 'finish-step')).toHaveLength(2);
    expect(verifyChunks(told, { aiSdk: 7 })).toEqual([]);
  });
});

describe('a message that is sent again with its approvals', () => {
  it('is answered with what follows, and nothing of what came before', async () => {
    const { agent, carl, message } = await setUp();
    const body = answering(message, { a: { approved: true, reason: 'ok' } });
    const rest = await readChunks(await carl.post(body, SEVEN));
    expect(rest[0]).toEqual({ type: 'start', messageId: message.id });
    expect(rest[1]).toMatchObject({
      type: 'data-question',
      id: 'a',
      data: { status: 'answered', answer: { approved: true, reason: 'ok' } },
    });
    expect(rest[2]).toMatchObject({ type: 'tool-output-available', toolCallId: 'call-a' });
    const sent = body.messages[1] as UIMessage;
    expect(verifyChunks(rest, { aiSdk: 7, message: sent })).toEqual([]);
    expect(agent.heard).toEqual({ a: { approved: true, reason: 'ok' } });
  });

  it('counts once, however often it is sent; each is told the same', async () => {
    const { agent, carl, message } = await setUp({ steps: [['a'], ['b']] });
    const body = answering(message, { a: { approved: true } });
    const sent = await Promise.all([carl.post(body, SEVEN), carl.post(body, SEVEN)]);
    const told = await Promise.all(sent.map(readChunks));
    const late = await readChunks(await carl.post(body, SEVEN));
    expect([told[1], late]).toEqual([told[0], told[0]]);
    expect(typesOf(late).slice(-2)).toEqual(['finish-step', 'finish']);
    expect(agent.turns).toHaveLength(1);
    expect(agent.heard).toEqual({ a: { approved: true } });
  });

  it('goes on nowhere while another approval of the same step has no answer', async () => {
    const { agent, carl, message } = await setUp({ steps: [['a', 'b']] });
    const first = await readChunks(
      await carl.post(answering(message, { a: { approved: true } }), SEVEN),
    );
    expect(typesOf(first)).toEqual(['start', 'finish']);
    const both = answering(message, { a: { approved: true }, b: { approved: false } });
    expect((await readChunks(await carl.post(both, SEVEN))).length).toBeGreaterThan(5);
    expect(agent.heard).toEqual({ a: { approved: true }, b: { approved: false } });
  });

  it('is told the rest of a turn that has ended', async () => {
    const { carl, message } = await setUp();
    const body = answering(message, { a: { approved: true } });
    const rest = await readChunks(await carl.post(body, SEVEN));
    expect(await readChunks(await carl.post(body, SEVEN))).toEqual(rest);
  });

  it('can be sent by a client that does not say what it is', async () => {
    const { carl, message } = await setUp({ steps: [['a'], ['b']] });
    const sse = openSse(await carl.post(answering(message, { a: { approved: true } })));
    await sse.until(() => sse.raw().includes('Pay for b?'));
    expect((await carl.answer('b', true)).status).toBe(202);
    await sse.ended;
    expect(sse.text()).toBe('Done: a true, b true.');
  });

  it.each<[string, (body: ReturnType<typeof answering>, message: UIMessage) => object]>([
    [
      'an approval nobody asked for',
      (_, message) => {
        const approval = { id: 'x', approved: true };
        const part = { type: 'tool-pay', toolCallId: 'x', state: 'approval-responded', approval };
        return { ...answering({ ...message, parts: [part] as never }, {}) };
      },
    ],
    [
      'another message',
      (_, message) => answering({ ...message, id: 'other' }, { a: { approved: true } }),
    ],
    ['another chat', (body) => ({ ...body, id: 'c2' })],
    ['no answer', (_, message) => answering(message, {})],
    [
      'an answer that is none',
      (_, message) => answering(message, { a: { approved: 'yes' as never } }),
    ],
  ])('is only acknowledged where nothing is known of it: %s', async (_, change) => {
    const { agent, carl, message } = await setUp();
    const body = change(answering(message, { a: { approved: true } }), message);
    const told = await readChunks(await carl.post(body, SEVEN));
    expect(typesOf(told).filter((type) => type !== 'tool-output-error')).toEqual([
      ...['start', 'start-step', 'finish-step', 'message-metadata', 'finish'],
    ]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(agent.heard).toEqual({});
  });

  it('is only acknowledged on the wire of the contract', async () => {
    const { agent, carl, message } = await setUp();
    const body = answering(message, { a: { approved: true } });
    const sse = openSse(await carl.post(body, { query: 'wire=contract' }));
    await sse.ended;
    expect(sse.frames.map(({ event }) => event)).toEqual(['meta', 'done']);
    expect(agent.heard).toEqual({});
  });
});

describe('an answer that comes too late, before anybody has looked at the clock', () => {
  // The clock is looked at once a second.
  const late = async () => {
    const log = memoryTurnLog();
    const command = vi.spyOn(log, 'command');
    const begun = await setUp({ question: { expiresAt: Date.now() + 100 } }, { log });
    await new Promise((resolve) => setTimeout(resolve, 120));
    return { ...begun, command };
  };

  it('is 410 at once, also for a turn that has not noticed', async () => {
    const { agent, carl, command } = await late();
    const askedAt = Date.now();
    expect(await refusal(await carl.answer('a', true))).toMatchObject({
      status: 410,
      code: 'question-expired',
    });
    expect(Date.now() - askedAt).toBeLessThan(500);
    expect(agent.heard).toEqual({});
    expect(command).not.toHaveBeenCalled();
  });

  it('is not handed over of a message: its client sees that it has expired', async () => {
    const { agent, carl, message, command } = await late();
    const body = answering(message, { a: { approved: true } });
    const told = await readChunks(await carl.post(body, SEVEN));
    expect(told.find(({ type }) => type === 'data-question')).toMatchObject({
      data: { status: 'expired' },
    });
    expect(agent.heard).toEqual({});
    expect(command).not.toHaveBeenCalled();
  });
});

describe('a question that says who may answer', () => {
  it.each<[unknown, string[]]>([
    [undefined, ['carl', 'cora', 'olga']],
    [{}, ['carl', 'cora', 'olga']],
    [{ role: 'collaborator' }, ['carl', 'cora', 'olga']],
    [{ role: 'owner' }, ['olga']],
    [{ userId: 'cora' }, ['cora']],
    [{ role: 'owner', userId: 'olga' }, ['olga']],
    [{ role: 'owner', userId: 'carl' }, []],
    // What cannot be understood is the owner's.
    ...[
      null,
      7,
      'olga',
      [],
      { role: 'viewer' },
      { role: 7 },
      { userId: '' },
      { userId: 7 },
      { user: 'carl' },
    ].map((answerBy): [unknown, string[]] => [answerBy, ['olga']]),
  ])('%j', async (answerBy, may) => {
    const question = answerBy === undefined ? {} : { answerBy };
    const names = ['carl', 'cora', 'olga'];
    for (const [name, isPosted] of names.flatMap(
      (n) =>
        [
          [n, true],
          [n, false],
        ] as const,
    )) {
      const { agent, gateway, carl, message } = await setUp({ question });
      const user = createUser(gateway, name);
      const body = answering(message, { a: { approved: true } });
      const response = isPosted ? await user.post(body, SEVEN) : await user.answer('a', true);
      if (may.includes(name)) {
        expect(response.status).toBe(isPosted ? 200 : 202);
        await eventually(() => agent.heard.a, 'the answer');
      } else {
        expect(await refusal(response)).toMatchObject({ status: 403, code: 'may-not-answer' });
        expect(agent.heard).toEqual({});
        expect((await carl.resume()).status).toBe(200);
      }
    }
  });

  it('lets go only who may answer it: the others see what comes of it', async () => {
    const { gateway, sse, isLetGo } = await setUp({ question: { answerBy: { role: 'owner' } } });
    expect(isLetGo).toBe(false);
    const watching = openSse(await createUser(gateway, 'vera').resume('c1', SEVEN));
    const olga = createUser(gateway, 'olga');
    await readChunks(await olga.resume('c1', SEVEN));
    expect((await olga.answer('a', true)).status).toBe(202);
    await Promise.all([sse.ended, watching.ended]);
    expect([sse.text(), watching.text()]).toEqual(['Done: a true.', 'Done: a true.']);
  });

  it('is not there for whoever may only watch: 404', async () => {
    const { gateway, message } = await setUp({ question: { answerBy: {} } });
    const vera = createUser(gateway, 'vera');
    const body = answering(message, { a: { approved: true } });
    expect((await vera.post(body, SEVEN)).status).toBe(404);
    expect((await vera.answer('a', true)).status).toBe(404);
  });

  it('keeps all answers of a message from counting if one is for somebody else', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const posted = carl.post(chatBody('go'), SEVEN);
    const run = await agent.run();
    const heard: unknown[] = [];
    for (const [id, more] of Object.entries({ a: {}, b: { answerBy: { role: 'owner' } } })) {
      run.say(
        { type: 'tool-input-available', toolCallId: id, toolName: 'pay', input: {} },
        { type: 'data-question', id, data: { questionId: id, status: 'open', ...more } },
        { type: 'tool-approval-request', toolCallId: id, approvalId: id },
      );
      void run.turn.answer(id).then(
        (answer) => heard.push(answer),
        () => undefined,
      );
    }
    run.say({ type: 'finish-step' });
    const message = foldChunks(await readChunks(await posted));
    const body = answering(message, { a: { approved: true }, b: { approved: true } });
    expect((await carl.post(body, SEVEN)).status).toBe(403);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(heard).toEqual([]);
    expect((await carl.answer('a', { approved: true })).status).toBe(202);
  });

  it('says so also on a route of the contract', async () => {
    const agent = createApprovalAgent({
      steps: [['a']],
      question: { answerBy: { userId: 'olga' } },
    });
    const gateway = createTestGateway(agent.upstream);
    const carl = createUser(gateway, 'carl');
    const olga = createUser(gateway, 'olga');
    const messages = [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }];
    const sse = openSse(await carl.send('POST', '/api/chat', {}, { messages, sessionId: 's1' }));
    await sse.until(() => sse.raw().includes('Pay for a?'));
    const answer = { questionId: 'a', answer: true };
    const path = '/api/chat/s1/answer';
    expect(await refusal(await carl.send('POST', path, {}, answer))).toMatchObject({
      status: 403,
      code: 'may-not-answer',
    });
    expect((await olga.send('POST', path, {}, answer)).status).toBe(202);
    await sse.ended;
  });
});
