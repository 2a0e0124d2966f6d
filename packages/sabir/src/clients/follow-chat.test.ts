/** Idle pages of every client beside one that asks, on a real gateway with a session behind it. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createApprovalAgent } from '../../test/approval-agent.ts';
import {
  control,
  startFollowServer,
  stateFrame,
  turnFrames,
  userMessage,
} from '../../test/follow-server.ts';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  ORIGIN,
} from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import { CLIENTS, type ClientName, createClient, loadSdk } from '../../test/real-clients.ts';
import type { UIMessage } from '../core/message.ts';
import { asUpstream, type ChatGateway } from '../gateway/index.ts';
import { ChatSession, type ChatSessionOptions } from './chat-session.ts';
import { ChatStream } from './chat-stream.ts';
import { ContractChatTransport } from './contract-chat-transport.ts';
import { type FollowedChat, followChat } from './follow-chat.ts';
import { SabirChatTransport } from './sabir-chat-transport.ts';

type Kind = ClientName | 'ContractChatTransport' | 'ChatStream';
const KINDS: Kind[] = [...CLIENTS.map(({ name }) => name), 'ContractChatTransport', 'ChatStream'];

const API = `${ORIGIN}/api/sessions/s1/chat`;

/** A page of one person, with what it asked the server. */
async function openPage(
  gateway: Pick<ChatGateway, 'fetch'> | typeof globalThis,
  kind: Kind,
  user = 'carl',
  { init, ...more }: Partial<ChatSessionOptions> & { init?: object } = {},
) {
  const requests: string[] = [];
  const id = more.id ?? 'c1';
  let isCut = false;
  const isContract = kind === 'ContractChatTransport' || kind === 'ChatStream';
  const api = more.api ?? (isContract ? `${API}?wire=contract` : API);
  const session = new ChatSession({
    api,
    id,
    shareAs: false,
    maxWaitMs: 20,
    headers: { authorization: `Bearer ${user}` },
    ...more,
    async fetch(input, init) {
      const request = new Request(input, init);
      requests.push(`${request.method} ${new URL(request.url).pathname.split('/').at(-1)}`);
      if (isCut) throw new TypeError('Load failed');
      return gateway.fetch(request);
    },
  });
  onTestFinished(session.open());
  const { fetch } = session;
  type ToolOutput = { tool: string; toolCallId: string; output: unknown };
  let chat: FollowedChat<UIMessage> & {
    real?: { addToolOutput(given: ToolOutput): unknown };
    send(text: string, messageId?: string): Promise<void>;
    regenerate(): Promise<void>;
  };
  if (kind === 'ChatStream') {
    const stream = new ChatStream({ api, id, fetch });
    chat = {
      ...stream,
      send: (text, messageId) => stream.sendMessage({ text, ...(messageId && { messageId }) }),
    };
  } else {
    const name = kind === 'ContractChatTransport' ? 'ai@7' : kind;
    const Transport = isContract ? ContractChatTransport : SabirChatTransport;
    const { aiSdk } = more;
    const transport = new Transport({ api, fetch, ...(aiSdk && { aiSdk }) });
    const real = await createClient(name, transport, { id, ...init });
    chat = {
      real: real.chat as never,
      getSnapshot: () => ({ messages: real.chat.messages, status: real.chat.status }),
      setMessages: (messages) => {
        real.chat.messages = messages;
      },
      resume: () => real.chat.resumeStream(),
      detach: () => real.chat.stop(),
      subscribe(listener) {
        const timer = setInterval(listener, 5);
        return () => clearInterval(timer);
      },
      send: (text, messageId) =>
        real.chat.sendMessage({ text, ...(messageId && { messageId }) } as { text: string }),
      regenerate: () => real.chat.regenerate(),
    };
  }
  onTestFinished(followChat(session, chat));
  const shown = () =>
    chat.getSnapshot().messages.map(({ role, parts }) => {
      const texts = parts.map((part) => (part.type === 'text' ? part.text : ''));
      return `${role}: ${texts.join('')}`;
    });
  const shows = (...expected: string[]) =>
    vi.waitFor(() => expect(shown()).toEqual(expected), { timeout: 5_000, interval: 5 });
  await vi.waitUntil(() => requests.includes('GET messages'));
  // The history is on the screen.
  await new Promise((resolve) => setTimeout(resolve, 30));
  const cut = (next: boolean) => {
    isCut = next;
  };
  return { ...chat, session, requests, shown, shows, cut };
}

