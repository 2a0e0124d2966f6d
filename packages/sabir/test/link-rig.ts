/** A real session server on real sockets, and gateways' sessions on it through a proxy that can cut them. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { WebSocket } from 'ws';
import type { Chunk } from '../src/core/chunks.ts';
import { isRole } from '../src/core/roles.ts';
import { serve } from '../src/platforms/node/serve.ts';
import {
  createSessionServer,
  type SessionServerOptions,
} from '../src/platforms/node/session-server.ts';
import {
  memorySessionStore,
  Runner,
  type SessionServerUpstreamOptions,
  sessionServerUpstream,
} from '../src/sessions/index.ts';
import { readWritten } from '../src/turns/read-written.ts';
import { scriptedAgent } from './scripted-agent.ts';
import { startSocketProxy } from './socket-proxy.ts';
import type { UpstreamRig } from './upstream-conformance.ts';

const RUNNER_TOKEN = 'runner-token';
const SESSIONS = ['s'];

/** What `admitGateway` of a test server reads. */
export const gatewayToken: NonNullable<SessionServerUpstreamOptions['token']> = (
  { id },
  { role },
) => `gateway ${id} ${role}`;

export const admitGateway: NonNullable<SessionServerOptions['admitGateway']> = ({ headers }) => {
  const [, id, role] =
    /^Bearer gateway (\S+) (\S+)$/.exec(headers.get('authorization') ?? '') ?? [];
  return id && isRole(role) ? { user: { id }, role } : null;
};

export type LinkRigOptions = {
  /** Where the agent is: in the session server's process, or in a runner that connects to it. */
  host: 'agent' | 'runner';
  /** After how many bytes the next connection of a gateway is cut; nothing for never. */
  nextCut?: () => number | undefined;
  server?: Partial<SessionServerOptions>;
  upstream?: Partial<SessionServerUpstreamOptions>;
};

export async function createLinkRig({ host, nextCut, server: more, upstream }: LinkRigOptions) {
  const agent = scriptedAgent({ onDrop: () => void proxy.close() });
  const sessions = createSessionServer({
    store: memorySessionStore(),
    authenticate: () => null,
    access: () => null,
    admitGateway,
    admitRunner: ({ headers }) => headers.get('authorization') === `Bearer ${RUNNER_TOKEN}`,
    ...(host === 'agent' && { agent: () => agent }),
    ...more,
  });
  const notFound = () => new Response('', { status: 404 });
  const server = await serve({ fetch: notFound, upgrade: sessions.upgrade, shutdownMs: 100 });
  const proxy = await startSocketProxy(server.port, () => nextCut?.());
  const runners = host === 'agent' ? [] : SESSIONS.map(startRunner);
  const hanging = await startHangingServer();

  function startRunner(sessionId: string): Runner {
    const retryMs = { least: 5, most: 20 };
    const where = { url: server.url, sessionId, token: RUNNER_TOKEN, WebSocket };
    const runner = new Runner({ ...where, agent, retryMs });
    runner.start();
    return runner;
  }

  const linkTo = (url: string) =>
    sessionServerUpstream({ url, WebSocket, token: gatewayToken, returnMs: 1_000, ...upstream });
  let closing: Promise<void> | undefined;
  const end = () => {
    closing ??= (async () => {
      agent.go();
      await Promise.all(runners.map((runner) => runner.close()));
      await sessions.close(0);
      await Promise.all([server.close(), proxy.close(), hanging.close()]);
      await sessions.sessions.log.close();
    })();
    return closing;
  };
  const rig = {
    upstream: linkTo(proxy.url),
    unreachable: linkTo('http://127.0.0.1:1'),
    hanging: linkTo(hanging.url),
    prompts: () => agent.prompts.map(({ text, user }) => ({ text, user: user.id })),
    go: agent.go,
    held: () => sessions.sessions.all().reduce((sum, { people }) => sum + people.size, 0),
    isSerial: true,
    stored: (turnId: string): Promise<Chunk[]> => readWritten(sessions.sessions.log, turnId, 0),
    end,
    close: end,
    agent,
    sessions: sessions.sessions,
    proxy,
    port: server.port,
  };
  return rig satisfies UpstreamRig;
}

/** Accepts connections, and never answers. */
async function startHangingServer() {
  const server = createServer(() => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close(): Promise<void> {
      server.close();
    },
  };
}
