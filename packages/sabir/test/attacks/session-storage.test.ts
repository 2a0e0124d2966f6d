/** Attacks on what a session keeps, and on a gateway by the session server behind it. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createChatGateway } from '../../src/gateway/index.ts';
import { sqliteSessionStore } from '../../src/platforms/node/sessions.ts';
import { agentOpsUpstream } from '../../src/sources/agent-ops/index.ts';
import { makeFolder } from '../cli-process.ts';
import { chatBody, readChunks } from '../gateway-client.ts';
import { knock } from '../raw-websocket.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { joinSession, startSessionChain } from '../session-chain.ts';
import { message, participant, prompt } from '../session-storage-helpers.ts';
import { beginTurn, OPENING } from '../turn-log-helpers.ts';

const WAIT = { timeout: 10_000, interval: 5 };

describe('a session in SQLite', () => {
  /** A session `s` with one answered prompt, whose file another program then changes. */
  async function startDamaged(damage: string) {
    const file = join(makeFolder(), 'sabir.db');
    const store = sqliteSessionStore({ file });
    for (const sessionId of ['s', 'healthy']) store.open(sessionId).addMessage(message('m'));
    store.open('s').addPrompt(prompt('p', { authorId: 'ann', status: 'running' }));
    store.open('s').saveParticipant(participant('ann'));
    const names = { sessionId: 's', turnId: 't-p', origin: { session: 's', promptId: 'p' } };
    const writer = await beginTurn(store.log, names);
    await writer.append(OPENING);
    await store.log.command('t-p', { type: 'answer', questionId: 'q', answer: 1 });
    store.close();
    const database = new DatabaseSync(file);
    database.exec(damage);
    database.close();
    const reopened = sqliteSessionStore({ file });
    onTestFinished(() => reopened.close());
    const log = vi.fn();
    const logger = { warn: log, error: log };
    const chain = await startSessionChain({ agent: scriptedAgent(), store: reopened, logger });
    return { chain, log };
  }

  it.each([
    ['a message that is no JSON', `UPDATE messages SET message = '{secret' WHERE session = 's'`],
    ['a message that is null', `UPDATE messages SET message = 'null' WHERE session = 's'`],
    [
      'a prompt that waits and is no JSON',
      `UPDATE prompts SET info = '{secret', status = 'queued'`,
    ],
    ['a prompt that runs and is no JSON', `UPDATE prompts SET info = '{secret'`],
    ['a prompt that is null', `UPDATE prompts SET info = 'null'`],
    ['a prompt whose text is no JSON', `UPDATE prompt_contents SET content = '{secret'`],
    ['a prompt without its text', `DELETE FROM prompt_contents`],
    ['a turn that is no JSON', `UPDATE turn SET info = '{secret'`],
    ['a turn that is null', `UPDATE turn SET info = 'null'`],
    ['a turn’s end that is no JSON', `UPDATE turn SET ended = '{secret'`],
    ['chunks that are no JSON', `UPDATE turn_append SET chunks = '{secret'`],
    ['chunks that are none', `UPDATE turn_append SET chunks = '[null, "secret"]'`],
    ['a command that is no JSON', `UPDATE turn_command SET command = '{secret'`],
    ['a turn without its chunks', `DELETE FROM turn_append`],
    ['a participant that is no JSON', `UPDATE participants SET participant = '{secret'`],
    ['a size below zero', `UPDATE sessions SET bytes = -5 WHERE id = 's'`],
  ])('with %s does not end the server, and other sessions go on', async (_, damage) => {
    const { chain, log } = await startDamaged(damage);
    await knock(chain, { authorization: 'Bearer ann' });
    const ann = await joinSession(chain, { sessionId: 'healthy' });
    ann.send({ type: 'prompt', content: 'text' });
    await ann.until(({ type }) => type === 'message.finalize');
    expect(JSON.stringify(log.mock.calls)).not.toContain('secret');
  });

  it('whose disk is full refuses prompts, tells what was told before, and goes on when there is room', async () => {
    const file = join(makeFolder(), 'sabir.db');
    const store = sqliteSessionStore({ file });
    onTestFinished(() => store.close());
    let isFull = false;
    const full = Object.assign(new Error('database or disk is full'), { errcode: 13 });
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      store: {
        ...store,
        open(sessionId) {
          const storage = store.open(sessionId);
          return {
            ...storage,
            addPrompt(asked) {
              if (isFull) throw full;
              return storage.addPrompt(asked);
            },
          };
        },
      },
    });
    const ann = await joinSession(chain);
    isFull = true;
    ann.send({ type: 'prompt', content: 'text', promptId: 'refused' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({ promptId: 'refused' });
    expect(JSON.stringify(ann.events)).not.toContain('disk is full');
    isFull = false;
    ann.send({ type: 'prompt', content: 'text', promptId: 'refused' });
    await ann.until(({ type }) => type === 'message.finalize');
  });

  it.each([
    "x'; DROP TABLE sessions; --",
    '%',
    '_',
    '\u0000',
    '\ud800',
    'a'.repeat(5_000),
    '__proto__',
  ])('of the name %j is one session, apart from all others', (sessionId) => {
    const store = sqliteSessionStore({ file: ':memory:' });
    onTestFinished(() => store.close());
    for (const id of ['other', sessionId]) {
      expect(store.open(id).addMessage(message('m'))).toBe(true);
    }
    store.delete(sessionId);
    expect(store.list().map((session) => session.sessionId)).toEqual(['other']);
  });
});

