/**
 * Several gateways behind no balancer in particular: each with its own server, its own clients of one
 * Redis and its own way to one agent, so that any of these can be taken from it.
 */

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { SabirChatTransport } from '../src/clients/index.ts';
import type { UIMessage } from '../src/core/message.ts';
import {
  type ChatGateway,
  type ChatGatewayOptions,
  createChatGateway,
  type FinishedTurn,
} from '../src/gateway/index.ts';
import { serve } from '../src/platforms/node/serve.ts';
import { sessionServerUpstream } from '../src/sessions/index.ts';
import type { TurnLog } from '../src/turns/log.ts';
import { type RedisTurnLogOptions, redisTurnLog } from '../src/turns/redis/index.ts';
import type { Upstream, User } from '../src/turns/upstream.ts';
import { createLogSpy, createUser } from './gateway-client.ts';
import { admitGateway, gatewayToken } from './link-rig.ts';
import {
  type ClientName,
  createClient,
  httpTransport,
  type RealClient,
  type TransportLike,
} from './real-clients.ts';
import { CLIENT_KINDS, openClient } from './redis-clients.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { type ChainOptions, startSessionChain } from './session-chain.ts';

/** Long enough that nobody loses a turn on a busy machine, short enough to wait for. */
export const LEASE_MS = 800;

type Finish = FinishedTurn & { user: User; at: string };

export type GatewayBox = Awaited<ReturnType<typeof openBox>>;

export type FleetOptions = {
  count?: number;
  /** Who answers, as a gateway of this name has it. Default: the session server. */
  upstream?: (name: string) => Upstream;
  agent?: ChainOptions['agent'];
  chain?: Partial<ChainOptions>;
  log?: Partial<RedisTurnLogOptions>;
  gateway?: Partial<ChatGatewayOptions>;
  /** More of it, by the upstream that it would have. */
  gatewayWith?: (upstream: Upstream) => Partial<ChatGatewayOptions>;
};

let fleets = 0;

/** A Redis for all tests of a file. */
export function useRedis(): () => RedisServer {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.stop());
  return () => server as RedisServer;
}

/** Gateways A, B, C and so on, which are gone when the test is over. */
export async function startFleet(redis: RedisServer, options: FleetOptions = {}) {
  const { count = 3, agent, chain: ofChain = {} } = options;
  const prefix = `fleet ${++fleets}`;
  const chain = agent && (await startSessionChain({ agent, admitGateway, ...ofChain }));
  const finishes: Finish[] = [];
  const boxes: GatewayBox[] = [];

  async function add(): Promise<GatewayBox> {
    const name = 'ABCDEFGH'[boxes.length] as string;
    const agentPipe = chain && (await openPipe(chain.port));
    const upstream = options.upstream
      ? options.upstream(name)
      : sessionServerUpstream({ url: agentPipe?.url ?? '', WebSocket, token: gatewayToken });
    const box = await openBox({ name, upstream, agentPipe, redis, prefix, options, finishes });
    boxes.push(box);
    return box;
  }

  for (let at = 0; at < count; at++) await add();
  const [A, B, C] = boxes as [GatewayBox, GatewayBox, GatewayBox];
  return { A, B, C, boxes, chain, finishes, prefix, add };
}

type BoxOptions = {
  name: string;
  upstream: Upstream;
  agentPipe: Pipe | undefined;
  redis: RedisServer;
  prefix: string;
  options: FleetOptions;
  finishes: Finish[];
};

async function openBox(given: BoxOptions) {
  const { name, upstream, agentPipe, redis, prefix, options, finishes } = given;
  const redisPipe = await openPipe(redis.port);
  // Both kinds of clients, by turns.
  const kind = CLIENT_KINDS[name.charCodeAt(0) % 2] as (typeof CLIENT_KINDS)[number];
  const { client, close: closeClient } = await openClient(kind, redisPipe.port);
  const spy = createLogSpy();
  const log = redisTurnLog({
    client,
    prefix,
    leaseMs: LEASE_MS,
    logger: spy.logger,
    ...options.log,
  }) as TurnLog;
  let isDead = false;
  const gateway = createChatGateway({
    upstream,
    log,
    logger: spy.logger,
    authenticate: ({ headers }) => {
      const id = headers.get('authorization')?.replace('Bearer ', '');
      return id ? { id, team: 'blue', token: `secret of ${id}` } : null;
    },
    access: ({ id }) => (id === 'vera' ? 'viewer' : 'collaborator'),
    keepUser: ({ id, team }) => ({ id, team }),
    // A process that is gone stores nothing.
    onFinish: (turn) => void (isDead || finishes.push({ ...turn, at: name })),
    ...options.gateway,
    ...options.gatewayWith?.(upstream),
    timing: { shutdownMs: 1_000, ...options.gateway?.timing },
  });
  const server = await serve({ fetch: gateway.fetch, shutdownMs: 100 });
  const front = await openPipe(server.port);

  /** At once and without a word: to everybody else it is gone. */
  function kill(): void {
    isDead = true;
    for (const pipe of [front, redisPipe, agentPipe]) pipe?.close();
  }

  onTestFinished(async () => {
    if (isDead) closeClient();
    const closing = gateway.close().then(() => log.close());
    closing.catch(() => undefined);
    // One that reaches nothing any more has nobody to hand its turns to.
    if (!isDead) await closing;
    await server.close();
    kill();
    if (client) closeQuietly(closeClient);
  });

  return {
    name,
    gateway,
    log,
    client,
    url: front.url,
    lines: spy.lines,
    kill,
    isDead: () => isDead,
    /** Its requests, over HTTP. */
    remote: { fetch: (request) => sendTo(front.url, request), close: gateway.close } as ChatGateway,
    /** Neither hears from Redis nor is heard there, until it is let go again. */
    hold: () => redisPipe.hold(),
    letGo: () => redisPipe.letGo(),
    /** Its connections drop; it may open others. */
    cutRedis: () => redisPipe.cut(),
    /** The same for its agent. */
    holdAgent: () => agentPipe?.hold(),
    letGoAgent: () => agentPipe?.letGo(),
    cutFront: () => front.cut(),
    finishes: () => finishes.filter(({ at }) => at === name),
    metric: async (metric: string) =>
      (await createUser({ fetch: (r) => sendTo(front.url, r) } as ChatGateway, 'carl').metrics())[
        metric
      ],
  };
}

