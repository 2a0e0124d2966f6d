import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CHAT_ID, contractBody, createContractUser } from '../../test/contract-client.ts';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  eventually,
  openSse,
  readChunks,
} from '../../test/gateway-client.ts';
import { scriptedAgent } from '../../test/scripted-agent.ts';
import type { Logger } from '../core/translator.ts';
import { serve } from '../platforms/node/serve.ts';
import { startSessionStack } from '../platforms/node/sessions.ts';
import { memorySessionStore } from '../sessions/index.ts';
import { asUpstream, type ChatGatewayOptions, memoryTurnLog } from './index.ts';

const fail = () => {
  throw new Error('the disk is full');
};
const reject = async () => fail();
const LOGGERS: [string, Logger][] = [
  ['throws', { info: fail, warn: fail, error: fail }],
  ['rejects', { info: reject, warn: reject, error: reject }],
];

describe.each(LOGGERS)('a logger that %s', (_, logger) => {
  it('changes nothing for a turn, its hooks or a failed request', async () => {
    const onFinish = fail;
    const gateway = createTestGateway(echo, { logger, onFinish });
    const carl = createUser(gateway, 'carl');
    const chunks = await readChunks(await carl.post(chatBody('hi')));
    expect(chunks.at(-1)).toMatchObject({ type: 'finish' });
    const broken = createTestGateway(echo, { logger, access: fail });
    expect((await createUser(broken, 'carl').messages()).status).toBe(500);
    const away = createTestGateway({ open: fail }, { logger });
    const [error] = (await readChunks(await createUser(away, 'carl').post(chatBody('hi')))).filter(
      ({ type }) => type === 'error',
    );
    expect(error).toMatchObject({ errorText: 'Connection failed' });
  });

  it('changes nothing for a turn through a session, its runner and its server', async () => {
    const store = memorySessionStore();
    const stack = await startSessionStack({
      store,
      logger,
      shutdownMs: 100,
      agent: (sessionId) => (sessionId === 's1' ? scriptedAgent() : fail()),
    });
    onTestFinished(() => stack.close());
    const post = (session: string) =>
      fetch(`${stack.url}/api/sessions/${session}/chat`, {
        method: 'POST',
        body: JSON.stringify(chatBody('hi')),
      });
    const unanswered = openSse(await post('s2'));
    expect((await readChunks(await post('s1'))).at(-1)).toMatchObject({ type: 'finish' });
    await unanswered.leave();
  });

  it('changes nothing for the server that answers a failed request', async () => {
    const server = await serve({ fetch: fail, logger });
    onTestFinished(server.close);
    const response = await fetch(server.url);
    expect(await response.json()).toMatchObject({ code: 'internal-error' });
  });
});

describe('log lines', () => {
  it('have neither the id of a public chat nor the text of an error in them', async () => {
    const { lines, logger } = createLogSpy();
    const secret = 'hunter2';
    const quote = () => {
      throw new Error(`${secret} in ${CHAT_ID}`);
    };
    const open = (upstream: ChatGatewayOptions['upstream'], more: Partial<ChatGatewayOptions>) =>
      createTestGateway(upstream, {
        routes: { onboarding: { public: true, meta: quote } },
        logger,
        timing: { disconnectGraceMs: 0, idleMs: 40 },
        ...more,
      });
    const memory = memoryTurnLog();
    const renew = async () => quote();
    const unrenewed = {
      ...memory,
      async begin(info: Parameters<typeof memory.begin>[0]) {
        const begun = await memory.begin(info);
        return 'writer' in begun ? { writer: { ...begun.writer, renew, renewMs: 10 } } : begun;
      },
    };
    const silent = asUpstream(() => new ReadableStream());
    const gateways = [
      open(echo, {}),
      open({ open: quote }, {}),
      open(silent, { log: unrenewed }),
      open(echo, { log: { ...memory, begin: quote }, authenticate: quote }),
    ];
    for (const gateway of gateways) {
      const anybody = createContractUser(gateway, undefined, 'onboarding');
      await readChunks(await anybody.post(contractBody(secret)));
      await anybody.resume();
      await createUser(gateway, secret).messages();
    }
    for (const message of [
      'turn began',
      'meta threw',
      'the agent could not be reached',
      'the lease could not be renewed',
      'request failed',
    ]) {
      await eventually(() => lines.some((line) => line.message === message), message);
    }
    const all = inspect(lines, { depth: 20, showHidden: true, maxStringLength: null });
    expect(all).not.toContain(secret);
    expect(all).not.toContain(CHAT_ID);
    expect(all).not.toContain(CHAT_ID.slice(5));
    // The lines of one chat can still be told from those of another.
    const began = lines.filter(({ message }) => message === 'turn began');
    const ids = new Set(began.map(({ details }) => details.chatId));
    expect([...ids]).toEqual([expect.stringMatching(/^chat_#[0-9a-f]{8}$/)]);
    const failed = lines.find(({ message }) => message === 'request failed');
    expect(failed?.details.error).toMatchObject({ name: 'Error', stack: expect.any(String) });
  });
});
