import { describe, expect, it } from 'vitest';
import { createApprovalAgent } from '../../test/approval-agent.ts';
import { CHAT_ID, contractBody, createContractUser } from '../../test/contract-client.ts';
import { openFollow } from '../../test/follow-client.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  openSse,
  refusal,
} from '../../test/gateway-client.ts';
import { turnOf } from '../../test/hosted-gateway.ts';
import { createSseDecoder, type SseFrame } from '../core/sse.ts';
import type { ChatGatewayOptions } from './index.ts';

const DETACH = { headers: { 'x-sabir-detach': '1' } };

function start(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, options);
  const carl = createUser(gateway, 'carl');
  const vera = createUser(gateway, 'vera');
  let asked = 0;
  /** A turn of Carl's that has said one delta. */
  const begin = async (text = 'hi') => {
    const response = await carl.post(chatBody(text), DETACH);
    const posted = openSse(response);
    const run = await agent.run(asked++);
    run.delta('a');
    await posted.until(() => posted.text());
    return { turnId: turnOf(response), posted, run };
  };
  const answer = async (text: string) => {
    const turn = await begin(text);
    turn.run.end();
    await turn.posted.ended;
    return turn;
  };
  const follow = async (cursor?: string, query?: string) => {
    const headers: HeadersInit = cursor ? { 'last-event-id': cursor } : {};
    const follower = openFollow(await vera.follow('c1', { headers, ...(query && { query }) }));
    await follower.until(() => follower.state());
    return follower;
  };
  return { agent, gateway, carl, vera, begin, answer, follow };
}

const withoutMarker = (frames: SseFrame[]) => frames.filter(({ data }) => data !== '[DONE]');

