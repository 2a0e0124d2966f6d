import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  eventually,
  isSettled,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import {
  type ChatGatewayOptions,
  memoryTurnLog,
  type SessionRecord,
  sessionAccess,
} from './index.ts';

type User = ReturnType<typeof createUser>;

const DOORS: Array<[string, (user: User) => Promise<Response>]> = [
  ['send', (user) => user.post(chatBody('hi'))],
  ['stop', (user) => user.stop()],
  ['answer', (user) => user.answer('q1', 'yes')],
  ['watch', (user) => user.resume()],
  ['read the history', (user) => user.messages()],
  ['list the channels', (user) => user.channels()],
];

/** Everything of a response that somebody could tell two apart by. */
async function whole(response: Response) {
  const { status, statusText } = response;
  return { status, statusText, headers: [...response.headers], body: await response.text() };
}

describe('roles', () => {
  it.each(DOORS.slice(0, 3))(
    'a viewer who tries to %s learns as little as if there were no such session [RFC-INT-3.3] [RFC-AUTH-04] [RFC-AUTH-05]',
    async (_, knock) => {
      const agent = createAgent();
      const gateway = createTestGateway(agent.upstream);
      const sse = openSse(await createUser(gateway, 'carl').post(chatBody('go')));
      const run = await agent.run();
      run.say({ type: 'data-question', id: 'q1', data: { questionId: 'q1', status: 'open' } });
      await sse.until(() => sse.raw().includes('q1'));
      const refused = await whole(await knock(createUser(gateway, 'vera')));
      const unknown = await whole(await knock(createUser(gateway, 'vera', 'nowhere')));
      expect(refused.status).toBe(404);
      expect(refused).toEqual(unknown);
      expect(run.turn.signal.aborted).toBe(false);
      expect(agent.runs).toHaveLength(1);
    },
  );

  it('a viewer watches, resumes, and reads messages and channels', async () => {
    const agent = createAgent();
    const gateway = createTestGateway({
      async open(where) {
        const session = await agent.upstream.open(where);
        return {
          isClosed: false,
          close: () => session.close(),
          prompt: (prompt, sink) => session.prompt(prompt, sink),
          history: async () => [],
        };
      },
    });
    const first = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
    (await agent.run()).delta('Hel');
    await first.until(() => first.text());
    const vera = createUser(gateway, 'vera');
    const watching = openSse(await vera.resume());
    const { id } = await watching.until(() => watching.frames.findLast(({ id }) => id));
    expect(watching.text()).toBe('Hel');
    const resumed = openSse(await vera.resumeAt(id as string));
    agent.runs[0]?.delta('lo');
    agent.runs[0]?.end();
    await Promise.all([watching.ended, resumed.ended]);
    expect([watching.text(), resumed.text()]).toEqual(['Hello', 'lo']);
    expect((await vera.messages()).status).toBe(200);
    expect((await vera.channels()).status).toBe(200);
  });

  it.each(['carl', 'olga'])('%s sends, stops and answers', async (name) => {
    const agent = createAgent();
    const user = createUser(createTestGateway(agent.upstream), name);
    const sse = openSse(await user.post(chatBody('hi')));
    const run = await agent.run();
    run.say({ type: 'data-question', id: 'q1', data: { questionId: 'q1', status: 'open' } });
    await sse.until(() => sse.raw().includes('q1'));
    expect((await user.answer('q1', 'yes')).status).toBe(202);
    expect((await user.stop()).status).toBe(202);
    await sse.ended;
  });

  it('a role nobody has heard of opens nothing', async () => {
    const gateway = createTestGateway(echo, { access: () => 'admin' as 'owner' });
    for (const [, knock] of DOORS) {
      expect((await knock(createUser(gateway, 'carl'))).status).toBe(404);
    }
  });
});

describe('sessions', () => {
  it.each(DOORS)(
    'whoever has no access and tries to %s gets the 404 of a session that does not exist [RFC-ERR-09] [RFC-INT-3.2]',
    async (_, knock) => {
      let opened = 0;
      const upstream: ChatGatewayOptions['upstream'] = () => {
        opened++;
        return echo;
      };
      const gateway = createTestGateway(upstream);
      const unknown = await whole(await knock(createUser(gateway, 'carl', 'nowhere')));
      expect(await whole(await knock(createUser(gateway, 'mallory')))).toEqual(unknown);
      const off = createTestGateway(upstream, { enabled: () => false });
      expect(await whole(await knock(createUser(off, 'olga')))).toEqual(unknown);
      expect(unknown.status).toBe(404);
      expect(opened).toBe(0);
    },
  );

  it('are switched on by user and session', async () => {
    const gateway = createTestGateway(echo, {
      enabled: async (user, sessionId) => user.id === 'carl' && sessionId === 's2',
    });
    const statusOf = async (name: string, sessionId: string) =>
      (await createUser(gateway, name, sessionId).post(chatBody('hi'))).status;
    expect(await statusOf('carl', 's2')).toBe(200);
    expect(await statusOf('carl', 's1')).toBe(404);
    expect(await statusOf('olga', 's2')).toBe(404);
  });

  const records: Record<string, SessionRecord> = {
    shared: { ownerId: 'olga', roles: { carl: 'collaborator', vera: 'viewer', olga: 'viewer' } },
    boss: { ownerId: 'olga', isOrchestrator: true, roles: { carl: 'owner', vera: 'viewer' } },
    bare: { ownerId: 'olga' },
  };
  const access = sessionAccess(async (id) => records[id]);

  it('give their owner everything, their members their role, and others nothing', async () => {
    const roles = (id: string) =>
      Promise.all(
        ['olga', 'carl', 'vera', 'mallory', 'constructor'].map((u) => access({ id: u }, id)),
      );
    expect(await roles('shared')).toEqual(['owner', 'collaborator', 'viewer', null, null]);
    expect(await roles('bare')).toEqual(['owner', null, null, null, null]);
    expect(await roles('nowhere')).toEqual([null, null, null, null, null]);
  });

  it('of an orchestrator are their owner’s alone, whatever role others were given [RFC-AUTH-06]', async () => {
    const gateway = createTestGateway(echo, { access });
    await readChunks(await createUser(gateway, 'olga', 'boss').post(chatBody('hi')));
    for (const [, knock] of DOORS) {
      for (const name of ['carl', 'vera']) {
        const refused = await whole(await knock(createUser(gateway, name, 'boss')));
        expect(refused).toEqual(await whole(await knock(createUser(gateway, name, 'nowhere'))));
      }
    }
  });
});

