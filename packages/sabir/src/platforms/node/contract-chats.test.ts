/** Chats of `/api/chat` on a real session server, whose `access` knows sessions by their owners. */
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { CHAT_ID, contractBody, openEvents } from '../../../test/contract-client.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { type GatewayRoutes, sessionAccess } from '../../gateway/index.ts';
import { memorySessionStore } from '../../sessions/index.ts';
import { startSessionStack } from './sessions.ts';

async function start(routes: GatewayRoutes = {}) {
  const find = vi.fn((id: string) => (id === 's1' ? { ownerId: 'carl' } : null));
  const stack = await startSessionStack({
    store: memorySessionStore(),
    agent: () => scriptedAgent(),
    authenticate: ({ headers }) => {
      const id = headers.get('authorization')?.replace('Bearer ', '');
      return id ? { id } : null;
    },
    access: sessionAccess(find),
    gateway: { routes },
    shutdownMs: 0,
  });
  onTestFinished(() => stack.close());
  const call = (path: string, user: string, body?: unknown) =>
    fetch(`${stack.url}/api/${path}`, {
      headers: user === '' ? {} : { authorization: `Bearer ${user}` },
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    });
  async function ask(user: string, text: string, route = 'chat') {
    const reader = openEvents(await call(route, user, contractBody(text)));
    await reader.ended;
    return reader;
  }
  return { stack, find, call, ask };
}

const historyOf = (sessionId: string) => `sessions/${encodeURIComponent(sessionId)}/messages`;

describe('a minted chat behind a session server', () => {
  it('works with an access that knows sessions by their owners, and find is not asked', async () => {
    const { find, ask } = await start();
    const reader = await ask('carl', 'hello');
    expect([reader.said(), reader.types().at(-1)]).toEqual(['hello', 'done']);
    expect(Object(reader.events()[0]?.data)).toMatchObject({
      sessionId: CHAT_ID,
      conversationId: CHAT_ID,
    });
    expect(find).not.toHaveBeenCalled();
  });

  it('of one user is not read, watched or written into by another user with the same id', async () => {
    const { stack, call, ask } = await start();
    await ask('carl', 'secret');
    const intruder = await ask('mallory', 'mine');
    expect(intruder.said()).toBe('mine');
    const texts = async (user: string) =>
      JSON.stringify(await (await call(historyOf(`chat:${user}:${CHAT_ID}`), user)).json());
    const [carls, mallorys] = [await texts('carl'), await texts('mallory')];
    expect([carls.includes('secret'), carls.includes('mine')]).toEqual([true, false]);
    expect([mallorys.includes('secret'), mallorys.includes('mine')]).toEqual([false, true]);
    const session = `chat:carl:${CHAT_ID}`;
    for (const response of [
      await call(historyOf(session), 'mallory'),
      await call(`sessions/${encodeURIComponent(session)}/chat/${CHAT_ID}/stream`, 'mallory'),
      await call('chat', 'mallory', contractBody('x', { sessionId: session })),
      await call(historyOf(CHAT_ID), 'mallory'),
    ]) {
      expect(response.status).toBe(404);
    }
    const address = `${stack.url}/api/sessions/${encodeURIComponent(session)}/ws?role=client`;
    const socket = new WebSocket(address, { headers: { authorization: 'Bearer mallory' } });
    const [, refused] = await once(
      socket.on('error', () => undefined),
      'unexpected-response',
    );
    expect(refused.statusCode).toBe(404);
  });

  it('of a user whose name is spelled like another’s session stays apart', async () => {
    const { call, ask } = await start();
    await ask('carl', 'secret');
    for (const name of [`carl:${CHAT_ID}`, '%63arl', 'chat:carl', '::', 'carl%3A']) {
      const own = encodeURIComponent(`chat:${encodeURIComponent(name)}:${CHAT_ID}`);
      await ask(name, 'mine');
      const history = JSON.stringify(await (await call(`sessions/${own}/messages`, name)).json());
      expect([history.includes('mine'), history.includes('secret')]).toEqual([true, false]);
      expect((await call(historyOf(`chat:carl:${CHAT_ID}`), name)).status).toBe(404);
    }
  });
});

describe('a public chat behind a session server', () => {
  it('is apart from the chats of users called public, and no user’s session', async () => {
    const { call, ask } = await start({ onboarding: { public: true } });
    const reader = await ask('', 'anonymous', 'onboarding');
    expect([reader.said(), reader.types().at(-1)]).toEqual(['anonymous', 'done']);
    await ask('public', 'signed in');
    const history = await call(historyOf(`chat:public:${CHAT_ID}`), 'public');
    expect(JSON.stringify(await history.json())).not.toContain('anonymous');
    expect((await call(historyOf(`onboarding::${CHAT_ID}`), 'public')).status).toBe(404);
  });
});
