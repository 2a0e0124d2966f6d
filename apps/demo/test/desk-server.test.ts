import { ChatStream } from 'sabir/client';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { DESK_SUGGESTIONS } from '../desk/suggestions.ts';
import { writeResponse } from '../desk/write-response.ts';
import { createPace } from '../flow/pace.ts';
import { createScriptedModel } from '../flow/scripted-model.ts';
import { chooseDeskModel, type Environment } from '../server/choose-model.ts';
import { createApp } from '../server/create-app.ts';
import type { ChatMessage, Question } from '../src/chat-message.ts';
import { toSources } from '../src/to-sources.ts';

type Options = { env?: Environment; answerMs?: number };
type Part = { type: string } & Record<string, unknown>;

/** The whole server, without a network around it. */
function startDesk({ env = {}, answerMs }: Options = {}) {
  const app = createApp({
    model: createScriptedModel(),
    deskModel: chooseDeskModel(env, 500),
    speed: 500,
    hasGateway: true,
    ...(answerMs !== undefined && { answerMs }),
  });
  const load = (address: string, init?: RequestInit) =>
    app.fetch(new Request(new URL(address, 'http://demo.test'), init));
  return {
    load,
    openChat: () => new ChatStream<ChatMessage>({ api: '/api/chat', fetch: load as typeof fetch }),
  };
}

type Chat = ChatStream<ChatMessage>;

const partsOf = (chat: Chat) => (chat.getSnapshot().messages.at(-1)?.parts ?? []) as Part[];
const agentsOf = (chat: Chat) =>
  partsOf(chat).flatMap(({ type, data }) =>
    type === 'data-agent' ? [(data as { name: string }).name] : [],
  );
const toolsOf = (chat: Chat) =>
  partsOf(chat).flatMap(({ type, state }) =>
    type.startsWith('tool-') ? [`${type.slice(5)} ${state}`] : [],
  );
const textOf = (chat: Chat) =>
  partsOf(chat)
    .map(({ type, text }) => (type === 'text' ? text : ''))
    .join('');
const questionOf = (chat: Chat) =>
  partsOf(chat).findLast(({ type }) => type === 'data-question')?.data as Question | undefined;

async function answerWith(chat: Chat, message: string, answer: unknown): Promise<void> {
  const sent = chat.sendMessage(message);
  await vi.waitUntil(() => questionOf(chat)?.status === 'open');
  await chat.answer({ questionId: questionOf(chat)?.questionId ?? '', answer });
  await sent;
}

