import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  isSettled,
  openSse,
  refusal,
} from '../../test/gateway-client.ts';
import { foldChunks } from '../core/fold.ts';
import { asUpstream, type ChatGatewayOptions, memoryTurnLog, type TurnLog } from './index.ts';

type Question = { expiresAt?: number; status?: string };

/** An agent that asks `q1`, and says what it was answered. */
async function ask(question: Question = {}, options: Partial<ChatGatewayOptions> = {}) {
  const heard: unknown[] = [];
  const upstream = asUpstream(async function* ({ answer }) {
    const data = { questionId: 'q1', text: 'Really?', options: ['yes', 'no'], status: 'open' };
    yield { type: 'data-question', id: 'q1', data: { ...data, ...question } };
    const said = await answer('q1').catch((error) => error.code);
    heard.push(said);
    yield { type: 'text-start', id: 't' };
    yield { type: 'text-delta', id: 't', delta: `So: ${JSON.stringify(said)}` };
  });
  const gateway = createTestGateway(upstream, options);
  const carl = createUser(gateway, 'carl');
  const sse = openSse(await carl.post(chatBody('go')));
  await sse.until(() => sse.raw().includes('Really?'));
  return { gateway, carl, sse, heard };
}

const questionsIn = (sse: ReturnType<typeof openSse>) =>
  sse.chunks().flatMap((chunk) => (chunk.type === 'data-question' ? [chunk.data] : []));

