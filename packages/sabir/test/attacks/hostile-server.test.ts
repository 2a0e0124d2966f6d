/** Attacks on a gateway by the session server behind it. */
import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createChatGateway } from '../../src/gateway/index.ts';
import { sessionServerUpstream } from '../../src/sessions/index.ts';
import { agentOpsUpstream } from '../../src/sources/agent-ops/index.ts';
import type { Upstream } from '../../src/turns/upstream.ts';
import { chatBody, readChunks } from '../gateway-client.ts';

type Speak = (socket: WebSocket) => void;
type Connect = (url: string) => Upstream;

const LIMITS = { WebSocket, openMs: 300, returnMs: 100, pingMs: 100, maxEventBytes: 100_000 };
const token = () => 'secret';
const KINDS: [string, Connect][] = [
  ['an Agent Ops server', (url) => agentOpsUpstream({ ...LIMITS, url, token, settleMs: 50 })],
  ['a session server', (url) => sessionServerUpstream({ ...LIMITS, url, token })],
];
const [[, toAgentOps], [, toSessionServer]] = KINDS as [[string, Connect], [string, Connect]];
const DEEP = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;

function createGateway(upstream: Upstream) {
  const log = vi.fn();
  const gateway = createChatGateway({
    upstream,
    authenticate: () => ({ id: 'ann' }),
    access: () => 'owner',
    timing: { shutdownMs: 0 },
    logger: { warn: log, error: log },
  });
  onTestFinished(() => gateway.close());
  const url = 'http://localhost/api/sessions/s/chat';
  const post = () =>
    gateway.fetch(new Request(url, { method: 'POST', body: JSON.stringify(chatBody('Hi')) }));
  return { gateway, post };
}

/** Whatever the server says, the viewer's answer ends, and the gateway goes on. */
async function expectSafe(connect: Connect, speak: Speak): Promise<void> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => {
    socket.on('error', () => undefined);
    speak(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
  });
  const { port } = server.address() as { port: number };
  const { gateway, post } = createGateway(connect(`http://127.0.0.1:${port}`));
  const response = await post();
  if (response.status === 200) {
    const chunks = await Promise.race([
      readChunks(response),
      new Promise<undefined>((resolve) => setTimeout(resolve, 5_000)),
    ]);
    expect(chunks).toBeDefined();
  } else expect(response.status).toBeGreaterThanOrEqual(500);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  const health = await gateway.fetch(new Request('http://localhost/healthz'));
  expect(health.status).toBe(200);
}

function onPrompt(socket: WebSocket, say: (turnId: string) => void): void {
  socket.on('message', (data) => {
    const { type, turnId = 't' } = JSON.parse(String(data));
    if (type === 'prompt') say(turnId);
  });
}

describe.each(KINDS)('a gateway in front of %s', (_, connect) => {
  it.each<[string, Speak]>([
    ['closes at once', (socket) => socket.close()],
    ['cuts the connection', (socket) => socket.terminate()],
    ['sends bytes that are no JSON', (socket) => socket.send(Buffer.alloc(100, 0xff))],
    ['sends an event larger than it may', (socket) => socket.send(`"${'x'.repeat(200_000)}"`)],
    [
      'sends an init that is null',
      (socket) => socket.send('{"type":"init","data":null,"session":null,"protocol":null}'),
    ],
  ])('that %s ends the turn for its viewer, and answers the next request', (__, speak) =>
    expectSafe(connect, speak),
  );

  it('that refuses the upgrade with a redirect is not followed', async () => {
    const seen = vi.fn();
    const target = createServer((_, response) => {
      seen();
      response.end();
    }).listen(0, '127.0.0.1');
    target.on('upgrade', (_, socket) => {
      seen();
      socket.destroy();
    });
    await new Promise((resolve) => target.once('listening', resolve));
    const { port } = target.address() as { port: number };
    const server = createServer().listen(0, '127.0.0.1');
    server.on('upgrade', (_, socket) => {
      socket.end(
        `HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:${port}/\r\nContent-Length: 0\r\n\r\n`,
      );
    });
    await new Promise((resolve) => server.once('listening', resolve));
    onTestFinished(() => {
      target.close();
      server.close();
    });
    const own = (server.address() as { port: number }).port;
    const { post } = createGateway(connect(`http://127.0.0.1:${own}`));
    await (await post()).text();
    expect(seen).not.toHaveBeenCalled();
  });
});

