import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  openSse,
  refusal,
} from '../../test/gateway-client.ts';

const unnamed = { id: 'c1', messages: [{ role: 'user', content: 'continue' }] };

describe('the same message', () => {
  it('in another channel is another request', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const a = await carl.post(chatBody('hi'), { query: 'channelId=a' });
    const again = await carl.post(chatBody('hi'), { query: 'channelId=a' });
    const b = await carl.post(chatBody('hi'), { query: 'channelId=b' });
    const none = await carl.post(chatBody('hi'));
    const turns = [a, again, b, none].map(({ headers }) => headers.get('x-sabir-turn'));
    expect(turns[1]).toBe(turns[0]);
    expect(new Set(turns).size).toBe(3);
  });

  it('without an id is the same while its turn runs, and a new one afterwards', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const first = await carl.post(unnamed);
    const second = await carl.post(unnamed);
    expect(second.headers.get('x-sabir-turn')).toBe(first.headers.get('x-sabir-turn'));
    const run = await agent.run();
    run.text('once');
    run.end();
    await Promise.all([openSse(first).ended, openSse(second).ended]);
    const third = await carl.post(unnamed);
    expect(third.headers.get('x-sabir-turn')).not.toBe(first.headers.get('x-sabir-turn'));
    await agent.run(1);
  });
});

describe('a post', () => {
  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  it.each([
    ['a field', (value: string) => `"x": ${value}, "messages": []`],
    ['a part', (value: string) => `"messages": [{"role": "user", "parts": [{"x": ${value}}]}]`],
  ])('with %s that nests without end is not understood: 400', async (_, write) => {
    const carl = createUser(createTestGateway(echo), 'carl');
    expect(await refusal(await carl.post(`{"id": "c1", ${write(deep(100_000))}}`))).toMatchObject({
      status: 400,
      code: 'bad-request',
      message: 'The body nests deeper than 200 levels.',
    });
  });

  it('may nest as messages do', async () => {
    const carl = createUser(createTestGateway(echo), 'carl');
    const body = JSON.stringify(chatBody('hi')).replace('{', `{"x": ${deep(150)},`);
    expect((await carl.post(body)).status).toBe(200);
  });

  it('about an answer without an id is told which message that is: 400', async () => {
    const carl = createUser(createTestGateway(echo), 'carl');
    const messages = [
      { id: 'u1', role: 'user', parts: [] },
      { role: 'assistant', parts: [] },
    ];
    expect(await refusal(await carl.post({ id: 'c1', messages }))).toMatchObject({
      status: 400,
      message: 'messages[1] has no id.',
    });
  });
});
