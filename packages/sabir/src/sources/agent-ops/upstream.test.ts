import { describe, expect, it } from 'vitest';
import { agentOpsPerTest, SOCKETS } from '../../../test/agent-ops-rig.ts';
import { type Script, say, sayWhen, steps } from '../../../test/agent-ops-script.ts';
import { ann, promptOf, until, watch } from '../../../test/upstream-turn.ts';
import { foldChunks } from '../../core/fold.ts';
import { agentOpsUpstream } from './upstream.ts';

const { start, openAt } = agentOpsPerTest();

describe('what is sent', () => {
  it.each(Object.entries(SOCKETS))(
    'finds the session and proves who asks (%s)',
    async (_, WebSocket) => {
      const server = await start();
      const token = async ({ id }: { id: string }) => `secret of ${id}`;
      await openAt({ url: `${server.httpUrl}/` }, { token, WebSocket }, 'a/b ?');
      await openAt({ url: `${server.url}/api/sessions/:id/ws?role=client` }, { WebSocket });
      await openAt({ url: `${server.httpUrl}/api/sessions/{sessionId}/ws` }, { WebSocket });
      // A function is given the id as it is.
      const url = (id: string) =>
        `${server.url}/api/sessions/${encodeURIComponent(id)}/ws?by=function`;
      await openAt({ url: '' }, { url, WebSocket }, 'x y/%');
      expect(server.connections.map((connection) => connection.url)).toEqual([
        '/api/sessions/a%2Fb%20%3F/ws?role=client',
        '/api/sessions/s/ws?role=client',
        '/api/sessions/s/ws',
        '/api/sessions/x%20y%2F%25/ws?by=function',
      ]);
      expect(server.connections[0]?.headers.authorization).toBe('Bearer secret of ann');
      expect(server.connections[1]?.headers.authorization).toBeUndefined();
    },
  );

  it.each(Object.entries(SOCKETS))('offers subprotocols (%s)', async (_, WebSocket) => {
    const server = await start();
    const protocols = () => ['v2', 'bearer.x'];
    await openAt(server, { protocols, WebSocket });
    await openAt(server, { protocols, WebSocket, token: () => 't' });
    for (const { headers } of server.connections) {
      expect(headers['sec-websocket-protocol']?.replaceAll(' ', '')).toBe('v2,bearer.x');
    }
    expect(server.connections[1]?.headers.authorization).toBe('Bearer t');
  });

  it('opens no session whose id is a way to another address', async () => {
    const server = await start();
    for (const id of ['', '.', '..']) {
      await expect(openAt(server, {}, id)).rejects.toMatchObject({ code: 'not-found' });
    }
    expect(server.connections).toEqual([]);
    // Who makes the address themselves knows what it leads to.
    const asked: string[] = [];
    const url = (id: string) => {
      asked.push(id);
      return `${server.url}/api/sessions/s/ws`;
    };
    for (const id of ['', '.', '..']) await openAt({ url: '' }, { url }, id);
    expect(asked).toEqual(['', '.', '..']);
  });

  it.each([
    ['nine files', Array.from({ length: 9 }, () => 'data:,x')],
    ['a file that is elsewhere', ['data:,x', 'https://example.com/a.png']],
  ])('prompts nothing that the server would refuse: %s', async (_, urls) => {
    const server = await start();
    const session = await openAt(server);
    const attachments = urls.map((url) => ({ url, mediaType: 'image/png' }));
    const refused = watch(session, promptOf('refused', { attachments }));
    expect(await refused.done).toMatchObject({ outcome: 'failed', code: 'bad-request' });
    expect(refused.closed).toEqual([
      {
        status: 'failed',
        code: 'bad-request',
        message: 'The agent takes at most 8 files, as data URLs.',
      },
    ]);
    const taken = attachments.slice(0, 8).map((file) => ({ ...file, url: 'DATA:,x' }));
    await watch(session, promptOf('taken', { attachments: taken })).done;
    expect(server.received('prompt').map(({ content }) => content)).toEqual(['taken']);
  });

  it('prompts on web/default, with files and model as the server takes them', async () => {
    const server = await start();
    const session = await openAt(server);
    const url = 'data:image/png;base64,AAAA';
    await watch(session, promptOf('plain')).done;
    await watch(
      session,
      promptOf('rich', {
        channel: { channelType: 'slack', channelId: 'C1' },
        attachments: [{ url, mediaType: 'image/png', filename: 'a.png' }],
        body: { model: 'big', queueMode: 'steer', other: 1 },
      }),
    ).done;
    expect(server.received('prompt')).toEqual([
      { type: 'prompt', content: 'plain', channelType: 'web', channelId: 'default' },
      {
        type: 'prompt',
        content: 'rich',
        model: 'big',
        attachments: [{ type: 'file', mime: 'image/png', url, filename: 'a.png' }],
        channelType: 'slack',
        channelId: 'C1',
      },
    ]);
    expect(session.channels?.()).toEqual([
      { channelType: 'web', channelId: 'default' },
      { channelType: 'slack', channelId: 'C1' },
    ]);
  });

  it('sends an answer as words, or as yes or no', async () => {
    const server = await start({ script: () => asking });
    const session = await openAt(server);
    const shown: unknown[] = [];
    for (const answer of ['Yes', true, { choice: 1 }, ['a', 'b']]) {
      const watched = watch(session, promptOf('ask'));
      await until(() => watched.chunks.some(({ type }) => type === 'data-question'));
      watched.turn.answer({ type: 'answer', questionId: 'q', answer });
      await watched.done;
      const { data } = watched.chunks.findLast(({ type }) => type === 'data-question') as Asked;
      shown.push(data.answer);
    }
    const answers = server.received('answer').map(({ answer }) => answer);
    expect(answers).toEqual(['Yes', true, '{"choice":1}', '["a","b"]']);
    expect(shown).toEqual(['Yes', 'true', '{"choice":1}', '["a","b"]']);
  });
});

