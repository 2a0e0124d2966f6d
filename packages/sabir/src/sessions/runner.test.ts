import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createLogSpy } from '../../test/gateway-client.ts';
import { scriptedAgent } from '../../test/scripted-agent.ts';
import { joinSession, startSessionChain } from '../../test/session-chain.ts';
import { type Agent, type AgentStart, Runner, type RunnerOptions } from './index.ts';

const WAIT = { timeout: 10_000, interval: 5 };

type Event = { type: string; [field: string]: unknown };

/** A session that says and confirms only what the test wants it to. */
async function startHandSession({ isOpen = true } = {}) {
  const door = { isOpen };
  const server = new WebSocketServer({ port: 0, verifyClient: () => door.isOpen });
  const heard: (Event & { frame: string })[] = [];
  let latest: WebSocket | undefined;
  server.on('connection', (socket) => {
    latest = socket;
    const data = { protocol: { name: 'sabir', version: 1 }, lastRunnerSeq: 0 };
    socket.send(JSON.stringify({ type: 'init', session: { id: 's' }, data }));
    socket.on('message', (bytes) => {
      const frame = String(bytes);
      heard.push({ ...JSON.parse(frame), frame });
    });
  });
  await once(server, 'listening');
  onTestFinished(() => {
    latest?.terminate();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    heard,
    open() {
      door.isOpen = true;
    },
    send: (command: object) => latest?.send(JSON.stringify(command)),
    cut: () => latest?.terminate(),
    prompt(turnId: string, content: string): void {
      const channel = { channelType: 'web', channelId: 'default' };
      this.send({ type: 'prompt', messageId: `p-${turnId}`, turnId, content, ...channel });
    },
    until: (is: (event: Event) => unknown) =>
      vi.waitFor(() => {
        const found = heard.find(is);
        if (!found) throw new Error(`Not among ${heard.map(({ type }) => type).join(', ')}`);
        return found;
      }, WAIT),
  };
}

function startRunner(url: string, agent: Agent, options: Partial<RunnerOptions> = {}) {
  const runner = new Runner({
    url,
    sessionId: 's',
    agent,
    WebSocket,
    stopMs: 50,
    retryMs: { least: 5, most: 20 },
    ...options,
  });
  runner.start();
  onTestFinished(() => runner.close());
  return runner;
}

const isEnd = (turnId: string) => (event: Event) =>
  event.type === 'message.finalize' && event.turnId === turnId;

describe('a runner', () => {
  it('ends a turn that it cannot tell in time, and does the next', async () => {
    const agent: Agent = {
      name: 'flood',
      async *prompt({ text }) {
        for (let n = 0; n < Number(text); n++)
          yield { type: 'text-delta', delta: 'x'.repeat(1_000) };
      },
    };
    const chain = await startSessionChain({ agent, runner: { maxOutboxBytes: 20_000 } });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: '100', turnId: 't1' });
    ann.send({ type: 'prompt', content: '2', turnId: 't2' });
    await ann.until(isEnd('t2'));
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'error', code: 'upstream-flood' },
      { turnId: 't2', reason: 'end_turn' },
    ]);
    expect(ann.text('t1').length).toBeLessThan(30_000);
    expect(ann.text('t2')).toHaveLength(2_000);
  });

  it('keeps little of what belongs to no turn while nobody can be told', async () => {
    const session = await startHandSession({ isOpen: false });
    let where!: AgentStart;
    const agent: Agent = {
      ...scriptedAgent(),
      start: async (given) => {
        where = given;
      },
    };
    startRunner(session.url, agent, { maxOutboxBytes: 20_000 });
    for (let n = 0; n < 1_000; n++) where.emit({ type: 'title', title: 'x'.repeat(1_000) });
    session.open();
    await session.until(({ type }) => type === 'runner.hello');
    session.prompt('t1', 'text');
    // What it says is in order, so everything that was kept is there by then.
    await session.until(isEnd('t1'));
    const kept = session.heard.filter(({ type }) => type === 'title');
    expect(kept.length).toBeGreaterThan(10);
    expect(kept.reduce((sum, { frame }) => sum + frame.length, 0)).toBeLessThan(22_000);
    // Once that is confirmed, there is room again.
    session.send({ type: 'ack', runnerSeq: session.heard.at(-1)?.runnerSeq });
    await vi.waitFor(() => {
      where.emit({ type: 'title', title: 'New' });
      expect(session.heard.some(({ title }) => title === 'New')).toBe(true);
    }, WAIT);
  });

  it('drops a prompt that is stopped while it waits behind another', async () => {
    const session = await startHandSession();
    const agent = scriptedAgent();
    startRunner(session.url, agent);
    await session.until(({ type }) => type === 'runner.hello');
    for (const turnId of ['t1', 't2', 't3']) session.prompt(turnId, 'slow');
    session.send({ type: 'abort', turnId: 't2', messageId: 'p-t2' });
    expect(await session.until(isEnd('t2'))).toMatchObject({ reason: 'canceled' });
    expect(session.heard.some(isEnd('t1'))).toBe(false);
    agent.go();
    await session.until(isEnd('t3'));
    expect(agent.prompts.map(({ turnId }) => turnId)).toEqual(['t1', 't3']);
  });

  it.each([
    ['an init without data', { type: 'init' }],
    ['a prompt without ids', { type: 'prompt', content: 'x' }],
    ['files that are none', { type: 'prompt', turnId: 'x', content: 'x', attachments: [null] }],
    ['a history that is none', { type: 'prompt', turnId: 'x', content: 'x', messages: {} }],
    ['a channel that is none', { type: 'prompt', turnId: 'x', content: 'x', channelId: {} }],
    ['an answer to nothing', { type: 'answer', answer: [] }],
    ['no command at all', []],
  ])('lives through %s', async (_, command) => {
    const session = await startHandSession();
    const agent = scriptedAgent();
    startRunner(session.url, agent);
    await session.until(({ type }) => type === 'runner.hello');
    session.send(command);
    session.prompt('t1', 'text');
    expect(await session.until(isEnd('t1'))).toMatchObject({ reason: 'end_turn' });
    expect(agent.prompts.map(({ turnId }) => turnId)).toEqual(['t1']);
  });

  it('says again what was not confirmed, also after a confirmation that names no place', async () => {
    const session = await startHandSession();
    startRunner(session.url, scriptedAgent());
    await session.until(({ type }) => type === 'runner.hello');
    session.prompt('t1', 'text');
    await session.until(isEnd('t1'));
    const said = session.heard.length;
    session.send({ type: 'ack', runnerSeq: 'x' });
    session.cut();
    await vi.waitFor(() => {
      expect(session.heard.slice(said).filter(isEnd('t1'))).toHaveLength(1);
    }, WAIT);
  });
});

