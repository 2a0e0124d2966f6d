/**
 * The session editor of Agent Ops with two chat panels: its own, on the session's WebSocket, and stock `useChat` on the
 * adapter. The session's settings choose between them, and `ENABLE_AI_SDK_ADAPTER=true` turns the adapter on at all.
 *
 *     vite build agent-ops-client && ENABLE_AI_SDK_ADAPTER=true node agent-ops-client/server.ts
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SignJWT } from 'jose';
import { agentOpsUpstream } from 'sabir/agent-ops';
import { createChatGateway, jwtAuth } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { memorySessionStore, scriptedAgent } from 'sabir/session';
import { createSessionServer } from 'sabir/session/node';

const isAdapterOn = process.env.ENABLE_AI_SDK_ADAPTER === 'true';
const secret = randomBytes(32);
const authenticate = jwtAuth({ secret });
const access = () => 'owner' as const;

/** The sessions that use the AI SDK panel. Agent Ops would keep this in the session's settings. */
const experiments = new Set<string>();

// What Agent Ops has today: sessions, their agents and their WebSockets.
const sessions = createSessionServer({
  store: memorySessionStore(),
  agent: () => scriptedAgent({ speed: Number(process.env.SPEED ?? 1) }),
  authenticate,
  access,
});

// What the RFC adds: the adapter opens the session's WebSocket on behalf of the user, with the user's own token.
const gateway = createChatGateway({
  upstream: agentOpsUpstream({
    url: (id) => `${server.url}/api/sessions/${encodeURIComponent(id)}/ws?role=client`,
    token: (user) => String(user.token),
  }),
  authenticate: async (request) => {
    const user = await authenticate(request);
    const token = request.headers.get('authorization')?.replace(/^Bearer /i, '');
    return user && token ? { ...user, token } : null;
  },
  access,
  enabled: (_user, sessionId) => isAdapterOn && experiments.has(sessionId),
});

/** Signs in everyone who can reach this example. An application has its own way to hand out tokens. */
async function createToken(): Promise<Response> {
  const token = new SignJWT({}).setProtectedHeader({ alg: 'HS256' }).setSubject('ada');
  return new Response(await token.setExpirationTime('1h').sign(secret));
}

async function editSettings(request: Request, sessionId: string): Promise<Response> {
  if (!(await authenticate(request))) return new Response('Sign in first.', { status: 401 });
  if (request.method === 'PUT') {
    const { useAiSdk } = (await request.json()) as { useAiSdk?: unknown };
    if (useAiSdk === true) experiments.add(sessionId);
    else experiments.delete(sessionId);
  }
  return Response.json({ useAiSdk: isAdapterOn && experiments.has(sessionId) });
}

const MIME: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
};

async function showFile(pathname: string): Promise<Response> {
  const name = /^\/(assets\/[\w.-]+)?$/.test(pathname) ? pathname.slice(1) || 'index.html' : '';
  const file = fileURLToPath(new URL(`./dist/${name}`, import.meta.url));
  const bytes = name && (await readFile(file).catch(() => undefined));
  if (!bytes) return new Response('Not found.', { status: 404 });
  const type = MIME[extname(name)] ?? 'application/octet-stream';
  return new Response(bytes, { headers: { 'content-type': `${type}; charset=utf-8` } });
}

const server = await serve({
  port: Number(process.env.PORT ?? 3007),
  upgrade: sessions.upgrade,
  async fetch(request, info) {
    const { pathname } = new URL(request.url);
    if (pathname === '/api/token' && request.method === 'POST') return createToken();
    const [, sessionId] = /^\/api\/sessions\/([\w-]+)\/settings$/.exec(pathname) ?? [];
    if (sessionId) return editSettings(request, sessionId);
    return pathname.startsWith('/api/') ? gateway.fetch(request, info) : showFile(pathname);
  },
});
console.log(`Listening on http://localhost:${server.port}`);
process.once('SIGTERM', async () => {
  await gateway.close();
  await sessions.close();
  await server.close();
});
