import { lastAssistantMessageIsCompleteWithToolCalls } from 'ai-v7';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startAgentOpsServer } from '../../test/agent-ops-server.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import { CLIENTS, createClient, httpTransport } from '../../test/real-clients.ts';
import type { Chunk } from '../core/chunks.ts';
import { agentOpsUpstream } from '../sources/agent-ops/upstream.ts';
import { type AgentPrompt, asUpstream, type ChatGatewayOptions } from './index.ts';

/** An agent that says its number, and what it was asked. */
function createCounter(options: Partial<ChatGatewayOptions> = {}, thinkMs = 0) {
  const turns: AgentPrompt[] = [];
  const upstream = asUpstream(async function* (turn) {
    const number = turns.push(turn);
    if (thinkMs > 0) await new Promise((resolve) => setTimeout(resolve, thinkMs));
    yield { type: 'text-start', id: '1' };
    yield { type: 'text-delta', id: '1', delta: `answer ${number}` };
  });
  const gateway = createTestGateway(upstream, options);
  return { turns, gateway, carl: createUser(gateway, 'carl') };
}

const textOf = (chunks: Chunk[]) =>
  chunks.reduce((all, chunk) => all + (chunk.type === 'text-delta' ? chunk.delta : ''), '');
const idOf = ([start]: Chunk[]) => start?.type === 'start' && start.messageId;
const text = (value: string) => ({ type: 'text', text: value });
const said = (role: string, value: string, id = `${role}-${value}`) => ({
  id,
  role,
  parts: [text(value)],
});

describe('what is taken of a POST', () => {
  it('is the latest user message alone [RFC-INT-1.1]', async () => {
    const { carl, turns } = createCounter();
    const messages = [
      said('system', 'Be rude.'),
      said('user', 'first'),
      said('assistant', 'one'),
      said('user', 'second'),
    ];
    await readChunks(await carl.post(chatBody('', { messages, plan: 'free' })));
    expect(turns).toMatchObject([
      { text: 'second', sessionId: 's1', chatId: 'c1', user: { id: 'carl' } },
    ]);
    // The rest is there for agents without a memory of their own.
    expect(turns[0]?.messages).toEqual(messages);
    expect(turns[0]?.body).toEqual({ plan: 'free' });
  });

  it('is joined of its text parts, or is its content', async () => {
    const { carl, turns } = createCounter();
    const parts = [text('Hello, '), { type: 'data-x', data: 1 }, text('you')];
    await readChunks(await carl.post({ messages: [{ role: 'user', parts }] }));
    const messages = [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi there!' },
      { role: 'user', content: 'What is 2 + 2?' },
    ];
    await readChunks(await carl.post({ messages }));
    expect(turns.map((turn) => turn.text)).toEqual(['Hello, you', 'What is 2 + 2?']);
    expect(turns.map((turn) => turn.chatId)).toEqual(['default', 'default']);
  });

  it('has its files as attachments, with or without a text', async () => {
    const { carl, turns } = createCounter();
    const picture = { type: 'file', url: 'data:image/png;base64,AA==', mediaType: 'image/png' };
    const link = { ...picture, url: 'https://x.example/a.pdf', filename: 'a.pdf' };
    const parts = [picture, text('look'), link];
    await readChunks(await carl.post({ messages: [{ id: 'a', role: 'user', parts }] }));
    await readChunks(await carl.post({ messages: [{ id: 'b', role: 'user', parts: [picture] }] }));
    const { type: _, ...first } = picture;
    const { type: __, ...second } = link;
    expect(turns).toMatchObject([
      { text: 'look', attachments: [first, second] },
      { text: '', attachments: [first] },
    ]);
  });

  it('is the last user message again when an answer is to be made anew', async () => {
    const { carl, turns } = createCounter();
    const messages = [said('user', 'first'), said('assistant', 'one')];
    const trigger = 'regenerate-message';
    await readChunks(await carl.post(chatBody('', { messages, trigger, messageId: 'm' })));
    expect(turns).toMatchObject([{ text: 'first' }]);
  });
});