type Asked = { data: { answer?: string } };

const asking: Script = async function* ({ answer }) {
  yield { ask: { questionId: 'q', text: 'Really?' } };
  yield { say: `${await answer('q')}` };
};

describe('recorded turns', () => {
  const TURNS = ['text', 'tool', 'toolerror', 'error_after_text'];
  const KINDS = ['rfc', 'head'].flatMap((release) =>
    (['snapshot', 'v2'] as const).map((dialect) => ({ release: release as 'rfc', dialect })),
  );

  it.each(KINDS)('are the same turns, again and again ($release, $dialect)', async (kind) => {
    const server = await start(kind);
    const session = await openAt(server, { WebSocket: SOCKETS['global WebSocket'] });
    const ids = new Set<string>();
    for (const name of [...TURNS, ...TURNS]) {
      const watched = watch(session, promptOf(`[${kind.release}-${name}]`));
      expect(await watched.done).toMatchObject({ outcome: 'finished' });
      const message = foldChunks(watched.chunks);
      ids.add(message.id);
      const types = message.parts.map(({ type }) => type).filter((type) => type !== 'step-start');
      expect(types).toEqual(
        {
          text: ['text'],
          tool: ['text', 'tool-bash', 'text'],
          toolerror: ['tool-read', 'text'],
          error_after_text: ['text'],
        }[name],
      );
      expect(watched.turn.translator.stats).toEqual({ unknown: {}, malformed: {} });
    }
    expect(ids.size).toBe(8);
    expect([...ids][0]).toBe('turn-1-s');
  });

  it.each(['snapshot', 'v2'] as const)('wait for an answer (%s)', async (dialect) => {
    const server = await start({ dialect });
    const session = await openAt(server);
    const watched = watch(session, promptOf('[rfc-question] deploy?'));
    await until(() => watched.chunks.some(({ type }) => type === 'data-question'));
    const { length } = watched.chunks;
    watched.turn.answer({ type: 'answer', questionId: 'que_20-1', answer: 'Yes' });
    // At once, and not only when the server says so.
    expect(watched.chunks.slice(length)).toMatchObject([
      { type: 'data-question', data: { status: 'answered', answer: 'Yes' } },
    ]);
    await watched.done;
    expect(watched.text).toBe('I need a decision. Deploying.');
  });

  it.each(KINDS)(
    'fail before they begin, and the next is answered ($release, $dialect)',
    async (kind) => {
      const script = (text: string) => (text === 'fail' ? steps({ fail: 'It broke.' }) : say(text));
      const server = await start({ ...kind, script });
      const session = await openAt(server, { settleMs: 5_000 });
      const failed = watch(session, promptOf('fail'));
      const next = watch(session, promptOf('next'));
      expect(await failed.done).toMatchObject({ outcome: 'failed' });
      expect(await next.done).toMatchObject({ outcome: 'finished' });
      expect(next.text).toBe('next');
    },
  );

  it.each(KINDS)('are aborted ($release, $dialect)', async (kind) => {
    const server = await start({
      ...kind,
      lateMs: 100,
      script: (text) =>
        text === 'slow' ? sayWhen(new Promise(() => undefined), 'w0 ') : say(text),
    });
    const session = await openAt(server, { settleMs: 2_000 });
    for (const text of ['next', 'and the one after']) {
      const watched = watch(session, promptOf('slow'));
      await until(() => watched.text === 'w0 ');
      watched.turn.stop();
      expect(await watched.done).toEqual({ outcome: 'stopped', reason: 'aborted' });
      // The late end of the one is not the end of the other.
      const next = watch(session, promptOf(text));
      expect(next.turn.isQueued).toBe(true);
      expect(await next.done).toMatchObject({ outcome: 'finished' });
      expect(next.text).toBe(text);
    }
    expect(server.received('abort')).toHaveLength(2);
  });
});

