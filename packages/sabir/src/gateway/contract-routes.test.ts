import { describe, expect, it } from 'vitest';
import {
  CHAT_ID,
  contractBody,
  createContractUser,
  openEvents,
  type ReadEvent,
  readEvents,
  startContractTurn as startTurn,
  talker,
} from '../../test/contract-client.ts';
import { createAgent, createTestGateway, echo, eventually } from '../../test/gateway-client.ts';
import { isContractEvent } from '../wires/contract/events.ts';
import { asUpstream, memoryTurnLog } from './index.ts';

const withoutIds = (events: ReadEvent[]) => events.map(({ type, data }) => ({ type, data }));
const cursorsOf = (events: ReadEvent[]) => events.map(({ id }) => id);

describe('a message on a route of the contract', () => {
  it('is answered with the contract’s events, in their order', async () => {
    const gateway = createTestGateway(talker);
    const response = await createContractUser(gateway, 'carl').post(contractBody('hi'));
    expect(response.status).toBe(200);
    const turnId = response.headers.get('x-sabir-turn') ?? '';
    const events = await readEvents(response);
    expect(events.map(({ type }) => type)).toEqual([
      ...['meta', 'message.start', 'step'],
      ...['message.delta', 'message.delta', 'text.end'],
      ...['tool.call', 'tool.result', 'source', 'step', 'step'],
      ...['message.delta', 'text.end', 'step', 'message.end', 'done'],
    ]);
    for (const event of events) expect(event).toSatisfy(isContractEvent);
    const [meta, start] = events as [ReadEvent, ReadEvent];
    const createdAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(meta.data).toEqual({
      requestId: expect.any(String),
      runId: turnId,
      sessionId: CHAT_ID,
      conversationId: CHAT_ID,
      endpoint: '/api/chat',
      createdAt,
    });
    expect(start.data).toEqual({
      messageId: expect.any(String),
      role: 'assistant',
      createdAt: Object(meta.data).createdAt,
    });
    expect(events.at(-1)?.data).toMatchObject({ runId: turnId, finishReason: 'stop' });
  });

  it('is named by its cursor on the last event of each chunk, and ends without [DONE]', async () => {
    const gateway = createTestGateway(talker);
    const reader = openEvents(
      await createContractUser(gateway, 'carl').post(contractBody('hi'), {}),
    );
    await reader.ended;
    const cursors = cursorsOf(reader.events());
    const seqs = cursors.map((id) => (id === undefined ? undefined : Number(id.split(':')[1])));
    // `meta` comes with `message.start`, `message.end` with `done`; 3 and 12 open a text, silently.
    expect(seqs).toEqual([undefined, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, undefined, 16]);
    expect(reader.raw()).not.toContain('[DONE]');
  });

  it('[CT-SSE] comes with the headers of a stream, and none of the AI SDK’s', async () => {
    const gateway = createTestGateway(echo, { cors: { origins: ['https://app.test'] } });
    const response = await createContractUser(gateway, 'carl').post(contractBody('hi'), {
      headers: { origin: 'https://app.test' },
    });
    const { headers } = response;
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-cache, no-transform');
    expect(headers.get('x-accel-buffering')).toBe('no');
    expect(headers.has('x-vercel-ai-ui-message-stream')).toBe(false);
    expect(headers.get('access-control-allow-origin')).toBe('https://app.test');
    expect(headers.get('access-control-expose-headers')).toContain('x-sabir-turn');
    await response.body?.cancel();
  });

  it('can be in the older form, with its text as content', async () => {
    const gateway = createTestGateway(echo);
    const carl = createContractUser(gateway, 'carl');
    const reader = openEvents(await carl.post({ messages: [{ role: 'user', content: 'hello' }] }));
    await reader.ended;
    expect(reader.said()).toBe('You said hello');
  });

  it('sent twice prompts once; a regenerate prompts anew', async () => {
    const { agent, carl, first, run } = await startTurn();
    const second = openEvents(await carl.post(contractBody('hi')));
    run.text('one');
    run.end();
    await Promise.all([first.ended, second.ended]);
    expect(second.events()).toEqual(first.events());
    expect((await readEvents(await carl.post(contractBody('hi')))).at(-1)?.type).toBe('done');
    expect(agent.runs).toHaveLength(1);
    const messageId = 'm-before';
    const again = { trigger: 'regenerate-message', messageId };
    const third = openEvents(await carl.post(contractBody('hi', again)));
    (await agent.run(1)).end();
    await third.ended;
    expect(agent.runs).toHaveLength(2);
    expect(third.events()[0]?.data).not.toEqual(first.events()[0]?.data);
  });

  it('that only reports on a tool is acknowledged, and changes no message', async () => {
    const agent = createAgent();
    const carl = createContractUser(createTestGateway(agent.upstream), 'carl');
    const messages = [{ id: 'm1', role: 'assistant', parts: [{ type: 'text', text: 'Hi' }] }];
    const response = await carl.post({ messages, sessionId: CHAT_ID });
    expect(response.status).toBe(200);
    expect(await readEvents(response)).toEqual([
      {
        type: 'meta',
        data: { sessionId: CHAT_ID, conversationId: CHAT_ID, endpoint: '/api/chat' },
      },
      { type: 'done', data: { finishReason: 'stop' } },
    ]);
    expect(agent.runs).toHaveLength(0);
  });

  it('whose agent fails ends with a terminal error that says what and whether to try again', async () => {
    const { carl, first, run } = await startTurn();
    run.delta('Well');
    run.fail(new Error('The model is overloaded'));
    await first.ended;
    const last = first.events().at(-1);
    expect(last).toMatchObject({
      type: 'error',
      data: { message: 'The model is overloaded', retryable: true, terminal: true },
    });
    expect(first.types()).not.toContain('done');
    // There is a chunk behind the error, but nothing to tell.
    expect((await carl.resumeAt(last?.id ?? '')).status).toBe(204);
  });
});