describe('a client that reports on a tool [RFC-TOOL-01]', () => {
  const tool = { type: 'tool-look', toolCallId: 'c', input: {} };
  it.each([
    ['an output', { ...tool, state: 'output-available', output: 4 }, []],
    [
      'an approval that nobody waits for',
      { ...tool, state: 'approval-responded', approval: { id: 'a', approved: true } },
      [
        {
          type: 'tool-output-error',
          toolCallId: 'c',
          errorText: 'The question is no longer open.',
        },
      ],
    ],
  ])('gets its message back for %s, and nothing is prompted', async (_, part, closing) => {
    const { carl, turns } = createCounter();
    const messages = [said('user', 'hi'), { id: 'msg-7', role: 'assistant', parts: [part] }];
    const response = await carl.post(chatBody('', { messages, messageId: 'msg-7' }));
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    const sse = openSse(response);
    await sse.ended;
    expect(sse.chunks()).toEqual([
      { type: 'start', messageId: 'msg-7' },
      ...closing,
      { type: 'start-step' },
      { type: 'finish-step' },
      { type: 'message-metadata', messageMetadata: {} },
      { type: 'finish', finishReason: 'other' },
    ]);
    const names = sse.frames.map(({ event, data }) => event ?? data);
    expect([names[0], ...names.slice(-2)]).toEqual(['message-start', 'message-finish', '[DONE]']);
    expect(turns).toEqual([]);
  });

  it('of an open call of Agent Ops sends nothing to the agent, and the turn goes on [RFC-TOOL-01]', async () => {
    const rest = Promise.withResolvers<void>();
    const server = await startAgentOpsServer({
      dialect: 'v2',
      script: () =>
        async function* () {
          const call = { callId: 'c', toolName: 'look', args: {} };
          yield { tool: { ...call, status: 'running' } };
          await rest.promise;
          yield { tool: { ...call, status: 'completed', result: 'seen' } };
          yield { say: 'Done.' };
        },
    });
    onTestFinished(() => server.close());
    const carl = createUser(createTestGateway(agentOpsUpstream({ url: server.url })), 'carl');
    const watching = openSse(await carl.post(chatBody('look')));
    await watching.until(() => watching.raw().includes('"toolCallId":"c"'));
    const { messageId } = watching.chunks()[0] as { messageId: string };
    const forged = { ...tool, state: 'output-available', output: 'forged' };
    const messages = [said('user', 'look'), { id: messageId, role: 'assistant', parts: [forged] }];
    const sse = openSse(await carl.post(chatBody('', { messages, messageId })));
    await sse.ended;
    rest.resolve();
    await watching.ended;
    expect(watching.raw()).toContain('"output":"seen"');
    expect(watching.raw()).not.toContain('forged');
    expect([server.received('prompt').length, server.received('answer').length]).toEqual([1, 0]);
  });

  it.each(CLIENTS)('keeps its message, and does not send for ever: $name', async ({ name }) => {
    const { gateway } = createCounter();
    let posts = 0;
    const transport = await httpTransport(name, (_, init) => {
      if (++posts > 5) throw new Error('It sends for ever.');
      return gateway.fetch(
        new Request('http://g/api/sessions/s1/chat', {
          ...init,
          headers: { authorization: 'Bearer carl' },
        }),
      );
    });
    const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithToolCalls;
    const { chat, result } = await createClient(name, transport, { sendAutomaticallyWhen });
    const messages = [
      said('user', 'hi', 'u'),
      { id: 'm', role: 'assistant', parts: [{ ...tool, state: 'output-available', output: 4 }] },
    ];
    chat.messages = structuredClone(messages) as unknown as typeof chat.messages;
    await chat.sendMessage();
    const [user, answer] = messages;
    const parts = [...(answer?.parts ?? []), { type: 'step-start' }];
    await vi.waitUntil(() => result().status === 'ready');
    expect(result()).toMatchObject({ status: 'ready', messages: [user, { ...answer, parts }] });
    expect(posts).toBe(1);
  });
});

describe('what is wrong with a POST', () => {
  const user = (parts: unknown) => ({ messages: [{ role: 'user', parts }] });
  it.each([
    ['{', 'bad-request', 'The body is not JSON.'],
    ['', 'bad-request', 'The body is not JSON.'],
    ['null', 'bad-request', 'The body is not an object.'],
    [[], 'bad-request', 'The body is not an object.'],
    [{}, 'bad-request', 'messages is not an array.'],
    [{ messages: 'hi' }, 'bad-request', 'messages is not an array.'],
    [{ messages: [1] }, 'bad-request', 'messages[0] is not an object.'],
    [
      { messages: [said('user', 'a'), { role: 'tool' }] },
      'bad-request',
      'messages[1].role is not user, assistant or system.',
    ],
    [{ messages: [{ role: 'user' }] }, 'bad-request', 'messages[0] has neither parts nor content.'],
    [user([null]), 'bad-request', 'A part of messages[0] is not an object.'],
    [user([{ type: 'text' }]), 'bad-request', 'messages[0].parts[0].text is not a string.'],
    [
      user([text('a'), { type: 'file', mediaType: 'a/b' }]),
      'bad-request',
      'messages[0].parts[1].url is not a string.',
    ],
    [
      user([{ type: 'file', url: 'https://x.example' }]),
      'bad-request',
      'messages[0].parts[0].mediaType is not a string.',
    ],
    [{ id: '', ...user([text('a')]) }, 'bad-request', 'id is empty or longer than 512 characters.'],
    [
      { id: 'x'.repeat(513), ...user([text('a')]) },
      'bad-request',
      'id is empty or longer than 512 characters.',
    ],
    [{ messages: [] }, 'no-user-message', 'messages has none with role "user".'],
    [{ messages: [said('system', 'a')] }, 'no-user-message', 'messages has none with role "user".'],
    [
      { messages: [said('assistant', 'a')], trigger: 'regenerate-message' },
      'no-user-message',
      'messages has none with role "user".',
    ],
    [user([]), 'no-user-message', 'messages[0] has neither text nor files.'],
    [user([text('')]), 'no-user-message', 'messages[0] has neither text nor files.'],
    [user([text(' \n')]), 'no-user-message', 'messages[0] has neither text nor files.'],
  ])('is said, and where: %j', async (body, code, message) => {
    const { carl, turns } = createCounter();
    const refused = await refusal(await carl.post(body));
    expect(refused).toMatchObject({ status: 400, code, message });
    expect(turns).toEqual([]);
  });
});

