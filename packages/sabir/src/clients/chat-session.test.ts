/** How a session stands, over real sockets; sessions of one process share like tabs of one browser. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  control,
  startFollowServer,
  stateFrame,
  turnFrames,
  userMessage,
} from '../../test/follow-server.ts';
import { stubPage } from '../../test/page-events.ts';
import { ChatSession, type ChatSessionOptions } from './chat-session.ts';

const WAIT = { timeout: 10_000 };
const OPENING = { turnId: 't1', messageId: 'a1', startedAt: 1, message: userMessage('u1', 'Hi') };
const RUNNING = stateFrame({ running: 't1' });
const QUESTION = { questionId: 'q1', text: 'Cast off?', options: ['yes', 'no'] };

type Server = Awaited<ReturnType<typeof startFollowServer>>;

function enter(server: Server, options: Partial<ChatSessionOptions> = { shareAs: false }) {
  const session = new ChatSession({ api: server.api, id: 'c1', maxWaitMs: 20, ...options });
  const close = session.open();
  onTestFinished(close);
  const state = session.getSnapshot;
  const is = (check: () => unknown) => vi.waitUntil(check, WAIT);
  const isOpen = () => is(() => state().connection === 'open');
  return { session, close, state, is, isOpen };
}

describe('ChatSession', () => {
  it('tells who is there, what waits, which turn runs and what it asks', async () => {
    const server = await startFollowServer();
    const heard: unknown[] = [];
    const { session, state, is, isOpen } = enter(server, { onEvent: (event) => heard.push(event) });
    expect(state()).toMatchObject({ connection: 'connecting', people: [], queue: [] });
    await isOpen();
    const queued = { turnId: 't2', messageId: 'a2', position: 1, message: userMessage('u2', 'Go') };
    await server.send(
      stateFrame({ running: 't1', people: [{ id: 'olga' }], queue: [{ ...queued, isMine: true }] }),
      control('turn', { ...OPENING, after: 0 }),
      `id: t1:1\ndata: {"type":"start","messageId":"a1"}\n\n`,
      `id: t1:2\ndata: ${JSON.stringify({ type: 'data-question', id: 'q1', data: QUESTION })}\n\n`,
      control('event', { event: { type: 'title', title: 'Harbour' } }),
    );
    await is(() => state().events.title);
    expect(state()).toMatchObject({
      me: { id: 'olga', role: 'owner' },
      people: [{ id: 'olga' }],
      queue: [{ ...queued, isMine: true }],
      running: OPENING,
      questions: [QUESTION],
      isAgentConnected: true,
      events: { title: { type: 'title', title: 'Harbour' } },
    });
    expect(heard).toEqual([{ type: 'title', title: 'Harbour' }]);
    await session.answer({ questionId: 'q1', answer: 'yes' });
    await session.withdraw('t2');
    await session.stop();
    await session.enqueue('Ahoy');
    expect(
      server.requests.slice(1).map(({ path, body }) => [path.split('/').at(-1), body]),
    ).toEqual([
      ['answer', { questionId: 'q1', answer: 'yes' }],
      ['stop', { turnId: 't2' }],
      ['stop', { turnId: 't1' }],
      [
        'chat',
        expect.objectContaining({
          id: 'c1',
          messages: [expect.objectContaining({ role: 'user' })],
        }),
      ],
    ]);
    const answered = { ...QUESTION, status: 'answered' };
    await server.send(
      `id: t1:3\ndata: ${JSON.stringify({ type: 'data-question', id: 'q1', data: answered })}\n\n`,
    );
    await is(() => state().questions.length === 0);
    await server.send(control('end', { turnId: 't1', outcome: { status: 'finished' } }));
    await is(() => !state().running);
  });

  it('gives the same state while only words come', async () => {
    const server = await startFollowServer();
    const { session, state, is, isOpen } = enter(server);
    await isOpen();
    await server.send(stateFrame({ running: 't1' }), control('turn', { ...OPENING, after: 0 }));
    await is(() => state().running);
    const before = state();
    await server.send(...turnFrames('t1', 'a1', 'Ahoy').slice(0, 4));
    await is(() => session.getFollowed().turn?.seq === 4);
    expect(state()).toBe(before);
  });

  it('comes back with its cursor, and takes no frame twice', async () => {
    const server = await startFollowServer();
    const { session, is, isOpen } = enter(server);
    await isOpen();
    const frames = turnFrames('t1', 'a1', 'Ahoy');
    await server.send(control('turn', { ...OPENING, after: 0 }), ...frames.slice(0, 3));
    await is(() => session.getFollowed().turn?.seq === 3);
    server.begin(RUNNING + control('turn', { ...OPENING, after: 0 }) + frames.join(''));
    server.cut();
    await is(() => session.getFollowed().turn?.seq === 5);
    expect(server.follows().at(-1)?.headers['last-event-id']).toBe('t1:3');
    expect(session.getFollowed().turn?.frames).toHaveLength(5);
  });

  it('says that it is offline while the server is dead, and goes on when it is back', async () => {
    const server = await startFollowServer();
    const { session, isOpen, state, is } = enter(server);
    const seen = new Set<string>();
    session.subscribe(() => seen.add(state().connection));
    await isOpen();
    await server.stop();
    await is(() => state().connection === 'offline');
    await server.start();
    await isOpen();
    expect([...seen]).toEqual(['open', 'reconnecting', 'offline']);
  });

  it('says why it is refused, and asks again when the page is shown again', async () => {
    const page = stubPage();
    let isAllowed = false;
    const server = await startFollowServer((_seen, response) => {
      if (isAllowed) return;
      response.writeHead(403).end('{"code":"no-access","message":"Not for you."}');
      return true;
    });
    const { state, is, isOpen } = enter(server);
    await is(() => state().connection === 'refused');
    expect(state().error).toMatchObject({ message: 'Not for you.', status: 403 });
    isAllowed = true;
    page.fire('visibilitychange');
    await isOpen();
    expect(state().error).toBeUndefined();
  });

  it('asks for a token once more before it takes a 401 for an answer', async () => {
    let asked = 0;
    const server = await startFollowServer(({ headers }, response) => {
      if (headers.authorization === 'Bearer 2') return;
      response.writeHead(401).end('{}');
      return true;
    });
    const headers = () => ({ authorization: `Bearer ${++asked}` });
    await enter(server, { headers, shareAs: false }).isOpen();
    expect(server.follows()).toHaveLength(2);
  });

  it('connects once its headers can be had', async () => {
    const server = await startFollowServer();
    let asked = 0;
    const headers = () => {
      if (++asked < 3) throw new Error('The token server is away.');
      return { authorization: 'Bearer a' };
    };
    const { isOpen } = enter(server, { headers });
    await isOpen();
    expect(server.follows()).toHaveLength(1);
  });

  it('connects anew with other headers, and when it is asked to', async () => {
    const server = await startFollowServer(({ headers }, response) => {
      if (headers.authorization === 'Bearer b') return;
      response.writeHead(401).end('{}');
      return true;
    });
    const { session, state, is, isOpen } = enter(server, {
      headers: { authorization: 'Bearer a' },
    });
    await is(() => state().connection === 'refused');
    session.configure({ headers: { authorization: 'Bearer b' } });
    await isOpen();
    session.configure({ headers: { authorization: 'Bearer b' } });
    const before = server.follows().length;
    session.reconnect();
    await is(() => server.follows().length === before + 1);
    await is(() => server.streams.length === 1);
  });

  it('keeps its connection and its frames when onEvent or a subscriber throws', async () => {
    const thrown: unknown[] = [];
    const original = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => thrown.push(error));
    onTestFinished(() => {
      process.removeAllListeners('uncaughtException');
      for (const listener of original) process.on('uncaughtException', listener);
    });
    const server = await startFollowServer();
    const { session, is, isOpen } = enter(server, {
      shareAs: false,
      onEvent: () => {
        throw new Error('no');
      },
    });
    await isOpen();
    session.subscribe(() => {
      throw new Error('cannot render');
    });
    await server.send(
      control('turn', { ...OPENING, after: 0 }),
      control('event', { event: { type: 'title', title: 'Harbour' } }),
      ...turnFrames('t1', 'a1', 'Ahoy'),
    );
    await is(() => session.getFollowed().turn?.seq === 5 && thrown.length > 1);
    expect(server.follows()).toHaveLength(1);
  });

  it('connects where the browser lacks AbortSignal.any, and takes headers that it cannot send', async () => {
    const { any } = AbortSignal;
    onTestFinished(() => void Object.assign(AbortSignal, { any }));
    Object.assign(AbortSignal, { any: undefined });
    const server = await startFollowServer();
    const { session, isOpen } = enter(server, { headers: { authorization: 'Bearer a' } });
    await isOpen();
    session.configure({ headers: { 'x-user': 'Łukasz' } });
    session.configure({ headers: new Headers({ authorization: 'Bearer b' }) });
    await isOpen();
  });

  it.each([
    [
      'was approved in its step',
      { type: 'tool-approval-response', approvalId: 'q', approved: true },
    ],
    ['has its output', { type: 'tool-output-available', toolCallId: 'k', output: 1 }],
    [
      'was answered in words',
      { type: 'data-question', id: 'q', data: { questionId: 'q', status: 'answered' } },
    ],
  ] as const)('does not take a call for waiting that %s', async (_, settled) => {
    const server = await startFollowServer();
    const { session, is, isOpen } = enter(server);
    await isOpen();
    const chunks = [
      { type: 'start', messageId: 'a1' },
      { type: 'tool-input-available', toolCallId: 'k', toolName: 'pay', input: {} },
      { type: 'tool-approval-request', approvalId: 'q', toolCallId: 'k' },
      settled,
      { type: 'finish-step' },
    ];
    const frames = chunks.map((chunk, i) => `id: t1:${i + 1}\ndata: ${JSON.stringify(chunk)}\n\n`);
    await server.send(control('turn', { ...OPENING, after: 0 }), ...frames);
    await is(() => session.getFollowed().turn?.seq === 5);
    expect(session.getFollowed().turn?.pausedAt).toBeUndefined();
  });

  it('waits longer and longer for a server that opens each stream and ends it', async () => {
    const server = await startFollowServer(({ path }, response) => {
      if (!path.endsWith('/follow')) return;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stateFrame());
      return true;
    });
    vi.spyOn(Math, 'random').mockReturnValue(1);
    onTestFinished(() => void vi.restoreAllMocks());
    enter(server, { shareAs: false, maxWaitMs: 10_000 });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    // At once, after 500 ms and after 1,000 ms more.
    expect(server.follows()).toHaveLength(3);
  });

  it('leaves when all who opened it have left', async () => {
    const server = await startFollowServer();
    const { session, close, isOpen, is } = enter(server);
    const closeOther = session.open();
    await isOpen();
    close();
    close();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(server.streams).toHaveLength(1);
    closeOther();
    await is(() => server.streams.length === 0);
  });
});

describe('tabs of one browser', () => {
  const SHARED = { shareAs: 'olga' };
  /** A tab with a token of its own. */
  const enterWith = (server: Server, token: string) =>
    enter(server, { ...SHARED, headers: () => ({ authorization: `Bearer ${token}` }) });

  it('share one connection, and a tab that comes late gets all of the running turn', async () => {
    const server = await startFollowServer();
    const one = enter(server, SHARED);
    await one.isOpen();
    const frames = turnFrames('t1', 'a1', 'Ahoy');
    await server.send(
      stateFrame({ running: 't1', people: [{ id: 'olga' }] }),
      control('turn', { ...OPENING, after: 0 }),
      ...frames.slice(0, 3),
    );
    await one.is(() => one.session.getFollowed().turn?.seq === 3);
    const two = enter(server, SHARED);
    await two.isOpen();
    expect(two.state()).toMatchObject({ running: OPENING, people: [{ id: 'olga' }] });
    await server.send(...frames.slice(3));
    await two.is(() => two.session.getFollowed().turn?.seq === 5);
    expect(two.session.getFollowed().turn?.frames).toEqual(one.session.getFollowed().turn?.frames);
    expect(server.follows()).toHaveLength(1);
  });

  it('hand the connection over from their cursor when the tab that has it closes', async () => {
    const server = await startFollowServer();
    const one = enter(server, SHARED);
    await one.isOpen();
    const two = enter(server, SHARED);
    await two.isOpen();
    const frames = turnFrames('t1', 'a1', 'Ahoy');
    await server.send(control('turn', { ...OPENING, after: 0 }), ...frames.slice(0, 3));
    await two.is(() => two.session.getFollowed().turn?.seq === 3);
    server.begin(RUNNING + control('turn', { ...OPENING, after: 3 }));
    one.close();
    await two.is(() => server.follows().length === 2);
    await server.send(...frames.slice(3));
    await two.is(() => two.session.getFollowed().turn?.seq === 5);
    expect(server.follows()[1]?.headers['last-event-id']).toBe('t1:3');
    expect(server.streams).toHaveLength(1);
  });

  it('take the connection from a tab that is suspended', async () => {
    const page = stubPage();
    const server = await startFollowServer();
    const frozen = enter(server, SHARED);
    await frozen.isOpen();
    const two = enter(server, SHARED);
    await two.isOpen();
    // A suspended tab keeps its lock, and answers nothing.
    vi.spyOn(BroadcastChannel.prototype, 'postMessage').mockImplementationOnce(() => undefined);
    page.fire('visibilitychange');
    await two.is(() => server.follows().length === 2);
    await two.is(() => server.streams.length === 1);
    await two.isOpen();
  });

  it('leave the connection to the next tab when the server refuses the one that has it', async () => {
    const page = stubPage();
    let token = 'new';
    const server = await startFollowServer(({ headers }, response) => {
      if (headers.authorization === `Bearer ${token}`) return;
      response.writeHead(401).end('{}');
      return true;
    });
    const old = enterWith(server, 'old');
    await old.is(() => old.state().connection === 'refused');
    const two = enterWith(server, 'new');
    await two.isOpen();
    await old.isOpen();
    expect(server.streams).toHaveLength(1);
    // The refused one may lead again when it is shown.
    token = 'old';
    page.fire('visibilitychange');
    two.close();
    await old.is(() => server.streams.length === 1);
    await old.isOpen();
  });

  it('do not steal from a hidden tab that is accepted when the server has refused them', async () => {
    const server = await startFollowServer(({ headers }, response) => {
      if (headers.authorization === 'Bearer new') return;
      response.writeHead(401).end('{}');
      return true;
    });
    const { postMessage } = BroadcastChannel.prototype;
    onTestFinished(() => void Object.assign(BroadcastChannel.prototype, { postMessage }));
    Object.assign(BroadcastChannel.prototype, {
      postMessage(this: BroadcastChannel, message: object) {
        postMessage.call(this, 'isHidden' in message ? { ...message, isHidden: true } : message);
      },
    });
    const old = enterWith(server, 'old');
    await old.is(() => old.state().connection === 'refused');
    const two = enterWith(server, 'new');
    await two.isOpen();
    await old.isOpen();
    const before = server.follows().length;
    for (let round = 0; round < 3; round++) {
      await server.send(stateFrame({ history: `v${round}` }));
      await old.is(() => old.session.getFollowed().history === `v${round}`);
    }
    expect(server.follows()).toHaveLength(before);
  });

  it('of another user than before have another connection', async () => {
    const server = await startFollowServer();
    const one = enter(server, SHARED);
    const two = enter(server, SHARED);
    await one.isOpen();
    await two.isOpen();
    expect(server.streams).toHaveLength(1);
    two.session.configure({ shareAs: 'carl' });
    await two.is(() => server.streams.length === 2);
  });

  it('connect by themselves where locks are forbidden', async () => {
    const server = await startFollowServer();
    const forbidden = new DOMException('no', 'SecurityError');
    const request = vi.spyOn(navigator.locks, 'request').mockRejectedValue(forbidden);
    onTestFinished(() => request.mockRestore());
    await enter(server, SHARED).isOpen();
    await enter(server, SHARED).isOpen();
    expect(server.follows()).toHaveLength(2);
  });

  it('with other headers, another chat or none to share have connections of their own', async () => {
    const server = await startFollowServer();
    for (const options of [
      { ...SHARED },
      { ...SHARED, id: 'c2' },
      { ...SHARED, aiSdk: 7 as const },
      { shareAs: 'carl' },
      { shareAs: false as const },
      // People who sign in by cookie: nothing says whether they are the same.
      {},
      {},
      { headers: [['x-tenant', 'harbour'] as [string, string]] },
      { headers: { authorization: 'Bearer a' } },
      { headers: { authorization: 'Bearer b' } },
    ])
      await enter(server, options).isOpen();
    expect(server.follows()).toHaveLength(10);
  });
});