describe('the scripted desk', () => {
  const { openChat, load } = startDesk();

  test('looks a question up, and cites what it found', async () => {
    const chat = openChat();
    await chat.sendMessage(DESK_SUGGESTIONS[0].message);
    expect(agentsOf(chat)).toEqual(['Triage', 'Research']);
    expect(toolsOf(chat)).toEqual([
      'transfer_to_Research output-available',
      'search_guide output-available',
      'open_archive output-error',
    ]);
    const message = chat.getSnapshot().messages.at(-1);
    expect(toSources(message?.parts ?? []).map(({ link, title }) => link?.host ?? title)).toEqual([
      'en.wikipedia.org',
      'word-list.pdf',
      'britannica.com',
    ]);
    expect(message?.metadata).toMatchObject({ outcome: 'finished' });
    expect(textOf(chat)).toContain('quotes its guide, word for word');
  });

  test.each([
    [
      'Tell me about the mistral',
      /north-westerly wind/,
      'https://en.wikipedia.org/wiki/Mistral_(wind)',
    ],
    ['lighthouse of Genoa', /Lanterna/, 'https://en.wikipedia.org/wiki/Lighthouse_of_Genoa'],
  ])('“%s” has an answer of its own', async (question, text, url) => {
    const chat = openChat();
    await chat.sendMessage(question);
    expect(textOf(chat)).toMatch(text);
    expect(partsOf(chat)).toContainEqual(expect.objectContaining({ type: 'source-url', url }));
  });

  test('says so when its guide has nothing', async () => {
    const chat = openChat();
    await chat.sendMessage('Who won the cup?');
    expect(agentsOf(chat)).toEqual(['Triage', 'Research']);
    expect(textOf(chat)).toContain('The guide has nothing on “Who won the cup?”');
    expect(textOf(chat)).toContain('scripted model');
  });

  test('answers small talk at the front desk, and knows what was said before', async () => {
    const chat = openChat();
    await chat.sendMessage('ahoy there');
    expect(agentsOf(chat)).toEqual(['Triage']);
    expect(textOf(chat)).toContain('“ahoy there”: 2 words, after no messages before it');
    await chat.sendMessage('ahoy again');
    expect(textOf(chat)).toContain('after 1 message before it');
  });

  test('hands over to Bookings, which lists what is booked', async () => {
    const chat = openChat();
    await chat.sendMessage(DESK_SUGGESTIONS[1].message);
    expect(agentsOf(chat)).toEqual(['Triage', 'Bookings']);
    expect(textOf(chat)).toMatch(/H-204.*H-311.*H-127/s);
    await chat.sendMessage('Cancel one of them');
    expect(textOf(chat)).toContain('Which one do you mean?');
    expect(questionOf(chat)).toBeUndefined();
  });

  test('cancels what it may, in this chat alone', async () => {
    const chat = openChat();
    await answerWith(chat, DESK_SUGGESTIONS[2].message, { approved: true });
    expect(questionOf(chat)).toMatchObject({
      text: 'Cancel H-204, Guest berth 12 in Marseille, and refund €96?',
      status: 'answered',
      answer: { approved: true },
    });
    expect(toolsOf(chat).at(-1)).toBe('cancel_booking output-available');
    expect(textOf(chat)).toContain('Booking **H-204** is cancelled, and €96');
    await chat.sendMessage('Cancel H-204');
    expect(textOf(chat)).toContain('is cancelled already');

    const other = openChat();
    await other.sendMessage('my bookings');
    expect(textOf(other)).not.toContain('cancelled |');
  });

  test.each([
    [{ approved: false }, 'Nothing was cancelled.'],
    [{ approved: false, reason: 'Not this week.' }, '“Not this week.”'],
    ['Deny', 'Nothing was cancelled.'],
  ])('leaves it when told %j', async (answer, text) => {
    const chat = openChat();
    await answerWith(chat, 'Cancel H-311', answer);
    expect(toolsOf(chat).at(-1)).toBe('cancel_booking output-denied');
    expect(textOf(chat)).toContain(text);
    await chat.sendMessage('my bookings');
    expect(textOf(chat)).not.toContain('cancelled |');
  });

  test('does not wait for ever', async () => {
    const chat = startDesk({ answerMs: 300 }).openChat();
    await chat.sendMessage('Cancel H-311');
    expect(questionOf(chat)).toMatchObject({ status: 'expired' });
    expect(textOf(chat)).toContain('Nobody answered in time, so I left the booking as it is.');
  });

  test('fails in plain words, and works when it is tried again', async () => {
    const chat = openChat();
    await chat.sendMessage(DESK_SUGGESTIONS[3].message);
    const { error, status } = chat.getSnapshot();
    expect(status).toBe('error');
    expect(error?.message).toBe(
      'The desk lost its connection to the model. Your message is safe: try again.',
    );
    const history = await (await load(`/api/chat/${chat.id}/messages`)).json();
    expect(history.at(-1).metadata).toMatchObject({ outcome: 'failed', reason: error?.message });
    await chat.regenerate();
    expect(textOf(chat)).toContain('This is attempt number 2, and it worked.');
    expect((await (await load('/healthz')).json()).runs).toMatchObject({ active: 0, failed: 1 });
  });
});