describe.each(KINDS)('an idle page with %s', (kind) => {
  it('shows a turn of another person from the prompt on, over the connection it has', async () => {
    const { gateway, agent } = startHosted();
    const idle = await openPage(gateway, kind, 'olga');
    const asking = await openPage(gateway, kind);
    const sent = asking.send('Hello');
    const run = await agent.run();
    run.text('Ahoy');
    await idle.shows('user: Hello', 'assistant: Ahoy');
    expect(idle.getSnapshot().status).toBe('streaming');
    run.text(' there');
    await idle.shows('user: Hello', 'assistant: Ahoy there');
    run.end();
    await sent;
    await vi.waitUntil(() => idle.getSnapshot().status === 'ready');
    await asking.shows('user: Hello', 'assistant: Ahoy there');
    // The other way round.
    const answered = idle.send('And you');
    (await agent.run(1)).text('Fine');
    agent.runs[1]?.end();
    await answered;
    const all = ['user: Hello', 'assistant: Ahoy there', 'user: And you', 'assistant: Fine'];
    await asking.shows(...all);
    await idle.shows(...all);
    for (const { requests } of [idle, asking])
      expect(requests.toSorted()).toEqual([
        'GET follow',
        'GET messages',
        expect.stringMatching('POST chat'),
      ]);
  });
});

describe.each<Kind>(['ai@5', 'ai@7', 'ChatStream'])('a page with %s', (kind) => {
  it('whose prompt waits behind one of the same moment shows the other turn, then its own', async () => {
    const { gateway, agent } = startHosted();
    const init = { generateId: () => crypto.randomUUID() };
    const pages = [
      await openPage(gateway, kind, 'carl', { init }),
      await openPage(gateway, kind, 'olga', { init }),
    ];
    for (const page of pages) void page.send('Go').catch(() => undefined);
    (await agent.run()).text('First');
    for (const page of pages) await page.shows('user: Go', 'assistant: First');
    agent.runs[0]?.end();
    (await agent.run(1)).text('Second');
    const all = ['user: Go', 'assistant: First', 'user: Go', 'assistant: Second'];
    for (const page of pages) await page.shows(...all);
    agent.runs[1]?.end();
    for (const page of pages) await vi.waitUntil(() => page.getSnapshot().status === 'ready');
    for (const page of pages) await page.shows(...all);
  });

  it('opened in the middle of a turn shows it from its start, beside the history', async () => {
    const { gateway, agent } = startHosted();
    const first = await openPage(gateway, kind);
    const sent = first.send('One');
    (await agent.run()).text('1');
    agent.runs[0]?.end();
    await sent;
    void first.send('Two');
    (await agent.run(1)).text('2');
    await first.shows('user: One', 'assistant: 1', 'user: Two', 'assistant: 2');
    await first.session.enqueue('Waiting');
    const late = await openPage(gateway, kind);
    await late.shows('user: One', 'assistant: 1', 'user: Two', 'assistant: 2');
    agent.runs[1]?.text(' and a half');
    await late.shows('user: One', 'assistant: 1', 'user: Two', 'assistant: 2 and a half');
    agent.runs[1]?.end();
    (await agent.run(2)).text('3');
    await vi.waitUntil(() => late.shown().at(-1) === 'assistant: 3');
    expect(late.shown().slice(3)).toEqual([
      'assistant: 2 and a half',
      'user: Waiting',
      'assistant: 3',
    ]);
    agent.runs[2]?.end();
    await vi.waitUntil(() => late.getSnapshot().status === 'ready');
    expect(late.requests).toEqual(['GET follow', 'GET messages']);
  });

  it('that left its own answer shows all of it when it is over', async () => {
    const { gateway, agent } = startHosted();
    const page = await openPage(gateway, kind);
    void page.send('Hello').catch(() => undefined);
    const run = await agent.run();
    run.text('Ahoy');
    await page.shows('user: Hello', 'assistant: Ahoy');
    page.detach();
    await vi.waitUntil(() => page.getSnapshot().status === 'ready');
    run.text(' there');
    await vi.waitUntil(() =>
      page.session.getFollowed().turn?.frames.at(-1)?.data.includes('there'),
    );
    expect(page.shown()).toEqual(['user: Hello', 'assistant: Ahoy']);
    run.end();
    await page.shows('user: Hello', 'assistant: Ahoy there');
  });

  it('that was cut off for two turns reads the history again', async () => {
    const { gateway, agent } = startHosted();
    const page = await openPage(gateway, kind);
    const other = await openPage(gateway, 'ai@7', 'olga');
    page.cut(true);
    for (const [at, text] of ['One', 'Two'].entries()) {
      const sent = other.send(text);
      (await agent.run(at)).text(`${at + 1}`);
      agent.runs[at]?.end();
      await sent;
    }
    page.cut(false);
    await page.shows('user: One', 'assistant: 1', 'user: Two', 'assistant: 2');
  });

  it('shows a prompt that waited when its turn begins, and not one that was withdrawn', async () => {
    const { gateway, agent } = startHosted();
    const page = await openPage(gateway, kind);
    const { session } = page;
    const sent = page.send('One');
    (await agent.run()).text('1');
    await session.enqueue('Two');
    await session.enqueue('Three');
    const queue = () => session.getSnapshot().queue;
    await vi.waitUntil(() => queue().length === 2);
    expect(queue()).toMatchObject([
      { position: 1, isMine: true, message: { parts: [{ text: 'Two' }] } },
      { position: 2, isMine: true, message: { parts: [{ text: 'Three' }] } },
    ]);
    await session.withdraw(queue()[0]?.turnId as string);
    await vi.waitUntil(() => queue().length === 1);
    agent.runs[0]?.end();
    await sent;
    (await agent.run(1)).text('3');
    await page.shows('user: One', 'assistant: 1', 'user: Three', 'assistant: 3');
    await session.stop();
    await vi.waitUntil(() => !session.getSnapshot().running);
    expect(agent.runs[1]?.isAborted).toBe(true);
    await vi.waitUntil(() => page.getSnapshot().status === 'ready');
  });
});

