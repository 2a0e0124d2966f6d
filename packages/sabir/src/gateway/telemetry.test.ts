import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  eventually,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import type { Chunk } from '../core/chunks.ts';
import { asUpstream, memoryTurnLog, type Upstream } from './index.ts';

const client = 'adapter_stream_aborts_total{side="client"}';
const server = 'adapter_stream_aborts_total{side="server"}';

describe('metrics', () => {
  it('are all there from the start', async () => {
    const metrics = await createUser(createTestGateway(echo), 'carl').metrics();
    expect(metrics).toMatchObject({
      adapter_request_count_total: 0,
      adapter_latency_ttfb_seconds_count: 0,
      adapter_latency_turn_duration_seconds_count: 0,
      adapter_ws_open_failures_total: 0,
      [client]: 0,
      [server]: 0,
      sabir_resumes_total: 0,
      sabir_replayed_bytes_total: 0,
      sabir_viewers: 0,
      sabir_live_turns: 0,
      sabir_slow_viewers_total: 0,
    });
  });

  it('count requests, and how long they took [RFC-OBS-01] [RFC-OBS-03] [RFC-OBS-04]', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const sse = openSse(await carl.post(chatBody('one')));
    const run = await agent.run();
    await new Promise((resolve) => setTimeout(resolve, 30));
    run.text('a');
    await sse.until(() => sse.text());
    expect(await carl.metrics()).toMatchObject({
      adapter_request_count_total: 1,
      adapter_latency_ttfb_seconds_count: 1,
      'adapter_latency_ttfb_seconds_bucket{le="0.025"}': 0,
      'adapter_latency_ttfb_seconds_bucket{le="900"}': 1,
      'adapter_latency_ttfb_seconds_bucket{le="+Inf"}': 1,
      adapter_latency_turn_duration_seconds_count: 0,
      sabir_live_turns: 1,
      sabir_viewers: 1,
    });
    run.end();
    await sse.ended;
    const metrics = await carl.metrics();
    expect(metrics).toMatchObject({
      adapter_latency_turn_duration_seconds_count: 1,
      'adapter_latency_turn_duration_seconds_bucket{le="0.025"}': 0,
      'sabir_turns_total{outcome="finished"}': 1,
      sabir_live_turns: 0,
      sabir_viewers: 0,
      [client]: 0,
      [server]: 0,
    });
    expect(metrics.adapter_latency_turn_duration_seconds_sum).toBeGreaterThanOrEqual(0.025);
  });

  it('count requests that end in an error, by its code, and never more of them than requests [RFC-OBS-02]', async () => {
    const gateway = createTestGateway(asUpstream(() => Promise.reject(new Error('no'))));
    const carl = createUser(gateway, 'carl');
    await createUser(gateway, undefined).post(chatBody('hi'));
    await createUser(gateway, 'vera').post(chatBody('hi'));
    await carl.post('{');
    await carl.send('POST', '/elsewhere/chat');
    await carl.send('GET', '/api/sessions/s1/chat');
    await carl.messages();
    await readChunks(await carl.post(chatBody('hi')));
    const metrics = await carl.metrics();
    expect(metrics).toMatchObject({
      adapter_request_count_total: 4,
      'adapter_request_errors_total{code="not-signed-in"}': 1,
      'adapter_request_errors_total{code="not-found"}': 1,
      'adapter_request_errors_total{code="bad-request"}': 1,
      'adapter_request_errors_total{code="failed"}': 1,
      'sabir_turns_total{outcome="failed"}': 1,
      sabir_request_failures_total: 1,
    });
    const errors = Object.keys(metrics).filter((name) => name.includes('request_errors'));
    expect(errors).toHaveLength(4);
  });

  it('count agents that could not be reached [RFC-OBS-05]', async () => {
    const gateway = createTestGateway({ open: () => Promise.reject(new Error('down')) });
    const carl = createUser(gateway, 'carl');
    await readChunks(await carl.post(chatBody('hi')));
    expect(await carl.metrics()).toMatchObject({
      adapter_ws_open_failures_total: 1,
      'adapter_request_errors_total{code="upstream-unreachable"}': 1,
      [server]: 0,
    });
  });

  it('count streams that the client left, and those that failed [RFC-OBS-06] [RFC-OBS-07]', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const left = openSse(await carl.post(chatBody('one')));
    (await agent.run()).delta('a');
    await left.until(() => left.text());
    await left.leave();
    expect(await carl.metrics()).toMatchObject({ [client]: 1, [server]: 0, sabir_viewers: 0 });
    const failed = openSse(await carl.post(chatBody('two')));
    (await agent.run(1)).fail(new Error('no'));
    await failed.ended;
    expect(await carl.metrics()).toMatchObject({ [client]: 1, [server]: 1, sabir_viewers: 0 });
  });

  it('count events that nobody knows, and those in a wrong shape, by type [RFC-OBS-08]', async () => {
    const upstream = asUpstream(async function* () {
      yield { type: 'telepathy' } as unknown as Chunk;
      yield { type: 'telepathy' } as unknown as Chunk;
      yield { type: 'text-delta', id: 't', delta: 7 } as unknown as Chunk;
    });
    const carl = createUser(createTestGateway(upstream), 'carl');
    await readChunks(await carl.post(chatBody('hi')));
    expect(await carl.metrics()).toMatchObject({
      'adapter_translation_unknown_events_total{type="telepathy"}': 2,
      'adapter_translation_malformed_events_total{type="text-delta"}': 1,
    });
  });

  it('count resumes and what was sent again, to the byte', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const first = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    run.delta('ü😀');
    await first.until(() => first.text());
    expect((await carl.metrics()).sabir_replayed_bytes_total).toBe(0);
    const second = openSse(await carl.resume());
    await second.until(() => second.text());
    const replayed = new TextEncoder().encode(second.raw()).length;
    expect(await carl.metrics()).toMatchObject({
      sabir_resumes_total: 1,
      sabir_replayed_bytes_total: replayed,
      sabir_viewers: 2,
      sabir_live_turns: 1,
    });
    // Nothing is sent again to whoever missed nothing.
    const cursor = second.frames.at(-1)?.id as string;
    const third = openSse(await carl.resumeAt(cursor, 'c1', { query: 'aiSdk=7' }));
    run.delta('!');
    await third.until(() => third.text() === '!');
    expect(await carl.metrics()).toMatchObject({
      sabir_resumes_total: 2,
      sabir_replayed_bytes_total: replayed,
    });
    expect((await carl.resume('other')).status).toBe(204);
    expect((await carl.metrics()).sabir_resumes_total).toBe(2);
  });

  it('count slow viewers, who are let go while the turn goes on for others [RFC-ERR-07] [RFC-STATE-06] [RFC-RISK-04]', async () => {
    const agent = createAgent();
    const limits = { viewerBacklogBytes: 5_000 };
    const carl = createUser(createTestGateway(agent.upstream, { limits }), 'carl');
    const slow = await carl.post(chatBody('hi'));
    const run = await agent.run();
    run.delta('a');
    const quick = openSse(await carl.resume());
    await quick.until(() => quick.text() === 'a');
    for (let i = 1; i <= 10; i++) {
      run.say({ type: 'data-x', id: `${i}`, data: 'x'.repeat(1_000) });
      await quick.until(() => quick.frames.length === 3 + i);
    }
    expect((await carl.metrics()).sabir_slow_viewers_total).toBe(0);
    const late = openSse(slow);
    await late.ended;
    expect(late.chunks()).toMatchObject([
      { type: 'start' },
      { type: 'message-metadata', messageMetadata: { code: 'viewer-too-slow' } },
      { type: 'error', errorText: 'The connection is too slow to follow the answer.' },
      { type: 'finish' },
    ]);
    run.delta('b');
    run.end();
    await quick.ended;
    expect(quick.text()).toBe('ab');
    expect(await carl.metrics()).toMatchObject({ sabir_slow_viewers_total: 1, [server]: 1 });
  });

  it('do not count a slow viewer whom it helps to get deltas in one piece', async () => {
    const agent = createAgent();
    const limits = { viewerBacklogBytes: 5_000 };
    const carl = createUser(createTestGateway(agent.upstream, { limits }), 'carl');
    const slow = await carl.post(chatBody('hi'));
    const run = await agent.run();
    for (let i = 0; i < 1_000; i++) run.delta('x');
    const quick = openSse(await carl.resume());
    await quick.until(() => quick.text().length === 1_000);
    run.end();
    const chunks = await readChunks(slow);
    expect(chunks.filter(({ type }) => type === 'text-delta')).toEqual([
      { type: 'text-delta', id: 'open', delta: 'x'.repeat(1_000) },
    ]);
    expect((await carl.metrics()).sabir_slow_viewers_total).toBe(0);
  });
});