describe('a token that expires', () => {
  /** Everybody signs in for as long as their token says: `carl_200` for 200 ms from the start. */
  function createExpiring(options: Partial<ChatGatewayOptions> = {}) {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, {
      authenticate: (request) => {
        const [, id = '', expiresAt] =
          /^Bearer ([a-z]+)_?(\d*)$/.exec(request.headers.get('authorization') ?? '') ?? [];
        return { id, ...(expiresAt && { expiresAt: Number(expiresAt) }) };
      },
      ...options,
    });
    const soon = (name: string, ms = 60) => createUser(gateway, `${name}_${Date.now() + ms}`);
    return { agent, gateway, soon };
  }

  it('has expired by the time it is looked at: 401', async () => {
    const { gateway } = createExpiring();
    const response = await createUser(gateway, `carl_${Date.now() - 1}`).post(chatBody('hi'));
    expect(await refusal(response)).toMatchObject({ status: 401, code: 'not-signed-in' });
  });

  it('ends a stock client’s stream with a clear error, while the turn goes on for others', async () => {
    const { agent, gateway, soon } = createExpiring();
    const first = openSse(await soon('carl').post(chatBody('hi')));
    const run = await agent.run();
    run.say({ type: 'start-step' });
    run.say({ type: 'tool-input-available', toolCallId: 'c', toolName: 'look', input: {} });
    run.delta('half a');
    const other = openSse(await createUser(gateway, 'cora').resume());
    await first.ended;
    expect(first.chunks().slice(-6)).toEqual([
      { type: 'text-end', id: 'open' },
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'The tool gave no result.' },
      { type: 'finish-step' },
      {
        type: 'message-metadata',
        messageMetadata: { outcome: 'failed', code: 'sign-in-expired' },
      },
      { type: 'error', errorText: 'Your sign-in has expired.' },
      { type: 'finish', finishReason: 'error' },
    ]);
    expect(first.frames.at(-1)?.data).toBe('[DONE]');
    // What is not in the log has no number: nobody can come back to after it.
    expect(first.frames.slice(-7).map(({ id }) => id)).toEqual(new Array(7).fill(undefined));
    run.delta(' word');
    run.end();
    await other.ended;
    expect(other.text()).toBe('half a word');
    expect(other.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
  });

  it('just ends the stream of a client that comes back by itself', async () => {
    const { agent, soon } = createExpiring();
    const headers = { 'x-sabir-resume': '0' };
    const first = openSse(await soon('carl').post(chatBody('hi'), { headers }));
    const run = await agent.run();
    run.delta('half a');
    await first.ended;
    expect(first.chunks().map(({ type }) => type)).toEqual(['start', 'text-start', 'text-delta']);
    expect(first.raw()).not.toContain('[DONE]');
    const { id } = first.frames.at(-1) ?? {};
    const second = openSse(await soon('carl', 60_000).resumeAt(id as string));
    run.delta(' word');
    run.end();
    await second.ended;
    expect(first.text() + second.text()).toBe('half a word');
  });

  it('ends a stream on which nothing has come yet', async () => {
    const { agent, soon } = createExpiring();
    const sse = openSse(await soon('carl').post(chatBody('hi')));
    await agent.run();
    await sse.ended;
    expect(sse.chunks()).toMatchObject([
      { type: 'start' },
      { type: 'message-metadata' },
      { type: 'error', errorText: 'Your sign-in has expired.' },
      { type: 'finish' },
    ]);
  });

  it('ends a stream in order also while more is being said', async () => {
    const log = memoryTurnLog();
    const { agent, soon } = createExpiring({
      // A store that takes its time to let go of a reader.
      log: {
        ...log,
        async *read(...where) {
          try {
            yield* log.read(...where);
          } finally {
            await new Promise((resolve) => setTimeout(resolve, 50));
          }
        },
      },
    });
    const sse = openSse(await soon('carl').post(chatBody('hi')));
    const run = await agent.run();
    run.delta('half a');
    await sse.until(() => sse.text());
    const talking = setInterval(() => run.say({ type: 'text-start', id: `${Math.random()}` }), 5);
    await sse.ended;
    clearInterval(talking);
    const open = new Set<string>();
    for (const chunk of sse.chunks()) {
      if (chunk.type === 'text-start') open.add(chunk.id);
      if (chunk.type === 'text-end') expect(open.delete(chunk.id)).toBe(true);
    }
    expect(open.size).toBe(0);
    expect(sse.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'error' });
  });

  it('does not stop the turn, though its only viewer is gone', async () => {
    const { agent, gateway, soon } = createExpiring({ timing: { disconnectGraceMs: 10 } });
    const sse = openSse(await soon('carl').post(chatBody('hi')));
    const { turn } = await agent.run();
    await sse.ended;
    const stopped = eventually(() => turn.signal.aborted);
    expect(await isSettled(stopped)).toBe(false);
    expect((await createUser(gateway, 'carl').stop()).status).toBe(202);
    await stopped;
  });
});
