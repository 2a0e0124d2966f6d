/** A real session server with its runners on real sockets, and clients of it. */
import { onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { serve } from '../src/platforms/node/serve.ts';
import {
  createSessionServer,
  type SessionServerOptions,
} from '../src/platforms/node/session-server.ts';
import {
  type Agent,
  DEFAULT_CHANNEL,
  memorySessionStore,
  type RunnerOptions,
  type StoredMessage,
} from '../src/sessions/index.ts';
import { createLocalRunners } from './local-runners.ts';

type Event = { type: string; [field: string]: unknown };

export type ChainOptions = Partial<Omit<SessionServerOptions, 'agent'>> & {
  agent: Agent | ((sessionId: string) => Agent);
  port?: number;
  runner?: Partial<Omit<RunnerOptions, 'agent'>>;
  /** For those that are not closed with the test that made them. */
  isKept?: boolean;
};

const RUNNER_TOKEN = 'runner-token';
const ROLES: Record<string, 'viewer' | 'collaborator' | 'owner'> = {
  vera: 'viewer',
  olga: 'owner',
};

/** The user is the bearer token; all are collaborators, but for Vera and Olga. */
export async function startSessionChain({ agent, port = 0, ...options }: ChainOptions) {
  const { runner, isKept, ...given } = options;
  const store = given.store ?? memorySessionStore();
  const sessions = createSessionServer({
    store,
    authenticate: ({ headers }) => {
      const id = headers.get('authorization')?.replace('Bearer ', '');
      return id ? { id, name: id } : null;
    },
    access: ({ id }, sessionId) => (sessionId === 'secret' ? null : (ROLES[id] ?? 'collaborator')),
    admitRunner: ({ headers }) => headers.get('authorization') === `Bearer ${RUNNER_TOKEN}`,
    onRunnerWanted: (sessionId) => runners.call(sessionId),
    onSessionClosed: (sessionId) => runners.dismiss(sessionId),
    ...given,
  });
  const server = await serve({
    fetch: () => new Response('', { status: 404 }),
    upgrade: sessions.upgrade,
    port,
    shutdownMs: 500,
  });
  const runners = createLocalRunners({
    url: server.url,
    token: RUNNER_TOKEN,
    retryMs: { least: 10, most: 100 },
    agent: (sessionId) => (typeof agent === 'function' ? agent(sessionId) : agent),
    ...runner,
  });
  sessions.recover();
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= (async () => {
      await sessions.close(0);
      await runners.close();
      await server.close();
    })();
    return closing;
  };
  if (!isKept) onTestFinished(close);
  return { url: server.url, port: server.port, sessions, runners, store, close, RUNNER_TOKEN };
}

/** What a person has said before the test begins, for a session's storage. */
export function saidBefore(id: string, text: string): StoredMessage {
  const parts = [{ type: 'text' as const, text }];
  return { id, role: 'user', parts, createdAt: 1_700_000_000_000, ...DEFAULT_CHANNEL };
}

export type ChainClient = Awaited<ReturnType<typeof joinSession>>;

/** A V2 client on a session's socket. */
export async function joinSession(
  { url }: { url: string },
  { user = 'ann', sessionId = 's', query = '', headers = {} as Record<string, string> } = {},
) {
  const address = `${url.replace('http', 'ws')}/api/sessions/${sessionId}/ws?role=client${query}`;
  const socket = new WebSocket(address, {
    headers: { authorization: `Bearer ${user}`, ...headers },
  });
  const events: Event[] = [];
  socket.on('message', (data) => {
    const event = JSON.parse(String(data));
    events.push(event);
    client.onEvent?.(event);
  });
  socket.on('error', () => undefined);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  const client = {
    /** Called as they come. */
    onEvent: undefined as ((event: Event) => void) | undefined,
    events,
    closed,
    send: (message: object | string) =>
      socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    of: (type: string) => events.filter((event) => event.type === type),
    /** The first event like this, as soon as there is one. */
    until: (is: (event: Event) => unknown, timeout = 10_000): Promise<Event> =>
      vi.waitFor(
        () => {
          const found = events.find(is);
          if (!found) {
            throw new Error(`Not among ${events.map(({ type }) => type).join(', ')}`);
          }
          return found;
        },
        { timeout, interval: 5 },
      ),
    text: (turnId?: unknown) =>
      events
        .filter((event) => event.type === 'message.part.text-delta')
        .filter((event) => turnId === undefined || event.turnId === turnId)
        .map(({ delta }) => delta)
        .join(''),
    close: () => socket.close(),
    cut: () => socket.terminate(),
  };
  onTestFinished(() => socket.terminate());
  await client.until(({ type }) => type === 'init');
  return client;
}