describe('logs', () => {
  it('carry the ids of request, session, chat and turn', async () => {
    const { lines, logger } = createLogSpy();
    const agent = createAgent();
    const timing = { disconnectGraceMs: 1 };
    const gateway = createTestGateway(agent.upstream, { logger, timing });
    const response = await createUser(gateway, 'carl').post(chatBody('hi'));
    const turnId = response.headers.get('x-sabir-turn');
    await (await agent.run()).turn;
    await response.body?.cancel();
    await eventually(() => lines.find(({ message }) => message === 'turn ended'));
    const ids = { sessionId: 's1', chatId: 'c1', turnId };
    const requestId = lines[0]?.details.requestId;
    expect(requestId).toEqual(expect.any(String));
    expect(lines.map(({ message, details }) => [message, details])).toEqual([
      ['turn began', { ...ids, requestId }],
      ['viewer left', { ...ids, requestId }],
      ['turn stopped: its last viewer left', ids],
      ['turn ended', { ...ids, requestId, outcome: 'stopped', durationMs: expect.any(Number) }],
    ]);
  });

  it('do not say that a turn was stopped which had ended', async () => {
    const { lines, logger } = createLogSpy();
    const gateway = createTestGateway(echo, { logger, timing: { disconnectGraceMs: 0 } });
    const carl = createUser(gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('hi')));
    await sse.ended;
    await readChunks(await carl.resumeAt(sse.frames[0]?.id as string));
    await (await carl.resumeAt(sse.frames[0]?.id as string)).body?.cancel();
    await eventually(() => lines.filter(({ message }) => message === 'viewer left').length === 1);
    expect(lines.map(({ message }) => message)).not.toContain('turn stopped: its last viewer left');
  });

  it('never carry what people and agents say, whatever breaks', async () => {
    const secret = 'hunter2';
    const { lines, logger } = createLogSpy();
    const failing: Upstream = {
      open: async () => ({
        isClosed: false,
        prompt: ({ text }) => {
          throw new Error(`cannot send ${text}`);
        },
        close: () => undefined,
      }),
    };
    /** What a client of a store throws: it tells the command, and the command holds the chunks. */
    const breaking = () => {
      const log = memoryTurnLog();
      return {
        ...log,
        begin: async (info: Parameters<typeof log.begin>[0]) => {
          const begun = await log.begin(info);
          if ('existing' in begun) return begun;
          let isBroken = true;
          const append = async (chunks: Chunk[]): Promise<number> => {
            if (!isBroken) return begun.writer.append(chunks);
            isBroken = false;
            throw Object.assign(new Error(`refused ${JSON.stringify(chunks)}`), {
              code: 'EREFUSED',
              command: { name: 'xadd', args: chunks },
            });
          };
          return { writer: { ...begun.writer, append } };
        },
      };
    };
    const answering = asUpstream(async function* ({ text }) {
      yield { type: 'text-start', id: '1' };
      yield { type: 'text-delta', id: '1', delta: `You said ${text}` };
      yield { type: 'tool-input-available', toolCallId: 'c', toolName: 't', input: { secret } };
      yield { type: 'tool-output-available', toolCallId: 'c', output: { secret } };
      yield { type: secret } as unknown as Chunk;
      yield { type: 'text-delta', id: secret, delta: secret };
      throw new Error(`it broke on ${text}`, { cause: { secret } });
    });
    const onFinish = ({ message }: { message: unknown }) => {
      const row = JSON.stringify(message);
      throw Object.assign(new Error(`duplicate row ${row}`, { cause: row }), {
        name: 'DatabaseError',
        code: '23505',
        detail: row,
      });
    };
    const common = { logger, onFinish, timing: { disconnectGraceMs: 1 } };
    const gateways = [
      createTestGateway(answering, common),
      createTestGateway(failing, common),
      createTestGateway(answering, { ...common, log: breaking() }),
    ];
    for (const gateway of gateways) {
      const carl = createUser(gateway, 'carl');
      const text = `my password is ${secret}`;
      await readChunks(await carl.post(chatBody(text, { [secret]: secret })));
      await carl.post(`{"messages": ${secret}`);
      await carl.post({ messages: [{ role: secret }] });
      await carl.answer(secret, secret);
      await carl.resumeAt(secret);
      await carl.stop();
    }
    await eventually(() => lines.filter(({ message }) => message === 'turn ended').length === 3);
    const messages = lines.map(({ message }) => message);
    for (const expected of ['onFinish failed', 'the prompt could not be sent']) {
      await eventually(() => lines.some(({ message }) => message === expected), expected);
    }
    expect(messages).toContain('the turn ended: log-failed');
    const all = inspect(lines, { depth: 20, showHidden: true, maxStringLength: null });
    expect(all).not.toContain(secret);
    // An operator still learns what kind of error it was, and where it came from.
    expect(lines.find(({ message }) => message === 'onFinish failed')?.details).toMatchObject({
      sessionId: 's1',
      error: { name: 'DatabaseError', code: '23505', stack: expect.stringMatching(/^\s+at /) },
    });
  });

  it('carry nothing of what a history quotes, and all that a hook says', async () => {
    const { lines, logger } = createLogSpy();
    const history = () => {
      throw new Error('bad row: hunter2');
    };
    const failed = () => lines.map(({ details }) => inspect(details.error)).join();
    const remembering = asUpstream(() => new ReadableStream(), { history });
    const quoting = createTestGateway(remembering, { logger });
    expect((await createUser(quoting, 'carl').messages()).status).toBe(500);
    expect(failed()).toContain("name: 'Error'");
    expect(failed()).not.toContain('hunter2');
    const access = () => {
      throw new Error('the database of sessions is away');
    };
    const broken = createTestGateway(remembering, { logger, access });
    expect((await createUser(broken, 'carl').messages()).status).toBe(500);
    expect(failed()).toContain('the database of sessions is away');
  });
});
