import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import { verifyChunks } from '../core/verify.ts';
import { asUpstream, type Upstream, type UpstreamSession } from './index.ts';

/** Counts what is opened of an upstream, for whom, and lets a test break it. */
function watched(upstream: Upstream) {
  const opened: string[] = [];
  const sessions: UpstreamSession[] = [];
  const watching: Upstream = {
    async open(where) {
      opened.push(`${where.sessionId} ${where.user.id}`);
      const session = await upstream.open(where);
      sessions.push(session);
      return session;
    },
  };
  return { upstream: watching, opened, sessions };
}

describe('a connection to an agent', () => {
  it('is shared by one person’s turns in a session, and by nothing else [RFC-STATE-01] [RFC-RISK-01]', async () => {
    const agent = createAgent();
    const { upstream, opened } = watched(agent.upstream);
    const gateway = createTestGateway(upstream);
    const posts = [
      ['carl', 's1', 'c1'],
      ['carl', 's1', 'c2'],
      ['carl', 's2', 'c1'],
      ['cora', 's1', 'c1'],
    ] as const;
    for (const [i, [name, sessionId, id]] of posts.entries()) {
      await createUser(gateway, name, sessionId).post(chatBody('hi', { id }));
      await agent.run(i);
    }
    expect(opened).toEqual(['s1 carl', 's2 carl', 's1 cora']);
  });

  it('is kept for a moment for the next turn, and then let go', async () => {
    const agent = createAgent();
    const { upstream, opened, sessions } = watched(agent.upstream);
    const gateway = createTestGateway(upstream, { timing: { lingerMs: 50 } });
    const carl = createUser(gateway, 'carl');
    for (const [i, text] of ['one', 'two'].entries()) {
      const response = await carl.post(chatBody(text));
      (await agent.run(i)).end();
      await readChunks(response);
    }
    expect(opened).toHaveLength(1);
    await eventually(() => sessions[0]?.isClosed);
    await carl.post(chatBody('three'));
    await agent.run(2);
    expect(opened).toHaveLength(2);
  });

  it('that drops in mid-stream is told to its viewers, in order, and not opened again [RFC-ERR-02] [RFC-ERR-10]', async () => {
    const agent = createAgent();
    const { upstream, opened, sessions } = watched(agent.upstream);
    const carl = createUser(createTestGateway(upstream), 'carl');
    const sse = openSse(await carl.post(chatBody('hi')));
    const run = await agent.run();
    run.say({ type: 'start-step' });
    run.say({ type: 'tool-input-available', toolCallId: 'c', toolName: 'look', input: {} });
    run.delta('half a');
    await sse.until(() => sse.text());
    sessions[0]?.close();
    await sse.ended;
    expect(sse.frames.slice(-3).map(({ event, data }) => [event, data])).toEqual([
      ['error', '{"type":"error","errorText":"Stream interrupted"}'],
      ['message-finish', '{"type":"finish","finishReason":"error"}'],
      [undefined, '[DONE]'],
    ]);
    expect(verifyChunks(sse.chunks())).toEqual([]);
    expect(opened).toHaveLength(1);
    // The next message is a new beginning.
    const next = openSse(await carl.post(chatBody('again')));
    (await agent.run(1)).text('here I am');
    await next.until(() => next.text() === 'here I am');
    expect(opened).toHaveLength(2);
  });
});

describe('turns at the same time', () => {
  it('do not mix, a hundred of them in one session [RFC-STATE-02] [RFC-INT-7.2]', async () => {
    const upstream = asUpstream(async function* ({ text }) {
      yield { type: 'text-start', id: '1' };
      for (let i = 0; i < 20; i++) {
        yield { type: 'text-delta', id: '1', delta: `${text}.${i} ` };
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const gateway = createTestGateway(upstream);
    const carl = createUser(gateway, 'carl');
    const texts = Array.from({ length: 100 }, async (_, i) => {
      const sse = openSse(await carl.post(chatBody(`no. ${i}`, { id: `c${i % 50}` })));
      await sse.ended;
      return sse.text();
    });
    const expected = (i: number) =>
      Array.from({ length: 20 }, (_, delta) => `no. ${i}.${delta} `).join('');
    expect(await Promise.all(texts)).toEqual(Array.from({ length: 100 }, (_, i) => expected(i)));
    expect(await carl.metrics()).toMatchObject({
      sabir_live_turns: 0,
      sabir_viewers: 0,
      'sabir_turns_total{outcome="finished"}': 100,
    });
  });

  it('end each for itself: one that fails or is stopped takes no other with it', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const open = async (id: string, i: number) => {
      const sse = openSse(await carl.post(chatBody('hi', { id })));
      return { sse, run: await agent.run(i) };
    };
    const failing = await open('a', 0);
    const stopped = await open('b', 1);
    const going = await open('c', 2);
    failing.run.fail(new Error('no'));
    await carl.stop('b');
    await Promise.all([failing.sse.ended, stopped.sse.ended]);
    going.run.text('still here');
    going.run.end();
    await going.sse.ended;
    const ends = [failing, stopped, going].map(({ sse }) => sse.chunks().at(-1));
    expect(ends).toMatchObject([
      { finishReason: 'error' },
      { finishReason: 'other' },
      { finishReason: 'stop' },
    ]);
    expect(going.sse.text()).toBe('still here');
  });
});
