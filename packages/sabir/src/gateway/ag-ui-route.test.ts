import { describe, expect, it } from 'vitest';
import { createHttpAgent, problemIn } from '../../test/ag-ui-client.ts';
import { connectAgUi, runInput, talker } from '../../test/ag-ui-gateway.ts';
import { createApprovalAgent } from '../../test/approval-agent.ts';
import {
  chatBody,
  createAgent,
  createUser,
  echo,
  openSse,
  refusal,
} from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import type { AuditEvent } from '../core/audit.ts';
import type { Chunk } from '../core/chunks.ts';
import type { AgUiEvent } from '../wires/ag-ui/index.ts';
import { asUpstream } from './index.ts';

function eventsIn(raw: string): AgUiEvent[] {
  return [...raw.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data as string));
}

describe('a run of AG-UI whose prompt waits in a session', () => {
  const path = '/api/sessions/s1/ag-ui';

  async function startQueue() {
    const given = startHosted();
    const { agent, carl } = given;
    const first = openSse(await carl.post(chatBody('first')));
    const run = await agent.run();
    run.text('First.');
    const second = openSse(
      await given.user('olga').send('POST', path, {}, runInput({ threadId: 'c2' })),
    );
    await second.until(() => second.raw().includes('waiting'));
    return { ...given, first, run, second };
  }

  it('is shown with its place in the queue, then with its turn, as one run', async () => {
    const { agent, run, second } = await startQueue();
    run.end();
    const next = await agent.run(1);
    next.text('Second.');
    next.end();
    await second.ended;
    const events = eventsIn(second.raw());
    expect(await problemIn(events)).toBeUndefined();
    expect(events.filter(({ type }) => type === 'RUN_STARTED')).toHaveLength(1);
    expect(events).toContainEqual({
      type: 'CUSTOM',
      name: 'data-queue',
      value: { id: 'queue', data: { position: 1, status: 'waiting' } },
    });
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
  });

  it('is cancelled when the prompt is withdrawn', async () => {
    const { user, second, run } = await startQueue();
    expect((await user('olga').send('POST', `${path}/c2/stop`)).status).toBe(202);
    await second.until(() => second.raw().includes('RUN_FINISHED'));
    const events = eventsIn(second.raw());
    expect(await problemIn(events)).toBeUndefined();
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
    run.end();
  });
});

