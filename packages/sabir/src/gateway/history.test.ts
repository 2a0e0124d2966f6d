import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  echo,
  openSse,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import {
  type ChatGatewayOptions,
  memoryTurnLog,
  type Upstream,
  type UpstreamSession,
} from './index.ts';

const said = (role: 'user' | 'assistant', id: string, text: string): UIMessage => ({
  id,
  role,
  parts: [{ type: 'text', text }],
});

/** An agent that keeps the history that the test writes. */
function createHistorian(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const history: UIMessage[] = [said('user', 'u0', 'before'), said('assistant', 'a0', 'so')];
  const read = { whileReading: async () => undefined as unknown };
  const upstream: Upstream = {
    async open(where) {
      const session = await agent.upstream.open(where);
      const historian: UpstreamSession = {
        get isClosed() {
          return session.isClosed;
        },
        prompt: (prompt, sink) => session.prompt(prompt, sink),
        close: () => session.close(),
        async history() {
          const copy = [...history];
          await read.whileReading();
          return copy;
        },
      };
      return historian;
    },
  };
  const gateway = createTestGateway(upstream, options);
  const carl = createUser(gateway, 'carl');
  const messages = async (user = carl) => (await (await user.messages()).json()) as UIMessage[];
  return { agent, gateway, carl, history, read, messages };
}

/** Sends, has the agent say half of it, and lets the client go. */
async function startTurn(historian: ReturnType<typeof createHistorian>) {
  const { agent, carl, history } = historian;
  const headers = { 'x-sabir-detach': '1' };
  const sse = openSse(await carl.post(chatBody('now'), { headers }));
  const run = await agent.run();
  run.delta('half');
  await sse.until(() => sse.text());
  const id = foldChunks(sse.chunks()).id;
  history.push(said('user', 'u-now', 'now'), said('assistant', id, 'half'));
  return { sse, run, id };
}

describe('the history', () => {
  it('is what the upstream keeps', async () => {
    const { carl, history, messages } = createHistorian();
    expect(await messages()).toEqual(history);
    const response = await carl.messages();
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
    });
  });

  it('of an upstream that keeps none is not there: 404', async () => {
    const response = await createUser(createTestGateway(echo), 'carl').messages();
    expect(await refusal(response)).toMatchObject({ status: 404, code: 'no-history' });
  });

  it('and the running answer are each there once after a reload', async () => {
    const historian = createHistorian();
    const { sse, run, id } = await startTurn(historian);
    await sse.leave();
    const history = await historian.messages();
    expect(history.map((message) => message.id)).toEqual(['u0', 'a0', 'u-now']);
    const resumed = openSse(await historian.carl.resume());
    run.delta(' and half');
    run.end();
    await resumed.ended;
    expect(foldChunks(resumed.chunks())).toMatchObject({
      id,
      parts: [{ type: 'text', text: 'half and half' }],
    });
    // Nothing runs any more: now it is the history that has it.
    expect((await historian.messages()).map((message) => message.id)).toContain(id);
    expect((await historian.carl.resume()).status).toBe(204);
  });

  it('leaves out an answer that ends while the history is being read', async () => {
    const historian = createHistorian();
    const { sse, run, id } = await startTurn(historian);
    historian.read.whileReading = () => {
      run.end();
      return sse.ended;
    };
    expect((await historian.messages()).map((message) => message.id)).not.toContain(id);
    const resumed = openSse(await historian.carl.resume());
    await resumed.ended;
    expect(foldChunks(resumed.chunks())).toEqual(foldChunks(sse.chunks()));
  });

  it('leaves out nothing that runs in another session', async () => {
    const historian = createHistorian();
    const { id } = await startTurn(historian);
    const elsewhere = createUser(historian.gateway, 'carl', 's2');
    expect((await historian.messages(elsewhere)).map((message) => message.id)).toContain(id);
  });
});

describe('an answer that ended between history and resume', () => {
  async function endInBetween(options: Partial<ChatGatewayOptions> = {}) {
    const historian = createHistorian(options);
    const turn = await startTurn(historian);
    await historian.messages();
    turn.run.end();
    await turn.sse.ended;
    return { ...historian, ...turn };
  }

  it('is still given to the page, whole, and once', async () => {
    const { carl, sse } = await endInBetween();
    const resumed = await readChunks(await carl.resume());
    expect(foldChunks(resumed)).toEqual(foldChunks(sse.chunks()));
    expect((await carl.resume()).status).toBe(204);
  });

  it('is given to nobody else', async () => {
    const { gateway, carl } = await endInBetween();
    expect((await createUser(gateway, 'cora').resume()).status).toBe(204);
    expect((await carl.resume()).status).toBe(200);
  });

  it('is given to each of one person’s pages', async () => {
    const historian = createHistorian();
    const { run, sse } = await startTurn(historian);
    await historian.messages();
    await historian.messages();
    const first = openSse(await historian.carl.resume());
    run.end();
    await Promise.all([first.ended, sse.ended]);
    const second = await readChunks(await historian.carl.resume());
    expect(foldChunks(second)).toEqual(foldChunks(first.chunks()));
    expect((await historian.carl.resume()).status).toBe(204);
  });

  it.each([
    [59_000, 200],
    [60_001, 204],
  ])('after %d ms: %d', async (ms, status) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const log = memoryTurnLog({ retentionMs: 600_000, elapsed: Date.now });
    const { carl } = await endInBetween({ log });
    vi.setSystemTime(Date.now() + ms);
    expect((await carl.resume()).status).toBe(status);
  });

  it('is not given to a page whose history has it already', async () => {
    const { carl, messages, id } = await endInBetween();
    expect((await messages()).map((message) => message.id)).toContain(id);
    expect((await carl.resume()).status).toBe(204);
  });

  it('is known by the id that its source names late', async () => {
    const historian = createHistorian();
    const { agent, carl, history } = historian;
    const sse = openSse(await carl.post(chatBody('now')));
    const run = await agent.run();
    await historian.messages();
    run.say({ type: 'start', messageId: 'its own' });
    run.text('whole');
    run.end();
    await sse.ended;
    const { id } = foldChunks(sse.chunks());
    history.push(said('assistant', id, 'whole'));
    await historian.messages();
    expect((await carl.resume()).status).toBe(204);
  });

  it('is still given after somebody else has got a history with it', async () => {
    const { gateway, carl, messages } = await endInBetween();
    await messages(createUser(gateway, 'cora'));
    expect((await carl.resume()).status).toBe(200);
  });
});