describe('a runner that closes', () => {
  it('refuses what it is given while it says goodbye', async () => {
    const agent = scriptedAgent();
    const chain = await startSessionChain({ agent, onRunnerWanted: () => undefined });
    const runner = startRunner(chain.url, agent, { token: chain.RUNNER_TOKEN });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'slow', turnId: 't1' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    ann.send({ type: 'prompt', content: 'slow', turnId: 't2' });
    await ann.until(({ data }) => Object(data).promptQueued);
    // The session gives it the next as soon as it has ended the first.
    await runner.close();
    await ann.until(isEnd('t2'));
    const shutDown = { reason: 'error', error: 'The agent was shut down.' };
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', ...shutDown },
      { turnId: 't2', ...shutDown },
    ]);
    expect(agent.prompts.map(({ turnId }) => turnId)).toEqual(['t1']);
    expect(runner.isBusy).toBe(false);
  });

  it('refuses what waits behind another', async () => {
    const session = await startHandSession();
    const agent = scriptedAgent();
    const runner = startRunner(session.url, agent);
    await session.until(({ type }) => type === 'runner.hello');
    for (const turnId of ['t1', 't2', 't3']) session.prompt(turnId, 'slow');
    // It is told in order: when this one is gone, the other has arrived.
    session.send({ type: 'abort', turnId: 't3', messageId: 'p-t3' });
    await session.until(isEnd('t3'));
    const closing = runner.close();
    for (const turnId of ['t1', 't2']) {
      expect(await session.until(isEnd(turnId))).toMatchObject({ code: 'run-aborted' });
    }
    session.send({ type: 'ack', runnerSeq: 1_000 });
    await closing;
    expect(agent.prompts).toHaveLength(1);
  });

  it('does not wait for ever for an agent that does not close', { timeout: 5_000 }, async () => {
    const session = await startHandSession();
    const agent = { ...scriptedAgent(), close: () => new Promise<void>(() => undefined) };
    const runner = startRunner(session.url, agent);
    await session.until(({ type }) => type === 'runner.hello');
    await runner.close();
    expect(runner.isConnected).toBe(false);
  });
});

describe('runners in the process of their sessions', () => {
  it('say why an agent cannot be made, and try again for the next prompt', async () => {
    const { lines, logger } = createLogSpy();
    let made = 0;
    const chain = await startSessionChain({
      agent: () => {
        if (made++ === 0) throw new Error('There is no such agent.');
        return scriptedAgent();
      },
      runner: { logger },
      timing: { runnerStartMs: 500 },
    });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'text', turnId: 't1' });
    expect(await ann.until(isEnd('t1'))).toMatchObject({ code: 'runner-absent' });
    expect(lines).toMatchObject([
      {
        level: 'error',
        details: { sessionId: 's', error: { message: 'There is no such agent.' } },
      },
    ]);
    ann.send({ type: 'prompt', content: 'text', turnId: 't2' });
    expect(await ann.until(isEnd('t2'))).toMatchObject({ reason: 'end_turn' });
  });
});
