import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CHAT_ID, contractBody, createContractUser } from '../../test/contract-client.ts';
import {
  chatBody,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import { createLedAgent } from '../../test/led-agent.ts';
import { CLIENTS, createClient, httpTransport } from '../../test/real-clients.ts';
import { SabirChatTransport } from '../clients/index.ts';
import type { AuditEvent } from '../core/audit.ts';
import type { UIMessage } from '../core/message.ts';
import { sqliteSessionStore } from '../platforms/node/sessions.ts';
import type { SteeringMessage } from '../turns/agent.ts';
import { MOST_COMMANDS, MOST_STEER_BYTES } from '../turns/log.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import { asUpstream, type ChatGatewayOptions } from './index.ts';

/** What the agent says to each message: at once, or when the test has decided. */
type Verdict = (message: SteeringMessage) => boolean | Promise<boolean>;

function steerable(verdict: Verdict = () => true) {
  const agent = createLedAgent();
  const messages: SteeringMessage[] = [];
  return Object.assign(agent, {
    messages,
    steer(message: SteeringMessage) {
      messages.push(message);
      return verdict(message);
    },
  });
}

type Steerable = ReturnType<typeof steerable>;

function startUpstream(agent: Steerable, options: Partial<ChatGatewayOptions> = {}) {
  const gateway = createTestGateway(asUpstream({ ...agent, concurrent: true }), options);
  return { gateway, carl: createUser(gateway, 'carl') };
}

function startSession(agent: Steerable | ReturnType<typeof createLedAgent>) {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-steer-'));
  const store = sqliteSessionStore({ file: join(folder, 'sabir.db') });
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return startHosted({ sessions: { store, agent: () => agent } });
}

const bodyOf = async (response: Response) => [response.status, await response.json()];
const MORE = { text: 'More!', id: 'm1' };
const SHOWN = {
  type: 'steering-message',
  id: 'm1',
  parts: [{ type: 'text', text: 'More!' }],
};
const partsOf = (message: UIMessage | undefined) =>
  message?.parts.map((part) => ('text' in part ? part.text : (part.type as string)));

describe('a message for a running turn', () => {
  it('reaches an agent that takes it, and every viewer of AI SDK 7', async () => {
    const agent = steerable();
    const { gateway, carl } = startUpstream(agent);
    const response = await carl.post(chatBody('go'), { query: 'aiSdk=7' });
    const sse = openSse(response);
    const run = await agent.run();
    run.text('One.');
    await sse.until(() => sse.text() === 'One.');
    const turnId = response.headers.get('x-sabir-turn');
    expect(await bodyOf(await carl.steer(MORE))).toEqual([202, { turnId, delivered: true }]);
    const vera = openSse(await createUser(gateway, 'vera').resume('c1', { query: 'aiSdk=7' }));
    run.text('Two.');
    run.end();
    await Promise.all([sse.ended, vera.ended]);
    expect(agent.messages).toMatchObject([
      { turnId, id: 'm1', text: 'More!', attachments: [], user: { id: 'carl' }, chatId: 'c1' },
    ]);
    for (const viewer of [sse, vera]) {
      expect(viewer.chunks()).toContainEqual(SHOWN);
      expect(viewer.text()).toBe('One.Two.');
    }
  });

  it('is one message however often it is sent: at once, again, and after the end', async () => {
    const taking = Promise.withResolvers<boolean>();
    const agent = steerable(() => taking.promise);
    const { carl } = startUpstream(agent);
    const response = await carl.post(chatBody('go'), { query: 'aiSdk=7' });
    const turnId = response.headers.get('x-sabir-turn');
    const sse = openSse(response);
    const run = await agent.run();
    const sent = [carl.steer(MORE), carl.steer(MORE)];
    await eventually(() => agent.messages.length > 0, 'the message');
    taking.resolve(true);
    for (const one of sent) {
      expect(await bodyOf(await one)).toEqual([202, { turnId, delivered: true }]);
    }
    expect(await bodyOf(await carl.steer(MORE))).toEqual([202, { turnId, delivered: true }]);
    run.end();
    await sse.ended;
    expect(await bodyOf(await carl.steer(MORE))).toEqual([202, { turnId, delivered: true }]);
    expect(agent.messages).toHaveLength(1);
    expect(sse.chunks().filter(({ type }) => type === 'steering-message')).toEqual([SHOWN]);
  });

  it.each([
    [
      'a message with files',
      {
        message: {
          id: 'm',
          role: 'user',
          parts: [
            { type: 'text', text: 'See' },
            { type: 'file', url: 'data:,x', mediaType: 'text/plain', filename: 'x.txt' },
          ],
        },
      },
      { id: 'm', text: 'See', attachments: [{ filename: 'x.txt' }] },
    ],
    ['a text without an id', { text: 'Hm' }, { id: expect.any(String), text: 'Hm' }],
    ['content of an old client', { message: { role: 'user', content: 'Old' } }, { text: 'Old' }],
  ])('can be %s', async (_, body, expected) => {
    const agent = steerable();
    const { carl } = startUpstream(agent);
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    expect((await carl.steer(body)).status).toBe(202);
    expect(agent.messages).toMatchObject([expected]);
    run.end();
    await sse.ended;
  });

  it.each([
    ['nothing', {}],
    ['an empty text', { text: ' ' }],
    ['a list', []],
    ['an answer', { message: { id: 'a', role: 'assistant', parts: [] } }],
    ['an id of another kind', { text: 'x', id: 7 }],
    ['an id that is too long', { text: 'x', id: 'x'.repeat(513) }],
  ])('is refused with 400 if it is %s', async (_, body) => {
    const { carl } = startUpstream(steerable());
    const response = await carl.steer(body);
    expect(response.status).toBe(400);
  });

  it('is refused with 409 where no agent takes it and nothing queues', async () => {
    const agent = steerable(() => false);
    const { carl } = startUpstream(agent);
    const refused = {
      code: 'cannot-steer',
      message: 'The answer cannot take another message.',
      remedy: 'Send it as a message when the answer has ended.',
    };
    expect(await bodyOf(await carl.steer(MORE))).toEqual([409, expect.objectContaining(refused)]);
    const sse = openSse(await carl.post(chatBody('go'), { query: 'aiSdk=7' }));
    const run = await agent.run();
    expect(await bodyOf(await carl.steer(MORE))).toEqual([409, expect.objectContaining(refused)]);
    run.end();
    await sse.ended;
    expect(sse.raw()).not.toContain('steering-message');
  });

  it('is not taken by a turn that ends before its agent has decided', async () => {
    const agent = steerable(() => new Promise(() => undefined));
    const { carl } = startUpstream(agent);
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    const sent = carl.steer(MORE);
    await eventually(() => agent.messages.length > 0, 'the message');
    run.end();
    expect((await sent).status).toBe(409);
    await sse.ended;
  });

  it('is refused at once, and uses no more memory, past what a turn can hold of messages', async () => {
    const agent = steerable(() => new Promise(() => undefined));
    const log = memoryTurnLog();
    const { carl } = startUpstream(agent, { log });
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    const text = 'x'.repeat(MOST_STEER_BYTES / 2);
    const held = ['h1', 'h2'].map((id) => carl.steer({ text, id }));
    await eventually(() => agent.messages.length === 2, 'the messages');
    expect(log.limits.liveBytes?.use?.()).toBeGreaterThanOrEqual(MOST_STEER_BYTES);
    expect((await carl.steer(MORE)).status).toBe(409);
    run.end();
    for (const one of held) expect((await one).status).toBe(409);
    await sse.ended;
  });

  it('is not waited for any more once its client has left, or its gateway closes', async () => {
    const log = memoryTurnLog();
    onTestFinished(() => log.close());
    const agent = steerable(() => new Promise(() => undefined));
    const sse = openSse(await startUpstream(agent, { log }).carl.post(chatBody('go')));
    const run = await agent.run();
    const { gateway: other, carl } = startUpstream(agent, { log });
    const viewers = async () => (await carl.metrics())['sabir_limit_use{limit="viewers"}'];
    const leaving = new AbortController();
    const left = carl.send(
      ...(['POST', '/api/sessions/s1/chat/c1/steer'] as const),
      { signal: leaving.signal },
      { text: 'One', id: 'm1' },
    );
    const kept = carl.steer({ text: 'Two', id: 'm2' });
    await eventually(() => agent.messages.length === 2, 'the messages');
    expect(await viewers()).toBe(2);
    leaving.abort();
    await left.catch(() => undefined);
    await eventually(async () => (await viewers()) === 1, 'the seat');
    await other.close();
    expect((await kept).status).toBe(503);
    run.end();
    await sse.ended;
  });

  it('is not quoted in the log when the agent throws it', async () => {
    const lines: unknown[] = [];
    const note = (...line: unknown[]) => void lines.push(line);
    const agent = steerable(({ text }) => {
      throw `cannot take ${text}`;
    });
    const { carl } = startUpstream(agent, { logger: { info: note, warn: note, error: note } });
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    expect((await carl.steer(MORE)).status).toBe(409);
    run.end();
    await sse.ended;
    expect(JSON.stringify(lines)).toContain('a call to the agent failed: steer');
    expect(JSON.stringify(lines)).not.toContain('More!');
  });

  it('may be sent by those who may prompt, and is audited', async () => {
    const agent = steerable();
    const events: AuditEvent[] = [];
    const { gateway, carl } = startUpstream(agent, { onAudit: (event) => void events.push(event) });
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    expect((await createUser(gateway, 'vera').steer(MORE)).status).toBe(404);
    expect((await createUser(gateway, undefined).steer(MORE)).status).toBe(401);
    expect((await carl.steer(MORE)).status).toBe(202);
    const elsewhere = carl.send(
      ...(['POST', '/api/sessions/s1/chat/c1/steer'] as const),
      { headers: { origin: 'https://evil.example', authorization: 'Basic Y2FybA==' } },
      MORE,
    );
    expect((await elsewhere).status).toBe(403);
    run.end();
    await sse.ended;
    expect(agent.messages).toHaveLength(1);
    expect(events.filter(({ action }) => action === 'steer')).toMatchObject([
      { userId: 'vera', outcome: 'refused', code: 'not-found' },
      { userId: 'carl', outcome: 'accepted', turnId: expect.any(String), chatId: 'c1' },
    ]);
    expect(JSON.stringify(events)).not.toContain('More!');
  });

  it('is held to the limits of messages, and to the rules of `admit`', async () => {
    const agent = steerable();
    let isAdmitted = true;
    const { carl } = startUpstream(agent, {
      limits: { bodyBytes: 2_000, viewersPerUser: 2 },
      admit: () => isAdmitted,
    });
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    expect((await carl.steer({ text: 'x'.repeat(3_000) })).status).toBe(413);
    isAdmitted = false;
    expect((await carl.steer(MORE)).status).toBe(429);
    expect(agent.messages).toHaveLength(0);
    run.end();
    await sse.ended;
  });

  it('works on a contract route, with the chat’s own address', async () => {
    const agent = steerable();
    const gateway = createTestGateway(asUpstream({ ...agent, concurrent: true }));
    const user = createContractUser(gateway, 'carl');
    const sse = openSse(await user.post(contractBody('go')));
    const run = await agent.run();
    const steered = await createUser(gateway, 'carl').send(
      ...(['POST', `/api/chat/${CHAT_ID}/steer`, {}, MORE] as const),
    );
    expect(await bodyOf(steered)).toEqual([202, { turnId: run.prompt.turnId, delivered: true }]);
    run.end();
    await sse.ended;
    expect(sse.raw()).toContain('"steering-message"');
  });
});

describe('a message for a running turn of a session', () => {
  it('is kept in the answer that took it', async () => {
    const agent = steerable();
    const { carl, finished } = startSession(agent);
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    run.text('One.');
    await sse.until(() => sse.text() === 'One.');
    const { turnId } = run.prompt;
    expect(await bodyOf(await carl.steer(MORE))).toEqual([202, { turnId, delivered: true }]);
    run.text('Two.');
    run.end();
    await sse.ended;
    await eventually(() => finished.length === 1, 'the end');
    const messages = (await (await carl.messages()).json()) as UIMessage[];
    expect(messages.map(partsOf)).toEqual([['go'], ['One.', 'steering-message', 'Two.']]);
    expect(finished[0]?.message.parts).toContainEqual(SHOWN);
  });

  it.each([
    ['cannot be steered', createLedAgent],
    ['does not take it', () => steerable(() => false)],
    ['fails to take it', () => steerable(() => Promise.reject(new Error('No.')))],
  ])('waits in the queue, once, where the agent %s', async (_, create) => {
    const agent = create();
    const { carl } = startSession(agent);
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    run.text('One.');
    const [status, body] = await bodyOf(await carl.steer(MORE));
    expect([status, body.delivered]).toEqual([202, false]);
    expect(body.turnId).not.toBe(run.prompt.turnId);
    expect(await bodyOf(await carl.steer(MORE))).toEqual([status, body]);
    run.end();
    await sse.ended;
    const next = await agent.run(1);
    expect(next.prompt).toMatchObject({ turnId: body.turnId, text: 'More!' });
    expect(await bodyOf(await carl.steer(MORE))).toEqual([status, body]);
    next.end();
    await eventually(async () => (await carl.resume()).status === 204, 'the end');
    expect(agent.runs).toHaveLength(2);
  });

  it('waits in the queue at once when the turn holds as many messages as it may', async () => {
    const agent = steerable();
    const { carl } = startSession(agent);
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    for (let at = 0; at < MOST_COMMANDS; at++) {
      expect((await carl.steer({ text: 'x', id: `x${at}` })).status).toBe(202);
    }
    const [status, { delivered }] = await bodyOf(await carl.steer(MORE));
    expect([status, delivered]).toEqual([202, false]);
    run.end();
    await sse.ended;
    const next = await agent.run(1);
    expect(next.prompt.text).toBe('More!');
    next.end();
  });

  it.each([
    ['role', { access: () => 'viewer' }, 404],
    ['sign-in', { authenticate: () => null }, 401],
  ] as const)(
    'is not asked as a prompt once the %s of its sender has ended',
    async (_, ended, status) => {
      const agent = steerable(() => new Promise(() => undefined));
      let rights: Pick<ChatGatewayOptions, 'access' | 'authenticate'> = {
        access: () => 'collaborator',
        authenticate: async () => ({ id: 'carl' }),
      };
      const { carl } = startHosted({
        sessions: { agent: () => agent },
        gateway: {
          access: (...given) => rights.access(...given),
          authenticate: (request) => rights.authenticate(request),
        },
      });
      openSse(await carl.post(chatBody('go'), { headers: { 'x-sabir-detach': '1' } }));
      const run = await agent.run();
      const sent = carl.steer(MORE);
      await eventually(() => agent.messages.length > 0, 'the message');
      rights = { ...rights, ...(ended as object) };
      run.end();
      expect((await sent).status).toBe(status);
      expect(agent.runs).toHaveLength(1);
    },
  );

  it('is a prompt where nothing runs, and where its turn ended first', async () => {
    const agent = steerable(() => new Promise(() => undefined));
    const { carl } = startSession(agent);
    const [, first] = await bodyOf(await carl.steer({ text: 'Begin', id: 'm0' }));
    const run = await agent.run();
    expect(run.prompt).toMatchObject({ turnId: first.turnId, text: 'Begin' });
    const sent = carl.steer(MORE);
    await eventually(() => agent.messages.length > 0, 'the message');
    run.end();
    const [status, second] = await bodyOf(await sent);
    expect([status, second.delivered]).toEqual([202, false]);
    const next = await agent.run(1);
    expect(next.prompt).toMatchObject({ turnId: second.turnId, text: 'More!' });
    next.end();
  });
});

it.each(CLIENTS)(
  '$name goes on through a message that its turn has taken',
  async ({ name, major }) => {
    const agent = steerable();
    const { gateway } = startUpstream(agent);
    const headers = { authorization: 'Bearer carl' };
    const api = 'http://gateway.test/api/sessions/s1/chat';
    const fetch: typeof globalThis.fetch = (url, init) => gateway.fetch(new Request(url, init));
    const transport = await httpTransport(name, (_, init) =>
      fetch(`${api}?aiSdk=${major}`, { ...init, headers: { ...init.headers, ...headers } }),
    );
    const { chat, result } = await createClient(name, transport, { id: 'c1' });
    const sending = chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.text('One.');
    const ours = new SabirChatTransport({ api, headers, fetch });
    expect(await ours.steer('c1', MORE)).toEqual({ turnId: run.prompt.turnId, delivered: true });
    run.text('Two.');
    run.end();
    await sending;
    const { error, message } = result();
    expect(error).toBeUndefined();
    const steered = major === 7 ? ['steering-message'] : [];
    expect(partsOf(message)).toEqual(['One.', ...steered, 'Two.']);
  },
);