describe('a gateway whose session server is hostile', () => {
  type Speak = (socket: WebSocket) => void;

  async function startHostile(speak: Speak) {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => {
      socket.on('error', () => undefined);
      speak(socket);
    });
    const { port } = server.address() as { port: number };
    const log = vi.fn();
    const gateway = createChatGateway({
      upstream: agentOpsUpstream({
        url: `http://127.0.0.1:${port}`,
        WebSocket,
        openMs: 300,
        returnMs: 100,
        settleMs: 50,
        pingMs: 100,
        maxEventBytes: 100_000,
      }),
      authenticate: () => ({ id: 'ann' }),
      access: () => 'owner',
      timing: { shutdownMs: 0 },
      logger: { warn: log, error: log },
    });
    onTestFinished(async () => {
      await gateway.close();
      for (const socket of sockets.clients) socket.terminate();
      server.close();
    });
    const url = 'http://localhost/api/sessions/s/chat';
    const post = () =>
      gateway.fetch(new Request(url, { method: 'POST', body: JSON.stringify(chatBody('Hi')) }));
    return { gateway, post };
  }

  const onPrompt = (socket: WebSocket, say: (turnId: string) => void) =>
    socket.on('message', (data) => {
      const { type, turnId = 't' } = JSON.parse(String(data));
      if (type === 'prompt') say(turnId);
    });
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;

  it.each<[string, Speak]>([
    ['closes at once', (socket) => socket.close()],
    ['cuts the connection', (socket) => socket.terminate()],
    ['sends bytes that are no JSON', (socket) => socket.send(Buffer.alloc(100, 0xff))],
    ['sends an event larger than it may', (socket) => socket.send(`"${'x'.repeat(200_000)}"`)],
    [
      'sends an init that is null',
      (socket) => socket.send('{"type":"init","data":null,"session":null}'),
    ],
    [
      'answers with a tool’s result that nests 20,000 deep',
      (socket) =>
        onPrompt(socket, (turnId) => {
          socket.send(`{"type":"message.create","turnId":"${turnId}"}`);
          socket.send(
            `{"type":"message.part.tool-update","turnId":"${turnId}","callId":"c","toolName":"x","status":"completed","result":${deep}}`,
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
  ])('that %s ends the turn for its viewer, and answers the next request', async (_, speak) => {
    const { gateway, post } = await startHostile(speak);
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
  });

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
    const gateway = createChatGateway({
      upstream: agentOpsUpstream({
        url: `http://127.0.0.1:${own}`,
        WebSocket,
        token: () => 'secret',
      }),
      authenticate: () => ({ id: 'ann' }),
      access: () => 'owner',
      timing: { shutdownMs: 0 },
    });
    onTestFinished(() => gateway.close());
    const response = await gateway.fetch(
      new Request('http://localhost/api/sessions/s/chat', {
        method: 'POST',
        body: JSON.stringify(chatBody('Hi')),
      }),
    );
    await response.text();
    await vi.waitFor(() => expect(seen).not.toHaveBeenCalled(), WAIT);
  });
});