describe('a run of AG-UI', () => {
  it('sent twice prompts once; another run of the same message prompts anew', async () => {
    const agents = createAgent();
    const { carl } = await connectAgUi(agents.upstream);
    const path = '/api/sessions/s1/ag-ui';
    const first = openSse(await carl.send('POST', path, {}, runInput()));
    const second = openSse(await carl.send('POST', path, {}, runInput()));
    (await agents.run()).end();
    await Promise.all([first.ended, second.ended]);
    expect(second.raw()).toBe(first.raw());
    expect(agents.runs).toHaveLength(1);
    const third = openSse(await carl.send('POST', path, {}, runInput({ runId: 'r2' })));
    (await agents.run(1)).end();
    await third.ended;
    expect(agents.runs).toHaveLength(2);
  });

  it('is continued behind any of its cursors, and has nothing behind the last', async () => {
    const { carl } = await connectAgUi(talker);
    const whole = openSse(await carl.send('POST', '/api/sessions/s1/ag-ui', {}, runInput()));
    await whole.ended;
    const stream = '/api/sessions/s1/ag-ui/c1/stream';
    const framesOf = (sse: typeof whole) => sse.raw().match(/(.+\n)+\n/g) ?? [];
    const messagesOf = async (frames: string[]) => {
      const { agent } = createHttpAgent({
        url: 'http://test.invalid',
        fetch: async () => new Response(frames.join('')),
      });
      return (await agent.runAgent()).newMessages;
    };
    const frames = framesOf(whole);
    const expected = await messagesOf(frames);
    for (const [i, { id }] of whole.frames.entries()) {
      if (id === undefined || i === frames.length - 1) continue;
      const rest = openSse(await carl.send('GET', stream, { headers: { 'last-event-id': id } }));
      await rest.ended;
      expect(await messagesOf([...frames.slice(0, i + 1), ...framesOf(rest)])).toEqual(expected);
    }
    const { id: last = '' } = whole.frames.at(-1) ?? {};
    const over = await carl.send('GET', stream, { headers: { 'last-event-id': last } });
    expect(over.status).toBe(204);
  });

  it.each([
    ['1.0', '&protocolVersion=1.0', { type: 'cancelled' }],
    ['before 1.0', '', undefined],
  ])(
    'is continued as the run that its address names, of a client %s',
    async (_, version, outcome) => {
      const agents = createAgent();
      const { carl } = await connectAgUi(agents.upstream);
      const path = '/api/sessions/s1/ag-ui';
      const whole = openSse(await carl.send('POST', path, {}, runInput()));
      (await agents.run()).delta('Half of');
      await whole.until(() => whole.raw().includes('Half of'));
      const { id = '' } = whole.frames.at(-1) ?? {};
      const init = { query: `wire=ag-ui&runId=r1${version}`, headers: { 'last-event-id': id } };
      const routes = [path, '/api/sessions/s1/chat'];
      const rests = await Promise.all(
        routes.map(async (route) => openSse(await carl.send('GET', `${route}/c1/stream`, init))),
      );
      await carl.send('POST', `${path}/c1/stop`);
      for (const rest of rests) {
        await rest.ended;
        const last = eventsIn(rest.raw()).at(-1) as { runId?: string; outcome?: unknown };
        expect([last.runId, last.outcome]).toEqual(['r1', outcome]);
      }
    },
  );

  it('is not continued under a run id that no run can have', async () => {
    const { carl } = await connectAgUi(echo);
    const stream = '/api/sessions/s1/ag-ui/c1/stream';
    const response = await carl.send('GET', stream, { query: 'runId=' });
    expect(await refusal(response)).toMatchObject({ status: 400 });
  });

  it('that has failed has nothing behind its RUN_ERROR', async () => {
    const { carl } = await connectAgUi(
      asUpstream(async function* (): AsyncGenerator<Chunk> {
        yield { type: 'text-delta', id: '1', delta: 'Half' } as Chunk;
        throw new Error('no');
      }),
    );
    const sse = openSse(await carl.send('POST', '/api/sessions/s1/ag-ui', {}, runInput()));
    await sse.ended;
    const { id: last = '', data } = sse.frames.at(-1) ?? {};
    expect(JSON.parse(data as string).type).toBe('RUN_ERROR');
    const stream = '/api/sessions/s1/ag-ui/c1/stream';
    expect((await carl.send('GET', stream, { headers: { 'last-event-id': last } })).status).toBe(
      204,
    );
  });

  it('that says no protocol version and is stopped ends without an outcome that clients before 1.0 refuse', async () => {
    const agents = createAgent();
    const { carl } = await connectAgUi(agents.upstream);
    const path = '/api/sessions/s1/ag-ui';
    const old = runInput({ protocolVersion: undefined });
    const sse = openSse(await carl.send('POST', path, {}, old));
    await agents.run();
    await carl.send('POST', `${path}/c1/stop`);
    await sse.ended;
    expect(eventsIn(sse.raw()).at(-1)).toMatchObject({
      type: 'RUN_FINISHED',
      metadata: { outcome: 'stopped' },
    });
    expect(eventsIn(sse.raw()).at(-1)).not.toHaveProperty('outcome');
  });

  it('that answers is audited, also where it names a run that never was and no stream follows', async () => {
    const audited: AuditEvent[] = [];
    const { upstream, heard } = createApprovalAgent({ steps: [['a']] });
    const { agent, carl } = await connectAgUi(upstream, {
      onAudit: (event) => audited.push(event),
    });
    await agent.runAgent();
    const resume = ['none:1@a', 'none:1@b'].map((interruptId) => {
      return { interruptId, status: 'resolved', payload: { approved: true } };
    });
    const path = '/api/sessions/s1/ag-ui';
    await openSse(await carl.send('POST', path, {}, runInput({ runId: 'r2', resume }))).ended;
    expect(heard.a).toEqual({ approved: true });
    expect(audited.filter(({ action }) => action === 'answer')).toMatchObject([
      { outcome: 'accepted', questionId: 'a', approved: true, userId: 'carl' },
    ]);
  });

  it('is read on the other routes with ?wire=ag-ui', async () => {
    const { carl } = await connectAgUi(echo);
    const sse = openSse(await carl.post(chatBody('hi'), { query: 'wire=ag-ui' }));
    await sse.ended;
    const events = eventsIn(sse.raw());
    const turnId = sse.frames.find(({ id }) => id)?.id?.split(':')[0];
    expect(events[0]).toMatchObject({ type: 'RUN_STARTED', threadId: 'c1', runId: turnId });
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' });
  });

  it.each([
    ['no thread', { threadId: undefined }, 400],
    ['an empty run id', { runId: '' }, 400],
    ['messages that are no list', { messages: {} }, 400],
    ['a role that AG-UI does not have', { messages: [{ id: 'm', role: 'robot' }] }, 400],
    ['no message of a person', { messages: [] }, 400],
    [
      'content that is neither text nor parts',
      { messages: [{ id: 'm', role: 'user', content: 1 }] },
      400,
    ],
    [
      'an answer to an interrupt of another server',
      { resume: [{ interruptId: 'x', status: 'resolved' }] },
      400,
    ],
    [
      'an answer whose status AG-UI does not have',
      { resume: [{ interruptId: 't:1@q', status: 'canceled' }] },
      400,
    ],
    ['an answer without a status', { resume: [{ interruptId: 't:1@q', payload: true }] }, 400],
    [
      'more than 200 answers',
      { resume: Array.from({ length: 201 }, () => ({ interruptId: 't:1@q', status: 'resolved' })) },
      400,
    ],
    ['a resume that is no list', { resume: { interruptId: 't:1@q' } }, 400],
  ])('with %s is refused', async (_, over, status) => {
    const { carl } = await connectAgUi(echo);
    const response = await carl.send('POST', '/api/sessions/s1/ag-ui', {}, runInput(over));
    expect(await refusal(response)).toMatchObject({ status });
  });

  it.each([
    ['a file within attachmentBytes', 'file', 50_000, 200],
    ['a file past attachmentBytes', 'file', 101_000, 413],
    ['a text past bodyBytes', 'text', 50_000, 413],
  ])('with %s is held to the limit of its kind', async (_, kind, length, status) => {
    const limits = { bodyBytes: 10_000, attachmentBytes: 100_000 };
    const { carl } = await connectAgUi(echo, { limits });
    const value = 'A'.repeat(length);
    const source = { type: 'data', value, mimeType: 'image/png' };
    const content = kind === 'text' ? value : [{ type: 'image', source }];
    const input = runInput({ messages: [{ id: 'u1', role: 'user', content }] });
    const response = await carl.send('POST', '/api/sessions/s1/ag-ui', {}, input);
    expect(response.status).toBe(status);
    await response.body?.cancel();
  });

  it('is refused to a viewer and to a stranger, as on the other routes', async () => {
    const { gateway } = await connectAgUi(echo);
    const statusOf = async (user: string | undefined) =>
      (await createUser(gateway, user).send('POST', '/api/sessions/s1/ag-ui', {}, runInput()))
        .status;
    expect([await statusOf('vera'), await statusOf('zoe'), await statusOf(undefined)]).toEqual([
      404, 404, 401,
    ]);
  });
});