describe('a key', () => {
  afterEach(() => vi.unstubAllGlobals());

  test.each([
    [{}, { name: 'scripted model', isScripted: true, canSearchWeb: false }],
    [{ OPENAI_API_KEY: 'k' }, { name: 'gpt-5-mini', isScripted: false, canSearchWeb: true }],
    [
      { OPENAI_API_KEY: 'k', SABIR_MODEL: 'gpt-x' },
      { name: 'gpt-x', canSearchWeb: true },
    ],
    [{ ANTHROPIC_API_KEY: 'k' }, { name: 'claude-sonnet-4-5', canSearchWeb: false }],
    [
      { SABIR_MODEL_BASE_URL: 'http://m.test/v1/', SABIR_MODEL_API_KEY: 'k', SABIR_MODEL: 'm' },
      { name: 'm', isScripted: false, canSearchWeb: false },
    ],
  ])('%j chooses who speaks', (env, chosen) => {
    expect(chooseDeskModel(env)).toMatchObject(chosen);
  });

  test('puts the same agents and tools on a real model, which is all that is called', async () => {
    const provider = vi.fn(async (_url: string, _init: RequestInit) => {
      const beats = [{ say: 'Live words.' }];
      const signal = new AbortController().signal;
      const events = writeResponse(beats, { pace: createPace(500), signal, readCharacters: 4 });
      let body = '';
      for await (const event of events)
        body += `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    });
    vi.stubGlobal('fetch', provider);
    const chat = startDesk({ env: { OPENAI_API_KEY: 'sk-test-secret' } }).openChat();
    await chat.sendMessage('Cancel my berth');
    expect(textOf(chat)).toBe('Live words.');
    expect(provider).toHaveBeenCalledTimes(1);
    const [url, init] = provider.mock.calls[0] ?? [];
    expect(String(url)).toBe('https://api.openai.com/v1/responses');
    expect(new Headers(init?.headers).get('authorization')).toBe('Bearer sk-test-secret');
    const { model, tools } = JSON.parse(String(init?.body));
    expect(model).toBe('gpt-5-mini');
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([
      'transfer_to_Research',
      'transfer_to_Bookings',
    ]);
  });

  test('of another provider is used on the protocol that they all speak', async () => {
    const provider = vi.fn(async (_url: string, _init: RequestInit) => {
      const said = { choices: [{ index: 0, delta: { content: 'Other words.' } }] };
      const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
      const frames = [said, end].map(
        (chunk) => `data: ${JSON.stringify({ id: 'c', ...chunk })}\n\n`,
      );
      return new Response(`${frames.join('')}data: [DONE]\n\n`, {
        headers: { 'content-type': 'text/event-stream' },
      });
    });
    vi.stubGlobal('fetch', provider);
    const env = {
      SABIR_MODEL_BASE_URL: 'http://m.test/v1/',
      SABIR_MODEL: 'm',
      SABIR_MODEL_API_KEY: 'local-secret',
    };
    const chat = startDesk({ env }).openChat();
    await chat.sendMessage('hello');
    expect(textOf(chat)).toBe('Other words.');
    const [url, init] = provider.mock.calls[0] ?? [];
    expect(String(url)).toBe('http://m.test/v1/chat/completions');
    expect(new Headers(init?.headers).get('authorization')).toBe('Bearer local-secret');
    expect(JSON.parse(String(init?.body))).toMatchObject({ model: 'm', stream: true });
  });

  test('that is refused is explained, and neither the key nor the message is told to anybody', async () => {
    const said = (['log', 'info', 'warn', 'error', 'debug'] as const).map((level) =>
      vi.spyOn(console, level).mockImplementation(() => undefined),
    );
    vi.stubGlobal('fetch', async () =>
      Response.json({ error: { message: 'Incorrect key sk-test-secret' } }, { status: 401 }),
    );
    const chat = startDesk({ env: { OPENAI_API_KEY: 'sk-test-secret' } }).openChat();
    await chat.sendMessage('my private words');
    expect(chat.getSnapshot().error?.message).toBe('The model provider did not accept the key.');
    const logged = JSON.stringify(said.flatMap(({ mock }) => mock.calls));
    expect(logged).not.toMatch(/sk-test-secret|private words/);
    vi.restoreAllMocks();
  });
});