describe('a question', () => {
  it('is a data part; its answer reaches the agent, and every viewer', async () => {
    const { gateway, carl, sse, heard } = await ask();
    const vera = openSse(await createUser(gateway, 'vera').resume());
    const response = await carl.answer('q1', 'yes');
    expect([response.status, await response.json()]).toEqual([202, { questionId: 'q1' }]);
    await Promise.all([sse.ended, vera.ended]);
    expect(heard).toEqual(['yes']);
    const asked = { questionId: 'q1', text: 'Really?', options: ['yes', 'no'] };
    for (const viewer of [sse, vera]) {
      expect(questionsIn(viewer)).toEqual([
        { ...asked, status: 'open' },
        { ...asked, status: 'answered', answer: 'yes' },
      ]);
      expect(viewer.text()).toBe('So: "yes"');
    }
    // A part, not two: the second takes the place of the first.
    expect(foldChunks(sse.chunks()).parts).toMatchObject([
      { type: 'data-question', id: 'q1', data: { status: 'answered' } },
      { type: 'text' },
    ]);
  });

  it.each([[['a', 'b']], [{ choice: 2 }], [0], [false], [null], ['']])(
    'can be answered with %j',
    async (answer) => {
      const { carl, sse, heard } = await ask();
      expect((await carl.answer('q1', answer)).status).toBe(202);
      await sse.ended;
      expect(heard).toEqual([answer]);
    },
  );

  it('is still there after a reload, open or answered', async () => {
    const { carl, sse } = await ask();
    await sse.leave();
    const second = openSse(await carl.resume());
    await second.until(() => second.raw().includes('Really?'));
    expect(questionsIn(second)).toMatchObject([{ status: 'open' }]);
    expect((await carl.answer('q1', 'no')).status).toBe(202);
    await second.ended;
    expect(questionsIn(second).at(-1)).toMatchObject({ status: 'answered', answer: 'no' });
  });

  it('need not say that it is open, nor its id twice', async () => {
    const upstream = asUpstream(async function* ({ answer }) {
      yield { type: 'data-question', id: 'q1', data: { text: 'Really?' } };
      yield { type: 'text-start', id: String(await answer('q1')) };
    });
    const gateway = createTestGateway(upstream, { timing: { idleMs: 40 } });
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => sse.raw().includes('Really?'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
    await sse.ended;
    expect(questionsIn(sse).at(-1)).toEqual({ text: 'Really?', status: 'answered', answer: 'yes' });
    expect(sse.chunks()).toContainEqual({ type: 'text-start', id: 'yes' });
    expect((await carl.answer('q1', 'no')).status).toBe(409);
  });

  it('is answered by whoever is first; the others learn with what', async () => {
    const { gateway, sse, heard } = await ask();
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const response = await createUser(gateway, i % 2 ? 'carl' : 'cora').answer(
          'q1',
          `no. ${i}`,
        );
        return { status: response.status, body: await response.json() };
      }),
    );
    await sse.ended;
    expect(heard).toHaveLength(1);
    const won = answers.filter(({ status }) => status === 202);
    const lost = answers.filter(({ status }) => status === 409);
    expect([won.length, lost.length]).toEqual([1, 19]);
    for (const { body } of lost) {
      expect(body).toMatchObject({
        code: 'question-answered',
        message: expect.any(String),
        remedy: expect.any(String),
        answer: heard[0],
      });
    }
    expect(answers[Number((heard[0] as string).slice(4))]?.status).toBe(202);
  });

  it('that was answered says so also after the turn has ended: 409', async () => {
    const { carl, sse } = await ask();
    await carl.answer('q1', 'yes');
    await sse.ended;
    const response = await carl.answer('q1', 'no');
    expect([response.status, await response.json()]).toEqual([
      409,
      expect.objectContaining({ code: 'question-answered', answer: 'yes' }),
    ]);
  });

  it('that nobody asked is not there: 404', async () => {
    const { carl } = await ask();
    for (const response of [
      await carl.answer('q2', 'yes'),
      await carl.answer('q1', 'yes', 'another chat'),
      await carl.answer('__proto__', 'yes'),
    ]) {
      expect(await refusal(response)).toMatchObject({ status: 404, code: 'not-found' });
    }
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
  });

  it('can be answered while another prompt waits behind it', async () => {
    const { carl, sse, heard } = await ask();
    const silent = openSse(await carl.post(chatBody('and then?')));
    const before = performance.now();
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
    expect((await carl.answer('q2', 'yes')).status).toBe(404);
    expect(performance.now() - before).toBeLessThan(1_000);
    await sse.ended;
    expect(heard).toEqual(['yes']);
    await silent.leave();
  });

  it('expires, says so in the stream, and takes no answer any more: 410', async () => {
    const timing = { idleMs: 40, disconnectGraceMs: 60_000 };
    const { carl, sse, heard } = await ask({ expiresAt: Date.now() + 60 }, { timing });
    await sse.ended;
    expect(questionsIn(sse).map((data) => (data as Question).status)).toEqual(['open', 'expired']);
    expect(heard).toEqual(['question-expired']);
    expect(await refusal(await carl.answer('q1', 'yes'))).toMatchObject({
      status: 410,
      code: 'question-expired',
    });
  });

  it('that was open when its turn was stopped takes no answer any more: 410', async () => {
    const { carl, sse } = await ask();
    expect((await carl.stop()).status).toBe(202);
    await sse.ended;
    expect((await carl.answer('q1', 'yes')).status).toBe(410);
  });

  it('keeps the idle limit from running for as long as it is open', async () => {
    const { carl, sse } = await ask({}, { timing: { idleMs: 40 } });
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await isSettled(sse.ended)).toBe(false);
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
    await sse.ended;
    expect(sse.text()).toBe('So: "yes"');
  });

  it('does not keep it from running afterwards', async () => {
    const upstream = asUpstream(async function* ({ answer }) {
      yield { type: 'data-question', id: 'q', data: { questionId: 'q', status: 'open' } };
      await answer('q');
      await new Promise(() => undefined);
    });
    const carl = createUser(createTestGateway(upstream, { timing: { idleMs: 40 } }), 'carl');
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => questionsIn(sse)[0]);
    expect((await carl.answer('q', 1)).status).toBe(202);
    await sse.ended;
    expect(sse.chunks().map(({ type }) => type)).toContain('error');
  });

  it('that the agent takes back is no longer open', async () => {
    const upstream = asUpstream(async function* () {
      for (const status of ['open', 'withdrawn']) {
        yield { type: 'data-question', id: 'q', data: { questionId: 'q', status } };
      }
      await new Promise(() => undefined);
    });
    const carl = createUser(createTestGateway(upstream, { timing: { idleMs: 60 } }), 'carl');
    const sse = openSse(await carl.post(chatBody('go')));
    await sse.until(() => questionsIn(sse)[1]);
    expect((await carl.answer('q', 1)).status).toBe(410);
    await sse.ended;
    expect(sse.chunks().map(({ type }) => type)).toContain('error');
  });

  it.each([
    ['{', 'The body is not JSON.'],
    ['null', 'questionId is not a string. Send { questionId, answer }.'],
    ['7', 'questionId is not a string. Send { questionId, answer }.'],
    [{}, 'questionId is not a string. Send { questionId, answer }.'],
    [{ questionId: 7, answer: 1 }, 'questionId is not a string. Send { questionId, answer }.'],
    [{ questionId: '', answer: 1 }, 'questionId is not a string. Send { questionId, answer }.'],
    [{ questionId: 'q1' }, 'There is no answer. Send { questionId, answer }.'],
  ])('cannot be answered with the body %j: 400', async (body, message) => {
    const { carl } = await ask();
    expect(await refusal(await carl.answerWith(body))).toMatchObject({
      status: 400,
      code: 'bad-request',
      message,
    });
  });

  it('cannot be answered with more than a body may hold: 413', async () => {
    const { carl } = await ask({}, { limits: { bodyBytes: 1_000 } });
    expect((await carl.answer('q1', 'x'.repeat(1_000))).status).toBe(413);
    expect((await carl.answer('q1', 'x'.repeat(900))).status).toBe(202);
  });

  it('cannot be answered with what nests without end: 400', async () => {
    const { carl } = await ask();
    const deep = '['.repeat(100_000) + ']'.repeat(100_000);
    const body = `{"questionId": "q1", "answer": ${deep}}`;
    expect((await carl.answerWith(body)).status).toBe(400);
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
  });
});

