import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { joinSession, startSessionChain } from '../../../test/session-chain.ts';

describe('a session server on Node', () => {
  it('answers a prompt through a runner on a socket of its own [SES-01] [RUN-01]', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent() });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'everything', promptId: 'p1', turnId: 't1' });
    await ann.until(({ type }) => type === 'message.finalize');
    expect(chain.store.open('s').messages().at(-1)).toMatchObject({
      id: 't1',
      role: 'assistant',
      promptId: 'p1',
      metadata: { outcome: 'finished', usage: { inputTokens: 10, outputTokens: 5 } },
      parts: [
        { type: 'step-start' },
        { type: 'reasoning', text: 'Let me think.' },
        {
          type: 'tool-lookup',
          toolCallId: 'call-1',
          state: 'output-available',
          input: { port: 'Oran' },
          output: 3,
        },
        { type: 'step-start' },
        { type: 'text', text: 'See there.' },
        { type: 'source-url', sourceId: 's1' },
        { type: 'file', mediaType: 'text/plain' },
        { type: 'data-weather', id: 'w', data: { wind: 'east' } },
      ],
    });
    expect(ann.of('git-state')).toEqual([{ type: 'git-state', branch: 'main' }]);
  });

  it('loses none of a thousand deltas', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent() });
    const ann = await joinSession(chain);
    const bob = await joinSession(chain, { user: 'bob', query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'count 1000' });
    for (const client of [ann, bob]) {
      await client.until(({ type }) => type === 'message.finalize');
      const deltas = client.of('message.part.text-delta');
      expect(deltas.map(({ delta }) => delta)).toEqual(
        Array.from({ length: 1_000 }, (_, i) => `${i + 1} `),
      );
      // `start` and `text-start` come before them.
      expect(deltas.map(({ seq }) => seq)).toEqual(deltas.map((_, i) => i + 3));
    }
    expect([ann.of('chunk').length, bob.of('chunk').length]).toEqual([1_000, 0]);
  });

  it('asks, and goes on with the answer', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent() });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'question' });
    await ann.until(({ type }) => type === 'question');
    ann.send({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await ann.until(({ type }) => type === 'message.finalize');
    expect(ann.text()).toBe('I need a decision. Answered: Yes');
  });

  it('stops an answer, and takes the next prompt', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent() });
    const ann = await joinSession(chain);
    for (const content of ['slow', 'question']) {
      ann.send({ type: 'prompt', content, turnId: content });
      await ann.until(
        ({ type, turnId }) => type === 'message.part.text-delta' && turnId === content,
      );
      ann.send({ type: 'abort', turnId: content });
      const end = await ann.until(
        (event) => event.type === 'message.finalize' && event.turnId === content,
      );
      expect(end).toMatchObject({ reason: 'canceled' });
    }
    ann.send({ type: 'prompt', content: 'text', turnId: 'last' });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 'last');
    expect(ann.text('last')).toBe('Hello, world!');
  });

  it('starts an agent anew that does not stop', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent(), runner: { stopMs: 50 } });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'stubborn', turnId: 't1' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    ann.send({ type: 'abort' });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't1');
    ann.send({ type: 'prompt', content: 'text', turnId: 't2' });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't2');
    expect(ann.text('t2')).toBe('Hello, world!');
  });

  it('shows an agent’s error in words for people, and answers the next prompt', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent() });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'failhalf', turnId: 't1' });
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      reason: 'error',
      error: 'It broke.',
    });
    ann.send({ type: 'prompt', content: 'text', turnId: 't2' });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't2');
  });

  it('says why an agent does not start, and tries again the next time', async () => {
    let tries = 0;
    const agent = {
      ...scriptedAgent(),
      start: async () => {
        // Once when it came, once when it was asked.
        if (tries++ < 2) throw new Error('There is no model key.');
      },
    };
    const chain = await startSessionChain({ agent });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'text', turnId: 't1' });
    const end = await ann.until(({ type }) => type === 'message.finalize');
    expect(end).toMatchObject({ reason: 'error', error: 'There is no model key.' });
    ann.send({ type: 'prompt', content: 'text', turnId: 't2' });
    await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === 't2');
    expect(ann.text('t2')).toBe('Hello, world!');
  });

  it('gives an agent that wants it what was said before in its channel', async () => {
    const agent = scriptedAgent({ needsHistory: true });
    const chain = await startSessionChain({ agent });
    const ann = await joinSession(chain);
    for (const content of ['text', 'tool', 'again']) {
      ann.send({ type: 'prompt', content, turnId: content });
      await ann.until(({ type, turnId }) => type === 'message.finalize' && turnId === content);
    }
    const { messages } = agent.prompts[2] as (typeof agent.prompts)[number];
    expect(messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'user', 'assistant', 'user'],
    ]);
    expect(messages[3]?.parts).toContainEqual(
      expect.objectContaining({ type: 'tool-lookup', state: 'output-available' }),
    );
  });

  it('closes a session that has no clients any more, and its runner with it', async () => {
    const chain = await startSessionChain({ agent: scriptedAgent(), timing: { lingerMs: 20 } });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'text' });
    await ann.until(({ type }) => type === 'message.finalize');
    expect([chain.sessions.sessions.size, chain.runners.size]).toEqual([1, 1]);
    ann.close();
    await expect.poll(() => [chain.sessions.sessions.size, chain.runners.size]).toEqual([0, 0]);
    const back = await joinSession(chain);
    expect(back.events[0]).toMatchObject({
      session: { messages: [{ role: 'user' }, { content: 'Hello, world!' }] },
    });
  });

  it('closes in order: what runs may end, nothing new begins', async () => {
    const agent = scriptedAgent();
    const chain = await startSessionChain({ agent });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'slow', turnId: 't1' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    const closing = chain.sessions.close(5_000);
    ann.send({ type: 'prompt', content: 'text' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({
      code: 'shutting-down',
    });
    agent.go();
    await closing;
    expect(await ann.closed).toMatchObject({ code: 1001 });
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'end_turn' }]);
  });

  describe('refuses a socket', () => {
    const open = (url: string, headers: Record<string, string>, protocols: string[] = []) =>
      new Promise<{ status: number; body: unknown; protocol?: string }>((resolve) => {
        const socket = new WebSocket(url, protocols, { headers });
        socket.on('unexpected-response', async (_, response) => {
          const chunks = await response.toArray();
          resolve({
            status: response.statusCode ?? 0,
            body: JSON.parse(Buffer.concat(chunks).toString()),
          });
          socket.terminate();
        });
        socket.on('open', () => {
          resolve({ status: 101, body: undefined, protocol: socket.protocol });
          socket.terminate();
        });
        socket.on('error', () => undefined);
      });

    it.each([
      ['without a token', '/api/sessions/s/ws?role=client', {}, 401],
      [
        'into a session that is not theirs',
        '/api/sessions/secret/ws?role=client',
        { authorization: 'Bearer ann' },
        404,
      ],
      ['at another address', '/api/sessions/s/socket', { authorization: 'Bearer ann' }, 404],
      ['with an id that is no text', '/api/sessions/%ff/ws', { authorization: 'Bearer ann' }, 404],
      [
        'as a runner with a person’s token',
        '/api/sessions/s/ws?role=runner',
        { authorization: 'Bearer ann' },
        404,
      ],
      [
        'from the page of another site',
        '/api/sessions/s/ws',
        { origin: 'https://evil.example' },
        403,
      ],
    ] as const)('%s', async (_, path, headers, status) => {
      const chain = await startSessionChain({ agent: scriptedAgent() });
      const answer = await open(chain.url.replace('http', 'ws') + path, headers);
      expect(answer).toMatchObject({
        status,
        body: { code: expect.any(String), remedy: expect.any(String) },
      });
      expect(chain.sessions.sessions.size).toBe(0);
    });

    it('but not of a page that sends its token as a protocol', async () => {
      const chain = await startSessionChain({ agent: scriptedAgent() });
      const url = `${chain.url.replace('http', 'ws')}/api/sessions/s/ws`;
      const own = { origin: chain.url };
      expect(await open(url, own, ['sabir', 'bearer.ann'])).toMatchObject({
        status: 101,
        protocol: 'sabir',
      });
    });

    it('when the sign-in of its user expires: it is closed with 4401', async () => {
      const chain = await startSessionChain({
        agent: scriptedAgent(),
        authenticate: () => ({ id: 'ann', expiresAt: Date.now() + 50 }),
      });
      const ann = await joinSession(chain);
      expect(await ann.closed).toMatchObject({ code: 4401 });
    });
  });
});