describe('a resume on a route of the contract', () => {
  it('after any cut gives exactly what is missing', async () => {
    const gateway = createTestGateway(talker);
    const carl = createContractUser(gateway, 'carl');
    const whole = await readEvents(await carl.post(contractBody('hi')));
    const cuts = whole.flatMap(({ id }, at) => (id === undefined ? [] : [{ id, at }]));
    expect(cuts.length).toBeGreaterThan(10);
    for (const { id, at } of cuts) {
      const response = await carl.resumeAt(id);
      const rest = whole.slice(at + 1);
      expect(response.status).toBe(rest.length > 0 ? 200 : 204);
      // Deltas that follow each other come as one.
      const got = await readEvents(response);
      expect(got.at(-1)).toEqual(rest.at(-1));
      expect(got.map(said).join('')).toBe(rest.map(said).join(''));
      expect(got.filter(isNoDelta)).toEqual(rest.filter(isNoDelta));
    }
  });

  it('without a cursor gives the running turn whole, its deltas merged, and goes on', async () => {
    const { carl, first, run } = await startTurn();
    for (const word of ['a ', 'b ', 'c ']) run.delta(word);
    await first.until(() => first.said() === 'a b c ');
    const second = openEvents(await carl.resume());
    await second.until(() => second.said());
    expect(second.types()).toEqual(['meta', 'message.start', 'message.delta']);
    expect(second.events().slice(0, 2)).toEqual(first.events().slice(0, 2));
    expect(second.events().at(-1)?.id).toBe(first.events().at(-1)?.id);
    run.delta('d');
    run.end();
    await Promise.all([first.ended, second.ended]);
    expect(second.said()).toBe('a b c d');
    expect(second.events().slice(3)).toEqual(first.events().slice(5));
    expect((await carl.resume()).status).toBe(204);
  });

  it('tells every viewer the same of the run, by the log’s clock', async () => {
    let time = Date.UTC(2026, 0, 11);
    const log = memoryTurnLog({ now: () => time });
    const meta = (turn: { chatId: string }) => ({ model: `model of ${turn.chatId}`, runId: 'x' });
    const { carl, first, run } = await startTurn({ log, routes: { chat: { meta } } });
    run.delta('a');
    await first.until(() => first.said());
    time += 1_000;
    const second = openEvents(await carl.resume());
    await second.until(() => second.said());
    expect(second.events().slice(0, 2)).toEqual(first.events().slice(0, 2));
    expect(first.events()[0]?.data).toMatchObject({
      model: `model of ${CHAT_ID}`,
      createdAt: '2026-01-11T00:00:00.000Z',
      runId: expect.not.stringMatching(/^x$/),
    });
    run.end();
  });

  it('of what does not exist, or has ended, is a 204', async () => {
    const gateway = createTestGateway(echo);
    const carl = createContractUser(gateway, 'carl');
    expect((await carl.resume()).status).toBe(204);
    const whole = await readEvents(await carl.post(contractBody('hi')));
    expect((await carl.resume()).status).toBe(204);
    // A cursor that nobody has given out is a whole replay of what the chat has.
    expect(withoutIds(await readEvents(await carl.resumeAt('no-such-turn:4')))).toEqual(
      withoutIds(whole),
    );
  });

  it('can be asked for in the address, as an EventSource on a fresh page has to', async () => {
    const gateway = createTestGateway(echo);
    const carl = createContractUser(gateway, 'carl');
    const whole = await readEvents(await carl.post(contractBody('hi')));
    const query = `lastEventId=${encodeURIComponent(whole[1]?.id ?? '')}`;
    expect(await readEvents(await carl.resume(CHAT_ID, { query }))).toEqual(whole.slice(2));
  });
});