it('sends each of two prompts that wait behind the turn of another person', async () => {
  const { gateway, agent } = startHosted();
  const page = await openPage(gateway, 'ChatStream');
  const { session } = await openPage(gateway, 'ChatStream', 'olga');
  void page.send('One');
  (await agent.run()).text('1');
  await page.shows('user: One', 'assistant: 1');
  await session.enqueue('Other');
  void page.send('Two');
  void page.send('Three');
  for (const at of [0, 1, 2, 3]) {
    const run = await agent.run(at);
    run.text(at === 0 ? '' : `${at + 1}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    run.end();
  }
  await vi.waitUntil(() => page.getSnapshot().status === 'ready');
  const asked = ['One', 'Other', 'Two', 'Three'];
  await page.shows(...asked.flatMap((text, at) => [`user: ${text}`, `assistant: ${at + 1}`]));
});

it.each([
  ['ai@6', 6],
  ['ai@7', 7],
] as const)(
  'an idle page with %s can answer an approval, and goes on when another did',
  async (kind, aiSdk) => {
    const { upstream, heard } = createApprovalAgent({ steps: [['a'], ['b']] });
    const gateway = createTestGateway(upstream);
    const idle = await openPage(gateway, kind, 'olga', { aiSdk });
    const carl = createUser(gateway, 'carl');
    void carl.post(chatBody('Pay'));
    const tool = (id: string) =>
      idle
        .getSnapshot()
        .messages.at(-1)
        ?.parts.find((part) => {
          const { toolCallId } = part as { toolCallId?: string };
          return toolCallId === `call-${id}`;
        }) as { state: string } | undefined;
    const asks = (id: string) =>
      vi.waitUntil(
        () => tool(id)?.state === 'approval-requested' && idle.getSnapshot().status === 'ready',
      );
    await asks('a');
    expect(idle.session.getSnapshot().questions).toMatchObject([{ questionId: 'a' }]);
    expect(await idle.session.answer({ questionId: 'a', answer: true })).toEqual({
      status: 'accepted',
    });
    await asks('b');
    await carl.answer('b', false);
    await vi.waitUntil(
      () => tool('b')?.state === 'output-denied' && idle.getSnapshot().status === 'ready',
    );
    expect(tool('a')?.state).toBe('output-available');
    expect(heard).toEqual({ a: true, b: false });
  },
);

describe('a question of a running turn', () => {
  /** Asks to pay, and for the port where the page is; then says what it was given, and waits. */
  const asking = (rest: Promise<void>) =>
    asUpstream(async function* ({ ask, toolOutput, text }) {
      const isTool = text === 'Where?';
      const call = { toolCallId: 'k', toolName: isTool ? 'locate' : 'pay', input: {} };
      yield { type: 'tool-input-available', ...call, ...(!isTool && { providerExecuted: true }) };
      const given = isTool
        ? await toolOutput('k')
        : await ask({ text: 'Pay?', callId: 'k', options: ['Approve', 'Deny'] });
      if (!isTool) {
        yield { type: 'tool-output-available', toolCallId: 'k', output: 1, providerExecuted: true };
      }
      yield { type: 'text-delta', delta: given.status };
      await rest;
    });

  it.each<ClientName>(['ai@5', 'ai@6.0.9', 'ai@6', 'ai@7'])(
    'for a tool of the page reaches a page with %s that was loaded again',
    async (kind) => {
      const gateway = createTestGateway(asking(Promise.resolve()));
      const first = await openPage(gateway, kind);
      void first.send('Where?');
      await vi.waitUntil(() => first.session.getSnapshot().running);
      await vi.waitUntil(() => first.getSnapshot().status === 'ready');
      const runs: unknown[] = [];
      const sdk = await loadSdk(kind);
      const page = await openPage(gateway, kind, 'carl', {
        init: {
          sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
          onToolCall: ({ toolCall }: { toolCall: { toolCallId: string } }) => {
            runs.push(toolCall);
            const { toolCallId } = toolCall;
            const output = { tool: 'locate', toolCallId, output: { port: 'Gozo' } };
            setTimeout(() => page.real?.addToolOutput(output), 100);
          },
        },
      });
      await vi.waitFor(() => expect(page.shown().at(-1)).toBe('assistant: done'), {
        timeout: 5_000,
      });
      expect(runs).toHaveLength(1);
      expect(page.requests).toContain('POST chat');
    },
  );

  it('goes on at the page that asked when another person has answered it', async () => {
    const rest = Promise.withResolvers<void>();
    const gateway = createTestGateway(asking(rest.promise));
    const page = await openPage(gateway, 'ai@7', 'carl', { aiSdk: 7 });
    const other = await openPage(gateway, 'ai@7', 'olga', { aiSdk: 7 });
    void page.send('Pay');
    const questions = () => other.session.getSnapshot().questions;
    await vi.waitUntil(() => questions().length > 0 && page.getSnapshot().status === 'ready');
    const questionId = questions()[0]?.questionId as string;
    await other.session.answer({ questionId, answer: true });
    // Before the turn is over.
    await vi.waitUntil(() => page.shown().at(-1) === 'assistant: answered', { timeout: 5_000 });
    rest.resolve();
    await vi.waitUntil(() => page.getSnapshot().status === 'ready');
  });

  it('does not end the stream of a page whose person may only watch', async () => {
    const gateway = createTestGateway(asking(Promise.resolve()));
    const page = await openPage(gateway, 'ai@7', 'vera', { aiSdk: 7 });
    const carl = createUser(gateway, 'carl');
    void carl.post(chatBody('Pay'));
    const questions = () => page.session.getSnapshot().questions;
    await vi.waitUntil(() => questions().length > 0);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(page.getSnapshot().status).toBe('streaming');
    await carl.answer(questions()[0]?.questionId as string, true);
    await vi.waitUntil(() => page.shown().at(-1) === 'assistant: answered');
  });
});

it('an idle page on the contract route shows a turn of another tab, where no history is kept', async () => {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream);
  const at = { api: `${ORIGIN}/api/chat`, id: `chat_${'7'.repeat(40)}` };
  const idle = await openPage(gateway, 'ChatStream', 'carl', at);
  const asking = await openPage(gateway, 'ChatStream', 'carl', at);
  const all: string[] = [];
  for (const [at, page] of [asking, idle].entries()) {
    const sent = page.send(`Question ${at}`);
    const run = await agent.run(at);
    run.text(`Answer ${at}`);
    run.end();
    await sent;
    all.push(`user: Question ${at}`, `assistant: Answer ${at}`);
    for (const either of [idle, asking]) await either.shows(...all);
  }
  expect(idle.session.getSnapshot()).toMatchObject({ connection: 'open', people: [], queue: [] });
});

it.each<Kind>(['ai@7', 'ChatStream'])(
  'an idle page with %s shows a regenerated answer in place of the first, and an edited prompt in place of both',
  async (kind) => {
    const { gateway, agent } = startHosted();
    const idle = await openPage(gateway, kind);
    const asking = await openPage(gateway, kind);
    const answer = async (at: number, text: string, asked: Promise<void>) => {
      (await agent.run(at)).text(text);
      agent.runs[at]?.end();
      await asked;
    };
    await answer(0, '1', asking.send('One'));
    await idle.shows('user: One', 'assistant: 1');
    await answer(1, '2', asking.regenerate());
    for (const page of [idle, asking]) await page.shows('user: One', 'assistant: 2');
    const { id: messageId } = asking.getSnapshot().messages[0] as UIMessage;
    await answer(2, '3', asking.send('Two', messageId));
    for (const page of [idle, asking]) await page.shows('user: Two', 'assistant: 3');
    expect(idle.requests).toEqual(['GET follow', 'GET messages']);
  },
);

describe('what the stored conversation has instead', () => {
  const said = (id: string, text: string): UIMessage => ({
    id,
    role: 'assistant',
    parts: [{ type: 'text', text }],
    metadata: { outcome: 'finished' },
  });
  const opening = (turnId: string, more: object) =>
    control('turn', { turnId, after: 0, startedAt: 1, history: turnId, ...more });
  const end = (turnId: string) => control('end', { turnId, outcome: 'finished' });

  async function setUp() {
    const server = await startFollowServer(({ method, path }, response) => {
      if (method !== 'POST' || !path.endsWith('/chat')) return;
      response.writeHead(400).end('{"message":"No."}');
      return true;
    });
    server.keep([userMessage('u1', 'Hi'), said('a1', 'One')]);
    const page = await openPage(globalThis, 'ai@7', 'carl', { api: server.api });
    await page.shows('user: Hi', 'assistant: One');
    return { ...server, page };
  }

  it('a regenerate and an edit by others replace what they replaced', async () => {
    const { send, page } = await setUp();
    const again = { messageId: 'a2', message: userMessage('u2', 'Hi'), replaces: 'a1' };
    await send(opening('t2', again), ...turnFrames('t2', 'a2', 'Two'), end('t2'));
    await page.shows('user: Hi', 'assistant: Two');
    const edit = { messageId: 'a3', message: userMessage('u3', 'Ho'), replaces: 'u2' };
    await send(opening('t3', edit), ...turnFrames('t3', 'a3', 'Three'), end('t3'));
    await page.shows('user: Ho', 'assistant: Three');
    expect(page.requests).toEqual(['GET follow', 'GET messages']);
  });

  it('another version of the history is read, and a prompt that was refused stays', async () => {
    const { send, keep, page } = await setUp();
    await page.send('Refused');
    await page.shows('user: Hi', 'assistant: One', 'user: Refused');
    keep([userMessage('u1', 'Hi'), said('a9', 'Nine')]);
    await send(stateFrame({ history: 'v2' }));
    await page.shows('user: Hi', 'assistant: Nine', 'user: Refused');
  });
});