describe('a gateway in front of an Agent Ops server', () => {
  it.each<[string, Speak]>([
    [
      'answers with a tool’s result that nests 20,000 deep',
      (socket) =>
        onPrompt(socket, (turnId) => {
          socket.send(`{"type":"message.create","turnId":"${turnId}"}`);
          socket.send(
            `{"type":"message.part.tool-update","turnId":"${turnId}","callId":"c","toolName":"x","status":"completed","result":${DEEP}}`,
          );
          socket.send(`{"type":"message.finalize","turnId":"${turnId}","reason":"end_turn"}`);
        }),
    ],
    [
      'answers with __proto__',
      (socket) =>
        onPrompt(socket, (turnId) => {
          socket.send(`{"type":"message.create","turnId":"${turnId}","__proto__":{"polluted":1}}`);
          socket.send(
            `{"type":"message.part.data","turnId":"${turnId}","name":"__proto__","id":"__proto__","data":{"__proto__":{"polluted":1}}}`,
          );
          socket.send(`{"type":"message.finalize","turnId":"${turnId}","reason":"end_turn"}`);
          socket.close();
        }),
    ],
    [
      'ends the connection in the middle of an answer',
      (socket) =>
        onPrompt(socket, (turnId) => {
          socket.send(`{"type":"message.create","turnId":"${turnId}"}`);
          socket.terminate();
        }),
    ],
  ])('that %s ends the turn for its viewer, and answers the next request', (_, speak) =>
    expectSafe(toAgentOps, speak),
  );
});

describe('a gateway in front of a session server', () => {
  const INIT = `"type":"init","protocol":{"name":"sabir-session","version":1},"maxMessageBytes":100000`;

  /** Takes the prompt, then sends these events of its turn. */
  const answer =
    (...events: string[]): Speak =>
    (socket) => {
      socket.send(`{${INIT},"channels":[]}`);
      onPrompt(socket, (turnId) => {
        const about = `"turnId":"${turnId}"`;
        socket.send(`{"type":"accepted",${about}}`);
        for (const event of events) socket.send(`{${about},${event}}`);
      });
    };
  const chunks = (seq: number | string, ...given: string[]) =>
    `"type":"chunks","seq":${seq},"chunks":[${given.join()}]`;
  const START = '{"type":"start","messageId":"m"}';
  const FINISH = '{"type":"finish"}';
  const GONE = '"type":"gone"';

  it.each<[string, Speak]>([
    ['names channels that are none', (socket) => socket.send(`{${INIT},"channels":[null,1,{}]}`)],
    [
      'limits messages to nothing',
      (socket) => socket.send(`{${INIT},"channels":[],"maxMessageBytes":-1}`),
    ],
    ['answers with chunks that are none', answer(chunks(4, 'null', '1', '[]', '{}'), GONE)],
    ['counts its chunks wrongly', answer(chunks(9, START), chunks(0, START, FINISH), GONE)],
    ['counts its chunks with a word', answer(chunks('"1"', START), GONE)],
    ['says the end first', answer(chunks(3, FINISH, START, FINISH))],
    [
      'answers with data that nests 20,000 deep',
      answer(chunks(3, START, `{"type":"data-x","data":${DEEP}}`, FINISH)),
    ],
    [
      'answers with __proto__',
      answer(chunks(2, START, '{"type":"data-__proto__","id":"__proto__","data":{}}'), GONE),
    ],
    [
      'sends a chunk with a prototype',
      answer(chunks(2, START, '{"type":"finish","__proto__":{"polluted":1}}')),
    ],
    ['refuses the prompt without a reason', answer('"type":"refused"', GONE)],
    ['waits in the queue at no place', answer('"type":"queue","position":-1', GONE)],
    ['withdraws the prompt', answer('"type":"withdrawn"')],
    [
      'ends the connection in the middle of an answer, each time',
      (socket) => {
        answer(chunks(1, START))(socket);
        onPrompt(socket, () => socket.close());
      },
    ],
  ])('that %s ends the turn for its viewer, and answers the next request', (_, speak) =>
    expectSafe(toSessionServer, speak),
  );
});