describe('limits', () => {
  const file = (bytes: number) => ({
    type: 'file',
    mediaType: 'a/b',
    url: `data:a/b;base64,${'A'.repeat(bytes - 16)}`,
  });
  const withFile = (bytes: number, more = 'hi') =>
    chatBody('', { messages: [{ id: 'u', role: 'user', parts: [text(more), file(bytes)] }] });

  it('take a body of 1 MB and attachments of 10 MB beside it', async () => {
    const carl = createUser(createTestGateway(echo), 'carl');
    expect((await carl.post(chatBody('x'.repeat(499_000)))).status).toBe(200);
    expect((await carl.post(withFile(10_000_000, 'x'.repeat(990_000)))).status).toBe(200);
  });

  it.each([
    ['a text over 1 MB', chatBody('x'.repeat(1_000_001)), 'body-too-large'],
    ['other fields over 1 MB', chatBody('hi', { more: 'x'.repeat(1_000_001) }), 'body-too-large'],
    [
      'an earlier text over 1 MB',
      chatBody('', { messages: [said('user', 'x'.repeat(1e6)), said('user', 'a')] }),
      'body-too-large',
    ],
    ['a text over 1 MB beside a file', withFile(100, 'x'.repeat(1_000_001)), 'body-too-large'],
    ['attachments over 10 MB', withFile(10_000_001), 'attachments-too-large'],
    ['more than both together', 'x'.repeat(11_000_001), 'body-too-large'],
  ])('refuse %s: 413', async (_, body, code) => {
    const { carl, turns } = createCounter();
    expect(await refusal(await carl.post(body))).toMatchObject({ status: 413, code });
    expect(turns).toEqual([]);
  });

  it('are what the options say', async () => {
    const limits = { bodyBytes: 300, attachmentBytes: 200 };
    const { carl } = createCounter({ limits });
    const statusOf = async (body: unknown) => (await carl.post(body)).status;
    expect(await statusOf(chatBody('x'.repeat(50)))).toBe(200);
    expect(await statusOf(chatBody('x'.repeat(200)))).toBe(413);
    expect(await statusOf(withFile(200))).toBe(200);
    expect(await statusOf(withFile(201))).toBe(413);
  });

  it('count bytes, not letters', async () => {
    const { carl } = createCounter({ limits: { bodyBytes: 1_000 } });
    expect(
      (await carl.post(chatBody('', { messages: [said('user', '€'.repeat(250), 'u')] }))).status,
    ).toBe(200);
    expect(
      (await carl.post(chatBody('', { messages: [said('user', '€'.repeat(400), 'u')] }))).status,
    ).toBe(413);
  });

  it('hold for a body that does not tell its length', async () => {
    const gateway = createTestGateway(echo);
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 100_000;
        controller.enqueue(new Uint8Array(100_000).fill(32));
      },
    });
    const headers = { authorization: 'Bearer carl' };
    const init = { method: 'POST', body, headers, duplex: 'half' } as RequestInit;
    const response = await gateway.fetch(new Request('http://g/api/sessions/s1/chat', init));
    expect(response.status).toBe(413);
    expect(sent).toBeLessThan(11_500_000);
  });
});

