import { serve } from 'sabir/node';
import { sqliteSessionStore, startSessionStack } from 'sabir/session/node';
import { type App, createApp } from './create-app.ts';
import type { Settings } from './read-settings.ts';
import { refuseForeign } from './refuse-foreign.ts';

/** How long answers may go on when the server is told to leave. */
const SHUTDOWN_MS = 2_000;

/** The third tab's sessions, by their ids; all others are the flow's and the desk's. */
const SESSION_ID = /^session_[0-9a-z]{32}$/;

type Where = { port: number; host: string };
type RunningDemo = { url: string; port: number; close(): Promise<void> };

/** Everything in one process on one port: the page, the flow, the desk, and the sessions. */
export async function startDemo(settings: Settings, where: Where): Promise<RunningDemo> {
  const app = createApp(settings);
  const server = settings.hasGateway
    ? await startSessions(settings, where, app.fetch)
    : await serve({ ...where, fetch: app.fetch, shutdownMs: SHUTDOWN_MS });
  return {
    url: server.url,
    port: server.port,
    async close() {
      await app.close();
      await server.close();
    },
  };
}

/**
 * There are no accounts here. A session's long random name is what opens it, and each window is a
 * guest of its own, by the name that its page gave it.
 */
async function startSessions(
  { agent, database = ':memory:', answerMs }: Settings,
  where: Where,
  fetch: App['fetch'],
): Promise<RunningDemo> {
  const store = sqliteSessionStore({ file: database });
  const { url, port, close } = await startSessionStack({
    ...where,
    store,
    agent: agent.create,
    shutdownMs: SHUTDOWN_MS,
    authenticate: (request) => ({ id: windowOf(request) }),
    access: (_, sessionId) => (SESSION_ID.test(sessionId) ? 'owner' : null),
    fetch: (request) =>
      isOfSession(new URL(request.url)) ? refuseForeign(request) : fetch(request),
    gateway: {
      routes: { chat: false, onboarding: false },
      // A window that follows is there; one that has left is missed at once.
      timing: { lingerMs: 500 },
    },
    ...(answerMs !== undefined && { sessions: { timing: { questionMs: answerMs } } }),
    logger: { warn: console.warn, error: console.error },
  });
  return { url, port, close: () => close().finally(store.close) };
}

/** A WebSocket has no headers of its own: its window is in the address. */
function windowOf({ headers, url }: Request): string {
  return headers.get('x-window') ?? new URL(url).searchParams.get('window') ?? 'page';
}

function isOfSession({ pathname }: URL): boolean {
  const [, api, sessions, sessionId = ''] = pathname.split('/');
  return api === 'api' && sessions === 'sessions' && SESSION_ID.test(sessionId);
}