describe('an answer that the log does not take', () => {
  const withCommand = (command: (inner: TurnLog, ...given: Given) => Promise<boolean>) => {
    const log = memoryTurnLog();
    return { log: { ...log, command: (...given: Given) => command(log, ...given) } };
  };
  type Given = Parameters<TurnLog['command']>;

  it('leaves the question to the next one', async () => {
    let isBroken = true;
    const options = withCommand(async (log, ...given) => {
      if (!isBroken) return log.command(...given);
      isBroken = false;
      throw new Error('the store is away');
    });
    const { carl, sse, heard } = await ask({}, options);
    expect(await refusal(await carl.answer('q1', 'yes'))).toMatchObject({
      status: 503,
      code: 'log-failed',
    });
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
    await sse.ended;
    expect(heard).toEqual(['yes']);
  });

  it('is never taken for one that came too late while nobody can know: 503, then 409', async () => {
    const taken = Promise.withResolvers<void>();
    let answers = 0;
    const options = withCommand(async (log, ...given) => {
      if (++answers > 1) return false;
      await taken.promise;
      return log.command(...given);
    });
    const { gateway, carl, sse } = await ask({}, options);
    const first = carl.answer('q1', 'yes');
    const cora = createUser(gateway, 'cora');
    expect(await refusal(await cora.answer('q1', 'no'))).toMatchObject({
      status: 503,
      code: 'log-failed',
      message: 'Another answer to this question is on its way. Ask again.',
    });
    taken.resolve();
    expect((await first).status).toBe(202);
    await sse.ended;
    const again = await cora.answer('q1', 'no');
    expect([again.status, await again.json()]).toEqual([
      409,
      expect.objectContaining({ answer: 'yes' }),
    ]);
  });
});