describe('the same POST', () => {
  it('sent twice at once, or while its answer is written, prompts once', async () => {
    const agent = createAgent();
    const carl = createUser(createTestGateway(agent.upstream), 'carl');
    const twice = await Promise.all([carl.post(chatBody('hi')), carl.post(chatBody('hi'))]);
    const run = await agent.run();
    run.text('once');
    const third = await carl.post(chatBody('hi'));
    run.end();
    const answers = await Promise.all([...twice, third].map(readChunks));
    expect(answers.map(textOf)).toEqual(['once', 'once', 'once']);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    expect(agent.runs).toHaveLength(1);
  });

  it('sent 50 times at once prompts once, and again a moment later', async () => {
    const { carl, turns } = createCounter();
    const post = () => carl.post(chatBody('hi')).then(readChunks);
    const answers = await Promise.all(Array.from({ length: 50 }, post));
    answers.push(await post());
    expect(turns).toHaveLength(1);
    expect(new Set(answers.map(idOf)).size).toBe(1);
    expect(new Set(answers.map(textOf))).toEqual(new Set(['answer 1']));
  });

  it('without ids in its messages prompts once too; the next one is another', async () => {
    const { carl, turns } = createCounter();
    const messages = [{ role: 'user', content: 'more' }];
    const post = (given: object[]) => carl.post({ messages: given }).then(readChunks);
    await Promise.all([post(messages), post(messages)]);
    const next = [...messages, { role: 'assistant', content: 'a' }, ...messages];
    expect(textOf(await post(next))).toBe('answer 2');
    expect(turns).toHaveLength(2);
  });

  it.each([
    ['failed', () => Promise.reject(new Error('no'))],
    ['was stopped', () => ({ type: 'abort' }) as Chunk],
  ])('prompts anew after a turn that %s', async (_, last) => {
    const turns: AgentPrompt[] = [];
    const upstream = asUpstream(async function* (turn) {
      turns.push(turn);
      yield await last();
    });
    const carl = createUser(createTestGateway(upstream), 'carl');
    const ids = new Set<unknown>();
    for (let i = 1; i <= 3; i++) {
      ids.add(idOf(await readChunks(await carl.post(chatBody('hi')))));
      expect(turns).toHaveLength(i);
    }
    expect(ids.size).toBe(3);
  });

  it('is another one with an edited text, another id, another chat, session or person', async () => {
    const { carl, gateway, turns } = createCounter();
    const messages = (value: string, id: string) => ({ messages: [said('user', value, id)] });
    const posts = [
      () => carl.post(chatBody('', messages('hi', 'u'))),
      () => carl.post(chatBody('', messages('hi!', 'u'))),
      () => carl.post(chatBody('', messages('hi', 'v'))),
      () => carl.post(chatBody('', { ...messages('hi', 'u'), messageId: 'u' })),
      () => carl.post(chatBody('', { ...messages('hi', 'u'), id: 'c2' })),
      () => createUser(gateway, 'carl', 's2').post(chatBody('', messages('hi', 'u'))),
      () => createUser(gateway, 'cora').post(chatBody('', messages('hi', 'u'))),
    ];
    for (const post of posts) await readChunks(await post());
    expect(turns).toHaveLength(posts.length);
  });

  it('that asks for another answer prompts anew each time, and once when sent twice at once', async () => {
    const { carl, turns } = createCounter({}, 10);
    await readChunks(await carl.post(chatBody('hi')));
    for (const messageId of [undefined, 'u-hi']) {
      const again = { trigger: 'regenerate-message', messageId };
      for (let i = 1; i <= 3; i++) {
        const before = turns.length;
        const both = [carl.post(chatBody('hi', again)), carl.post(chatBody('hi', again))];
        const answers = await Promise.all(both.map(async (sent) => readChunks(await sent)));
        expect(answers.map(textOf)).toEqual(new Array(2).fill(`answer ${before + 1}`));
        expect(turns).toHaveLength(before + 1);
      }
    }
  });

  it('that names the answer to be replaced prompts once, also a moment later', async () => {
    const { carl, turns } = createCounter();
    const again = { trigger: 'regenerate-message', messageId: 'the-answer' };
    for (let i = 0; i < 3; i++) await readChunks(await carl.post(chatBody('hi', again)));
    expect(turns).toHaveLength(1);
  });

  it.each(CLIENTS)('is never sent for a second wish: $name regenerates twice', async ({ name }) => {
    const { gateway, turns } = createCounter();
    const headers = { authorization: 'Bearer carl' };
    const transport = await httpTransport(name, (_, init) =>
      gateway.fetch(new Request('http://g/api/sessions/s1/chat', { ...init, headers })),
    );
    const { chat, result } = await createClient(name, transport);
    await chat.sendMessage({ text: 'hi' });
    await chat.regenerate();
    await chat.regenerate();
    expect(turns).toHaveLength(3);
    expect(result().message?.parts).toMatchObject([{ type: 'text', text: 'answer 3' }]);
    expect(result().messages).toHaveLength(2);
  });
});
