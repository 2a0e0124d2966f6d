import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { SpanStatusCode, trace } from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  eventually,
  ORIGIN,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import { createLedAgent } from '../../test/led-agent.ts';
import { startFleet, useRedis } from '../../test/many-gateways.ts';
import { IF_REDIS } from '../../test/redis-gateways.ts';
import { hasRedis } from '../../test/redis-server.ts';
import { scriptedAgent } from '../../test/scripted-agent.ts';
import { startSessionStack } from '../platforms/node/sessions.ts';
import { memorySessionStore } from '../sessions/index.ts';
import { asUpstream, type Telemetry } from './index.ts';
import { otel } from './otel.ts';

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
beforeEach(() => exporter.reset());
afterAll(() => provider.shutdown());

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const TRACED = { headers: { traceparent: TRACEPARENT } };
const QUESTION = { questionId: 'q1', text: 'May I?', status: 'open' };

async function turnSpan(count = 1) {
  const turns = () => exporter.getFinishedSpans().filter(({ name }) => name === 'sabir.turn');
  await eventually(() => turns().length >= count);
  const span = turns()[count - 1];
  if (!span) throw new Error('unreachable');
  return span;
}

describe('otel()', () => {
  it('gives each turn a span under the traceparent of its request, with what happened in it', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream, { telemetry: otel() }), 'carl');
    const response = await carl.post(chatBody('hunter2'), TRACED);
    const turnId = response.headers.get('x-sabir-turn');
    const sse = openSse(response);
    const run = await agent.run();
    run.delta('hunter3');
    await sse.until(() => sse.text());
    const resumed = openSse(await carl.resume());
    await resumed.until(() => resumed.text());
    run.say({ type: 'data-question', id: 'q1', data: QUESTION });
    await sse.until(() => sse.chunks().some(({ type }) => type === 'data-question'));
    expect((await carl.answer('q1', 'hunter4')).status).toBe(202);
    await run.turn.answer('q1');
    run.end();
    await sse.ended;

    const span = await turnSpan();
    expect(span.parentSpanContext).toMatchObject({
      traceId: TRACE_ID,
      spanId: 'b7ad6b7169203331',
    });
    expect(span.attributes).toEqual({
      'sabir.route': 'sessions',
      'sabir.session.id': 's1',
      'sabir.chat.id': 'c1',
      'sabir.turn.id': turnId,
      'sabir.request.id': expect.any(String),
      'sabir.outcome': 'finished',
      'sabir.chunks': sse.chunks().length,
    });
    expect(span.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['first-byte', {}],
      ['resume', { 'sabir.after': 0 }],
      ['question', { 'sabir.question.id': 'q1' }],
      ['answer', { 'sabir.question.id': 'q1' }],
      ['outcome', { 'sabir.outcome': 'finished' }],
    ]);
    expect(JSON.stringify([span.attributes, span.events])).not.toMatch(/hunter/);
  });

  it('marks a stopped turn with who stopped it, and a failed one as an error without its words', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream, { telemetry: otel() }), 'carl');
    const stopped = openSse(await carl.post(chatBody('one')));
    await agent.run();
    await carl.stop();
    await stopped.ended;
    const first = await turnSpan();
    expect(first.events.map(({ name }) => name)).toContain('stop');
    expect(first.attributes).toMatchObject({ 'sabir.outcome': 'stopped' });
    expect(first.status.code).toBe(SpanStatusCode.UNSET);

    const failed = openSse(await carl.post(chatBody('two')));
    (await agent.run(1)).fail(new Error('hunter2'));
    await failed.ended;
    const second = await turnSpan(2);
    expect(second.status.code).toBe(SpanStatusCode.ERROR);
    expect(JSON.stringify([second.status, second.attributes, second.events])).not.toMatch(/hunter/);
  });

  it('lets an agent in this process add spans below the turn, and gives it the traceparent', async () => {
    let given: string | undefined;
    const upstream = asUpstream(async function* ({ traceparent }) {
      given = traceparent;
      yield { type: 'text-start', id: '1' };
      await Promise.resolve();
      trace.getTracer('agent').startSpan('model call').end();
      yield { type: 'text-end', id: '1' };
    });
    const carl = createUser(createTestGateway(upstream, { telemetry: otel() }), 'carl');
    await readChunks(await carl.post(chatBody('hi'), TRACED));
    const turn = await turnSpan();
    const child = exporter.getFinishedSpans().find(({ name }) => name === 'model call');
    expect(child?.parentSpanContext?.spanId).toBe(turn.spanContext().spanId);
    expect(given).toBe(`00-${TRACE_ID}-${turn.spanContext().spanId}-01`);
  });

  it('gives the traceparent to an agent behind a session server, with its prompt', async () => {
    const agent = scriptedAgent();
    const stack = await startSessionStack({
      store: memorySessionStore(),
      agent: () => agent,
      gateway: { telemetry: otel() },
    });
    onTestFinished(() => stack.close());
    const body = JSON.stringify(chatBody('hi'));
    const asked = { method: 'POST', body, ...TRACED };
    await readChunks(await fetch(`${stack.url}/api/sessions/s1/chat`, asked));
    const turn = await turnSpan();
    const { spanId } = turn.spanContext();
    expect(agent.prompts[0]?.traceparent).toBe(`00-${TRACE_ID}-${spanId}-01`);
  });

  it('shows no id of a public chat, and links the trace of a stranger instead of joining it', async () => {
    const gateway = createTestGateway(echo, {
      telemetry: otel(),
      routes: { onboarding: { public: true } },
    });
    const chatId = `chat_${'a1b2'.repeat(8)}`;
    const body = JSON.stringify(chatBody('hi', { sessionId: chatId, id: chatId }));
    const url = `${ORIGIN}/api/onboarding`;
    const response = await gateway.fetch(new Request(url, { method: 'POST', body, ...TRACED }));
    expect(response.status).toBe(200);
    await response.text();
    const span = await turnSpan();
    expect(JSON.stringify([span.attributes, span.events])).not.toContain(chatId);
    expect(span.spanContext().traceId).not.toBe(TRACE_ID);
    expect(span.links.map(({ context }) => context.traceId)).toEqual([TRACE_ID]);
  });

  it('keeps ids that clients choose short', async () => {
    const gateway = createTestGateway(echo, { telemetry: otel() });
    const chatId = 'c'.repeat(500);
    await readChunks(await createUser(gateway, 'carl').post(chatBody('hi', { id: chatId })));
    const span = await turnSpan();
    expect(span.attributes['sabir.chat.id']).toBe('c'.repeat(200));
  });

  it('changes nothing for a turn when the telemetry throws', async () => {
    const broken = () => {
      throw new Error('no');
    };
    const telemetry: Telemetry = {
      startTurn: () => ({ set: broken, event: broken, end: broken, run: (work) => work() }),
    };
    for (const one of [telemetry, { startTurn: broken }]) {
      const carl = createUser(createTestGateway(echo, { telemetry: one }), 'carl');
      const chunks = await readChunks(await carl.post(chatBody('hi')));
      expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
    }
  });

  it('is not loaded by gateways and session servers that do not use it', () => {
    const child = fileURLToPath(new URL('../../test/loaded-modules.ts', import.meta.url));
    const load = (...files: string[]) => {
      const { stdout, stderr } = spawnSync(process.execPath, [child, ...files]);
      expect(`${stderr}`).toBe('');
      return (JSON.parse(`${stdout}`) as string[]).filter((url) => url.includes('opentelemetry'));
    };
    expect(
      load('gateway/index.ts', 'platforms/node/sessions.ts', 'platforms/node/serve.ts'),
    ).toEqual([]);
    expect(load('gateway/otel.ts')).not.toEqual([]);
  });
});

describe.skipIf(!hasRedis)(`otel() on gateways that share a Redis${IF_REDIS}`, () => {
  const redis = useRedis();

  it('links the span of a turn that was taken over to the span of the gateway that began it', async () => {
    const agent = createLedAgent();
    const { A, B } = await startFleet(redis(), {
      count: 2,
      agent,
      log: { leaseMs: 60_000 },
      gateway: { telemetry: otel(), timing: { shutdownMs: 3_000 } },
    });
    const sse = openSse(await createUser(A.remote, 'carl').post(chatBody('hi'), TRACED));
    const run = await agent.run();
    run.text('One ');
    await sse.until(() => sse.text());
    await A.gateway.close();
    const first = await turnSpan(1);
    expect(first.attributes).toMatchObject({ 'sabir.outcome': 'handed-over' });
    await eventually(() => B.lines.some(({ message }) => message === 'turn taken over'));
    run.end();
    const second = await turnSpan(2);
    expect(second.links.map(({ context }) => context.spanId)).toEqual([first.spanContext().spanId]);
    expect(second.events.map(({ name }) => name)).toEqual(['takeover', 'outcome']);
    expect(second.attributes['sabir.turn.id']).toBe(first.attributes['sabir.turn.id']);
  });
});