describe('servers of other kinds', () => {
  it.each([
    { hasInit: false },
    { hasEcho: false },
    { hasInit: false, hasEcho: false, dialect: 'v2' as const },
    { keepsQueued: true, release: 'head' as const },
    { cork: 64 },
  ])('answers on %j', async (options) => {
    const server = await start(options);
    const session = await openAt(server);
    const turns = ['a', 'b', 'c'].map((text) => watch(session, promptOf(text, { chatId: text })));
    for (const { done } of turns) expect(await done).toMatchObject({ outcome: 'finished' });
    expect(turns.map(({ text }) => text)).toEqual(['You said a', 'You said b', 'You said c']);
  });

  it('gives up on an abort that nobody confirms', async () => {
    const gate = Promise.withResolvers<void>();
    const server = await start({
      isDeafToAbort: true,
      script: (text) =>
        text === 'slow' ? sayWhen(gate.promise, 'Half ', 'and whole.') : say(text),
    });
    const session = await openAt(server);
    const slow = watch(session, promptOf('slow'));
    await until(() => slow.text === 'Half ');
    slow.turn.stop();
    expect(await slow.done).toMatchObject({ outcome: 'stopped' });
    // It still runs there, so that the next one waits for it.
    const next = watch(session, promptOf('next'));
    await until(() => server.received('prompt').length === 2);
    gate.resolve();
    expect(await next.done).toMatchObject({ outcome: 'finished' });
    expect(next.text).toBe('next');
    expect(slow.text).toBe('Half ');
  });

  it('asks for a session again and again, and says why it could not have it', async () => {
    const server = await start({ userOf: () => undefined });
    for (const WebSocket of Object.values(SOCKETS)) {
      const opening = openAt(server, { WebSocket, token: () => 'wrong' });
      await expect(opening).rejects.toMatchObject({
        code: 'upstream-unreachable',
        retryable: true,
      });
    }
    const token = () => Promise.reject(new Error('no vault'));
    const error = await openAt(server, { token }).catch((reason: Error) => reason);
    expect(error).toMatchObject({ code: 'upstream-unreachable', cause: new Error('no vault') });
  });

  it('does not wait for a token for ever', async () => {
    const upstream = agentOpsUpstream({
      url: 'ws://127.0.0.1:1',
      token: () => new Promise(() => undefined),
    });
    const giveUp = new AbortController();
    const opening = upstream.open({
      sessionId: 's',
      user: ann,
      role: 'owner',
      signal: giveUp.signal,
    });
    giveUp.abort();
    await expect(opening).rejects.toMatchObject({ code: 'upstream-unreachable' });
  });
});