describe('A follow stream', () => {
  it('brings an idle follower two turns of another user in a row, each from its first chunk', async () => {
    const { answer, follow } = start();
    const follower = await follow();
    expect(follower.controls()).toEqual([
      {
        event: 'follow.state',
        history: expect.any(String),
        running: null,
        me: { id: 'vera', role: 'viewer' },
        queue: [],
        people: [],
        agent: { isConnected: true },
      },
    ]);
    for (const [at, text] of ['one', 'two'].entries()) {
      const { turnId, posted } = await answer(text);
      expect(await follower.untilEnd(at)).toMatchObject({ turnId, outcome: 'finished' });
      expect(await follower.untilTurn(at)).toMatchObject({
        turnId,
        messageId: expect.any(String),
        after: 0,
        history: turnId,
        message: { role: 'user', parts: [{ type: 'text', text }] },
        author: { id: 'carl' },
      });
      expect(follower.framesOf(turnId)).toEqual(withoutMarker(posted.frames));
    }
    expect(follower.raw()).not.toContain('[DONE]');
    expect(follower.controls('state')).toHaveLength(1);
  });

  it('brings a follower that comes in the middle of a turn all of it', async () => {
    const { begin, follow } = start();
    const { turnId, posted, run } = await begin();
    const follower = await follow();
    expect(follower.state()).toMatchObject({ running: turnId });
    run.delta('b');
    run.end();
    await follower.untilEnd();
    expect(follower.textOf(turnId)).toBe('ab');
    await posted.ended;
  });

  it('brings a client that comes back in the middle of a turn what follows its cursor', async () => {
    const { begin, follow } = start();
    const first = await follow();
    const { turnId, posted, run } = await begin();
    await first.until(() => first.textOf(turnId));
    const { id } = first.framesOf(turnId).at(-1) ?? {};
    await first.leave();
    const again = await follow(id);
    const after = Number(id?.split(':')[1]);
    expect(await again.untilTurn()).toMatchObject({ turnId, after, history: turnId });
    expect(again.state()).toMatchObject({ history: turnId });
    run.delta('b');
    run.end();
    await again.untilEnd();
    await posted.ended;
    const frames = [...first.framesOf(turnId), ...again.framesOf(turnId)];
    expect(frames).toEqual(withoutMarker(posted.frames));
  });

  it('tells a client that comes back behind the end of a turn that it ended, then the next turn', async () => {
    const { answer, follow } = start();
    const first = await answer('one');
    const cursor = withoutMarker(first.posted.frames).at(-1)?.id;
    const follower = await follow(cursor);
    expect(await follower.untilEnd()).toMatchObject({ turnId: first.turnId, outcome: 'finished' });
    expect(follower.framesOf(first.turnId)).toEqual([]);
    expect(follower.state()).toMatchObject({ history: first.turnId });
    const second = await answer('two');
    expect(await follower.untilEnd(1)).toMatchObject({ turnId: second.turnId });
    expect(follower.textOf(second.turnId)).toBe('a');
  });

  it('brings a turn that was missed, with another version of the history', async () => {
    const { answer, follow } = start();
    const first = await answer('one');
    const cursor = withoutMarker(first.posted.frames).at(-1)?.id;
    const second = await answer('two');
    const follower = await follow(cursor);
    await follower.untilEnd(1);
    expect(follower.controls('turn')).toMatchObject([
      { turnId: first.turnId },
      { turnId: second.turnId, after: 0 },
    ]);
    expect(follower.controls('state')[0]?.history).not.toBe(first.turnId);
    expect(follower.textOf(second.turnId)).toBe('a');
  });

  it('takes an unknown cursor, and one of another chat, as none', async () => {
    const { carl, agent, begin, follow } = start();
    const { turnId, posted, run } = await begin();
    const other = openSse(await carl.post(chatBody('elsewhere', { id: 'c2' }), DETACH));
    (await agent.run(1)).end();
    await other.ended;
    const elsewhere = withoutMarker(other.frames).at(-1)?.id;
    const followers = await Promise.all(['nothing:7', elsewhere, 'x'].map((id) => follow(id)));
    run.end();
    await posted.ended;
    for (const follower of followers) {
      await follower.untilEnd();
      expect(follower.controls('turn')).toMatchObject([{ turnId, after: 0 }]);
      expect(follower.framesOf(turnId)).toEqual(withoutMarker(posted.frames));
    }
  });

  it('brings the answer that a history left out, though its turn has ended since', async () => {
    const agent = createAgent();
    const upstream = {
      open: async (where: Parameters<typeof agent.upstream.open>[0]) => {
        const session = await agent.upstream.open(where);
        return Object.assign(Object.create(session), {
          prompt: session.prompt.bind(session),
          close: () => session.close(),
          history: async () => [],
        });
      },
    };
    const carl = createUser(createTestGateway(upstream), 'carl');
    const response = await carl.post(chatBody('hi'), DETACH);
    const run = await agent.run();
    run.delta('a');
    const posted = openSse(response);
    await posted.until(() => posted.text());
    expect(await (await carl.messages()).json()).toEqual([]);
    run.end();
    await posted.ended;
    const follower = openFollow(await carl.follow());
    await follower.untilEnd();
    expect(follower.textOf(turnOf(response))).toBe('a');
    // Once: the next page has fetched another history.
    const next = openFollow(await carl.follow());
    await next.until(() => next.state());
    expect(next.controls('turn')).toEqual([]);
  });

  it.each(['', 'aiSdk=5', 'aiSdk=6', 'aiSdk=7', 'wire=contract', 'wire=ag-ui'])(
    'sends the frames of /stream with the query "%s"',
    async (query) => {
      const { begin, follow, carl } = start();
      const follower = await follow(undefined, query);
      const { turnId, run } = await begin();
      const resumed = openSse(await carl.resume('c1', { query }));
      run.say(
        { type: 'text-end', id: 'open' },
        { type: 'tool-input-available', toolCallId: 'k', toolName: 'look', input: { a: 1 } },
        { type: 'tool-output-available', toolCallId: 'k', output: 1 },
        { type: 'data-thing', id: 'd', data: { b: 'é\u2028\n' } },
      );
      run.end();
      await Promise.all([follower.untilEnd(), resumed.ended]);
      expect(follower.framesOf(turnId)).toEqual(withoutMarker(resumed.frames));
    },
  );

  it('does not end at an approval, which ends a /stream of AI SDK 6 and 7', async () => {
    const agent = createApprovalAgent({ steps: [['a']] });
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const query = 'aiSdk=7';
    const follower = openFollow(await carl.follow('c1', { query }));
    await follower.until(() => follower.state());
    const posted = openSse(await carl.post(chatBody('go'), { query }));
    await posted.ended;
    expect((await carl.answer('a', { approved: true })).status).toBe(202);
    const { turnId } = await follower.untilEnd();
    expect(follower.controls('turn')).toHaveLength(1);
    const types = follower.chunksOf(String(turnId)).map(({ type }) => type);
    expect(types).toContain('tool-approval-request');
    expect(types).toContain('tool-output-available');
    expect(posted.chunks().map(({ type }) => type)).not.toContain('tool-output-available');
  });

  it('speaks the contract’s wire on its routes', async () => {
    const { agent, gateway } = start();
    const user = createContractUser(gateway, 'carl');
    const post = async (text: string, at: number) => {
      const response = await user.post(contractBody(text));
      const run = await agent.run(at);
      run.text('Hello.');
      run.end();
      const sse = openSse(response);
      await sse.ended;
      return { turnId: turnOf(response), frames: sse.frames };
    };
    const follower = openFollow(
      await createUser(gateway, 'carl').send('GET', `/api/chat/${CHAT_ID}/follow`),
    );
    await follower.until(() => follower.state());
    for (const at of [0, 1]) {
      const { turnId, frames } = await post(`go ${at}`, at);
      await follower.untilEnd(at);
      expect(follower.framesOf(turnId)).toEqual(frames);
    }
    expect(
      (await createUser(gateway, 'cora').send('GET', `/api/chat/${CHAT_ID}/follow`)).status,
    ).toBe(200);
  });

  it('decodes the same wherever its bytes are cut', async () => {
    const { answer, follow } = start();
    const follower = await follow();
    await answer('été');
    await follower.untilEnd();
    const bytes = new TextEncoder().encode(follower.raw());
    for (let at = 0; at <= bytes.length; at++) {
      const frames: SseFrame[] = [];
      const decoder = createSseDecoder({ frame: (frame) => void frames.push(frame) });
      decoder.push(bytes.subarray(0, at));
      decoder.push(bytes.subarray(at));
      expect(frames).toEqual(follower.frames);
    }
  });

  it('is for those who may watch the chat', async () => {
    const { gateway } = start();
    const path = '/api/sessions/s1/chat/c1/follow';
    expect((await createUser(gateway, 'vera').send('GET', path)).status).toBe(200);
    expect(await refusal(await createUser(gateway, 'nobody').send('GET', path))).toMatchObject({
      status: 404,
    });
    expect(await refusal(await createUser(gateway, undefined).send('GET', path))).toMatchObject({
      status: 401,
    });
    expect((await createUser(gateway, 'vera').send('POST', path, {}, {})).status).toBe(405);
  });
});

describe('POST …/stop', () => {
  it('stops only the turn that it names', async () => {
    const { carl, begin } = start();
    const one = await begin('one');
    const two = await begin('two');
    expect((await carl.stop('c1', { turnId: 'another' })).status).toBe(204);
    expect((await carl.stop('c1', { turnId: two.turnId })).status).toBe(202);
    await two.posted.ended;
    expect(two.run.turn.signal.aborted).toBe(true);
    expect(one.run.turn.signal.aborted).toBe(false);
    expect((await carl.stop('c2', { turnId: one.turnId })).status).toBe(204);
    expect((await carl.stop('c1', {})).status).toBe(202);
    await one.posted.ended;
  });

  it.each(['[]', '7', '{"turnId":7}', '{"turnId":""}', '{'])(
    'refuses the body %s',
    async (body) => {
      const { carl } = start();
      expect(await refusal(await carl.stop('c1', body))).toMatchObject({
        status: 400,
        code: 'bad-request',
      });
    },
  );
});