const isNoDelta = ({ type }: ReadEvent) => type !== 'message.delta';
const said = (event: ReadEvent) => (event.type === 'message.delta' ? event.data.delta : '');

describe('a chat on a route of the contract', () => {
  it('is stopped for everybody', async () => {
    const { carl, first, run } = await startTurn();
    run.delta('a');
    await first.until(() => first.said());
    const response = await carl.stop();
    expect([response.status, await response.json()]).toEqual([202, { stopped: true }]);
    await first.ended;
    expect(first.types().at(-1)).toBe('done');
    expect(run.turn.signal.aborted).toBe(true);
    expect((await carl.stop()).status).toBe(204);
  });

  it('takes the first answer to a question, and tells later ones which it was', async () => {
    const heard: unknown[] = [];
    const upstream = asUpstream(async function* ({ answer }) {
      const data = { questionId: 'q1', text: 'Really?', status: 'open' };
      yield { type: 'data-question', id: 'q1', data };
      heard.push(await answer('q1'));
    });
    const carl = createContractUser(createTestGateway(upstream), 'carl');
    const reader = openEvents(await carl.post(contractBody('go')));
    await reader.until(() => reader.types().includes('question'));
    expect((await carl.answer('q2', 'yes')).status).toBe(404);
    expect((await carl.answer('q1', 'yes')).status).toBe(202);
    await reader.ended;
    expect(heard).toEqual(['yes']);
    const asked = reader.events().filter(({ type }) => type === 'question');
    expect(asked.map(({ data }) => data)).toMatchObject([
      { questionId: 'q1', status: 'open' },
      { questionId: 'q1', status: 'answered', answer: 'yes' },
    ]);
    const late = await carl.answer('q1', 'no');
    expect([late.status, (await late.json()).answer]).toEqual([409, 'yes']);
  });

  it('goes on for a while after its last viewer left, or until it is stopped', async () => {
    const { first, run } = await startTurn({ timing: { disconnectGraceMs: 30 } });
    await first.leave();
    await eventually(() => run.turn.signal.aborted);
  });

  it('is not stopped by whoever promised to say so', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { disconnectGraceMs: 0 } });
    const carl = createContractUser(gateway, 'carl');
    const headers = { 'x-sabir-detach': '1' };
    const first = openEvents(await carl.post(contractBody('hi'), { headers }));
    const run = await agent.run();
    await first.leave();
    const second = openEvents(await carl.resume());
    run.text('still here');
    run.end();
    await second.ended;
    expect(second.said()).toBe('still here');
  });
});