function closeQuietly(close: () => void): void {
  try {
    close();
  } catch {
    // It was closed already.
  }
}

async function sendTo(url: string, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const { method, headers, signal } = request;
  const body = method === 'POST' ? await request.text() : undefined;
  return fetch(`${url}${pathname}${search}`, { method, headers, signal, ...(body && { body }) });
}

type Pipe = Awaited<ReturnType<typeof openPipe>>;

/** A way to a port that can be held up, cut and closed. */
async function openPipe(port: number) {
  const sockets = new Set<Socket>();
  let isHeld = false;
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => void to.write(bytes));
      if (isHeld) from.pause();
      from.on('error', () => undefined);
      from.on('end', () => to.end());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: own } = server.address() as AddressInfo;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const close = () => {
    server.close();
    cut();
  };
  onTestFinished(close);
  return {
    port: own,
    url: `http://127.0.0.1:${own}`,
    cut,
    close,
    hold(): void {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    letGo(): void {
      isHeld = false;
      for (const socket of sockets) socket.resume();
    },
  };
}

export type ChatOptions = { user?: string; chatId?: string; sessionId?: string; init?: object };

export type OpenChat = RealClient & {
  /** What was asked, of which gateway, with which answer. */
  requests: { method: string; at: string; status: number | undefined }[];
  text(): string;
};

/** A real chat, on the transport of that release or on ours; `where` chooses for each request. */
export async function openChat(
  name: ClientName | 'sabir',
  where: () => GatewayBox,
  { user = 'carl', chatId = 'c1', sessionId = 's1', init = {} }: ChatOptions = {},
): Promise<OpenChat> {
  const requests: OpenChat['requests'] = [];
  const api = 'http://test.invalid/api/chat';
  const send = async (path: string, request: RequestInit) => {
    const box = where();
    const to = path.replace(api, `${box.url}/api/sessions/${sessionId}/chat`);
    const headers = new Headers(request.headers);
    headers.set('authorization', `Bearer ${user}`);
    // As a page of that release says it; 5 knows of no approvals.
    if (name === 'ai@6' || name === 'ai@7') headers.set('x-sabir-ai-sdk', name.slice(3));
    const one: OpenChat['requests'][number] = {
      method: request.method ?? 'GET',
      at: box.name,
      status: undefined,
    };
    requests.push(one);
    const response = await fetch(to, { ...request, headers });
    one.status = response.status;
    return response;
  };
  const transport =
    name === 'sabir'
      ? new SabirChatTransport({
          api,
          aiSdk: 7,
          backoff: { initialMs: 20, maxMs: 200, attempts: 60 },
          fetch: (path, request) => send(String(path), request ?? {}),
        })
      : await httpTransport(name, send);
  const release = name === 'sabir' ? 'ai@7' : name;
  const client = await createClient(release, transport as TransportLike, {
    id: chatId,
    onError: () => undefined,
    ...init,
  });
  return { ...client, requests, text: () => textOf(client.result().message) };
}

export function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).reduce(
    (all, part) => all + ((part as { type: string; text?: string }).text ?? ''),
    '',
  );
}

/** What a message tells, without what only some releases keep. */
export function tellingOf(message: UIMessage | undefined) {
  const parts = message?.parts.map((part) => {
    const { type, state, output, text, data } = part as Record<string, unknown>;
    return { type, state, output, text, data };
  });
  return { id: message?.id, parts };
}

/** The next of those that are there, as a balancer without memory would choose. */
export function inTurn(...boxes: GatewayBox[]): () => GatewayBox {
  let at = 0;
  return () => {
    const there = boxes.filter(({ isDead }) => !isDead());
    return there[at++ % there.length] as GatewayBox;
  };
}
