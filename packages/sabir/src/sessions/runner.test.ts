import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { scriptedAgent } from '../../test/scripted-agent.ts';
import { joinSession, startSessionChain } from '../../test/session-chain.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import { verifyChunks } from '../core/verify.ts';
import { type Agent, type AgentStart, Runner, type RunnerOptions } from './index.ts';

const WAIT = { timeout: 10_000, interval: 5 };

type Frame = { type: string; [field: string]: unknown };

/** A session that sends and confirms only what the test wants it to. */
async function startHandSession({ isOpen = true, confirms = true } = {}) {
  const door = { isOpen };
  const server = new WebSocketServer({ port: 0, verifyClient: () => door.isOpen });
  const frames: Frame[] = [];
  let latest: WebSocket | undefined;
  const send = (command: object) => latest?.send(JSON.stringify(command));
  server.on('connection', (socket) => {
    latest = socket;
    const protocol = { name: 'sabir-runner', version: 1 };
    send({ type: 'init', session: { id: 's' }, protocol });
    socket.on('message', (bytes) => {
      const frame = JSON.parse(String(bytes)) as Frame;
      frames.push(frame);
      const { type, turnId, seq } = frame;
      if (type === 'bye') send({ type: 'pong' });
      if (type === 'chunks' && confirms) send({ type: 'ack', turnId, seq });
    });
  });
  await once(server, 'listening');
  onTestFinished(() => {
    latest?.terminate();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const chunksOf = (turnId: string, from = 0) =>
    frames
      .slice(from)
      .filter((frame) => frame.type === 'chunks' && frame.turnId === turnId)
      .flatMap(({ chunks }) => chunks as Chunk[]);
  const until = <Found>(find: () => Found | undefined) =>
    vi.waitFor(() => {
      const found = find();
      if (!found) throw new Error(`Not among ${JSON.stringify(frames)}`);
      return found;
    }, WAIT);
  return {
    url: `http://127.0.0.1:${port}`,
    frames,
    of: (type: string) => frames.filter((frame) => frame.type === type),
    open() {
      door.isOpen = true;
    },
    send,
    cut: () => latest?.terminate(),
    prompt(turnId: string, text: string): void {
      const ids = { turnId, messageId: `m-${turnId}`, promptId: `p-${turnId}` };
      const where = { sessionId: 's', chatId: 'c', chatKey: 'k', user: { id: 'ann' } };
      const prompt = { ...ids, ...where, text, attachments: [], messages: [], body: {} };
      send({ type: 'prompt', prompt, questionMs: 60_000 });
    },
    chunksOf,
    until,
    greeted: () => until(() => frames.find(({ type }) => type === 'hello')),
    /** The chunks of a turn, once it has ended. */
    ended: (turnId: string) =>
      until(() => {
        const chunks = chunksOf(turnId);
        return chunks.at(-1)?.type === 'finish' ? chunks : undefined;
      }),
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

const isEnd = (turnId: string) => (event: Frame) =>
  event.type === 'message.finalize' && event.turnId === turnId;

const outcomeOf = (chunks: Chunk[]) => (foldChunks(chunks).metadata as { outcome: string }).outcome;

describe('a runner', () => {
  it('answers a prompt with chunks that keep the law, in numbered frames', async () => {
    const session = await startHandSession();
    startRunner(session.url, scriptedAgent());
    expect(await session.greeted()).toEqual({ type: 'hello', turnId: null, known: [] });
    session.prompt('t1', 'everything');
    const chunks = await session.ended('t1');
    expect(verifyChunks(chunks)).toEqual([]);
    expect(chunks[0]).toMatchObject({ type: 'start', messageId: 'm-t1' });
    const seqs = session.of('chunks').map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, at) => at + 1));
    expect(session.of('event')).toEqual([
      { type: 'event', event: { type: 'git-state', branch: 'main' } },
    ]);
  });

  it('asks people, and passes on their answer or that there is none', async () => {
    const session = await startHandSession();
    startRunner(session.url, scriptedAgent());
    await session.greeted();
    for (const [turnId, command, words] of [
      ['t1', { type: 'answer', answer: 'Yes' }, 'Answered: Yes'],
      ['t2', { type: 'expire' }, 'Answered: nobody'],
    ] as const) {
      session.prompt(turnId, 'question');
      await session.until(() =>
        session.chunksOf(turnId).find(({ type }) => type === 'data-question'),
      );
      session.send({ ...command, turnId: 'another', questionId: 'q1' });
      session.send({ ...command, turnId, questionId: 'q1' });
      const { parts } = foldChunks(await session.ended(turnId));
      expect(parts.at(-1)).toMatchObject({ type: 'text', text: words });
    }
  });

  it('gives its agent a message for the running turn once, and says what came of it', async () => {
    const session = await startHandSession();
    const taken: string[] = [];
    const agent = scriptedAgent();
    const steer = ({ text }: { text: string }) => taken.push(text) < 2;
    startRunner(session.url, { ...agent, steer });
    await session.greeted();
    session.prompt('t1', 'question');
    await session.until(() => session.chunksOf('t1').find(({ type }) => type === 'data-question'));
    const message = (id: string) => ({ type: 'steer', id, text: id, attachments: [] }) as const;
    session.send({ type: 'steer', turnId: 'another', message: message('m0') });
    // A session sends again what it has sent before a drop.
    for (const id of ['m1', 'm1', 'm2']) {
      session.send({ type: 'steer', turnId: 't1', message: message(id) });
    }
    session.send({ type: 'answer', turnId: 't1', questionId: 'q1', answer: 'Yes' });
    const chunks = await session.ended('t1');
    expect(taken).toEqual(['m1', 'm2']);
    expect(chunks.filter(({ type }) => /steering/.test(type))).toMatchObject([
      { type: 'steering-message', id: 'm1', parts: [{ type: 'text', text: 'm1' }] },
      { type: 'data-steering', data: { id: 'm2', status: 'refused' } },
    ]);
  });

  it('gives its agent a message for a turn that waited behind the one before it', async () => {
    const session = await startHandSession();
    const taken: string[] = [];
    const first = Promise.withResolvers<void>();
    startRunner(session.url, {
      name: 'slow to stop',
      async *prompt({ turnId }) {
        yield { type: 'text-delta', id: '1', delta: turnId };
        if (turnId === 't1') await first.promise;
        else await vi.waitFor(() => expect(taken).toEqual(['More!']));
      },
      steer: ({ text }) => taken.push(text) > 0,
    });
    await session.greeted();
    session.prompt('t1', 'go');
    await session.until(() => session.chunksOf('t1').length > 0);
    session.send({ type: 'stop', turnId: 't1' });
    session.prompt('t2', 'go');
    const message = { type: 'steer', id: 'm1', text: 'More!', attachments: [] } as const;
    session.send({ type: 'steer', turnId: 't2', message });
    first.resolve();
    const chunks = await session.ended('t2');
    expect(chunks).toContainEqual(expect.objectContaining({ type: 'steering-message', id: 'm1' }));
  });

  it('ends a turn that it cannot send in time, and answers the next', async () => {
    const agent: Agent = {
      name: 'flood',
      async *prompt({ text }) {
        for (let n = 0; n < Number(text); n++)
          yield { type: 'text-delta', delta: 'x'.repeat(1_000) };
      },
    };
    const chain = await startSessionChain({ agent, runner: { maxOutboxBytes: 20_000 } });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: '1000', turnId: 't1' });
    ann.send({ type: 'prompt', content: '2', turnId: 't2' });
    await ann.until(isEnd('t2'));
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'error', code: 'upstream-flood' },
      { turnId: 't2', reason: 'end_turn' },
    ]);
    expect(ann.text('t2')).toHaveLength(2_000);
  });

  it('keeps the latest session events, and not too many, while it has no connection', async () => {
    const session = await startHandSession({ isOpen: false });
    let where!: AgentStart;
    const agent: Agent = {
      ...scriptedAgent(),
      start: async (given) => {
        where = given;
      },
    };
    startRunner(session.url, agent, { maxOutboxBytes: 20_000 });
    for (let n = 0; n < 1_000; n++) where.emit({ type: 'title', n, title: 'x'.repeat(1_000) });
    session.open();
    await session.greeted();
    where.emit({ type: 'title', n: 1_000 });
    const last = () => session.of('event').find(({ event }) => Object(event).n === 1_000);
    await session.until(last);
    const kept = session.of('event').map(({ event }) => (event as { n: number }).n);
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, at) => 1_001 - kept.length + at));
    expect(kept.length).toBeGreaterThan(10);
    expect(JSON.stringify(session.of('event')).length).toBeLessThan(22_000);
  });

  it('drops a prompt that is stopped while it waits behind another', async () => {
    const session = await startHandSession();
    const agent = scriptedAgent();
    startRunner(session.url, agent);
    await session.greeted();
    for (const turnId of ['t1', 't2', 't3']) session.prompt(turnId, 'slow');
    session.send({ type: 'stop', turnId: 't2' });
    expect(outcomeOf(await session.ended('t2'))).toBe('stopped');
    expect(session.chunksOf('t1').at(-1)?.type).not.toBe('finish');
    agent.go();
    await session.ended('t3');
    expect(agent.prompts.map(({ turnId }) => turnId)).toEqual(['t1', 't3']);
  });

  it('stops the turn that it works on, and no other', async () => {
    const session = await startHandSession();
    const agent = scriptedAgent();
    startRunner(session.url, agent);
    await session.greeted();
    session.prompt('t1', 'slow');
    await session.until(() => session.chunksOf('t1').find(({ type }) => type === 'text-delta'));
    session.send({ type: 'stop', turnId: 'another' });
    session.send({ type: 'stop', turnId: 't1' });
    expect(outcomeOf(await session.ended('t1'))).toBe('stopped');
    expect(agent.prompts[0]?.signal.aborted).toBe(true);
  });

  it('closes an agent that does not stop, and starts it anew for the next prompt', async () => {
    const session = await startHandSession();
    const agent = { ...scriptedAgent(), start: vi.fn(), close: vi.fn() };
    startRunner(session.url, agent);
    await session.greeted();
    session.prompt('t1', 'stubborn');
    await session.until(() => session.chunksOf('t1').find(({ type }) => type === 'text-delta'));
    session.send({ type: 'stop', turnId: 't1' });
    expect(outcomeOf(await session.ended('t1'))).toBe('stopped');
    expect(agent.close).not.toHaveBeenCalled();
    session.prompt('t2', 'text');
    expect(outcomeOf(await session.ended('t2'))).toBe('finished');
    expect(agent.close).toHaveBeenCalledTimes(1);
    expect(agent.start).toHaveBeenCalledTimes(2);
  });

  it.each([
    ['an init without a protocol', { type: 'init' }],
    ['a prompt without ids', { type: 'prompt', prompt: { text: 'x' }, questionMs: 1 }],
    ['a prompt without a prompt', { type: 'prompt', questionMs: 1 }],
    ['an answer to nothing', { type: 'answer', answer: [] }],
    ['a confirmation of nothing', { type: 'ack' }],
    ['no command at all', []],
  ])('lives through %s', async (_, command) => {
    const session = await startHandSession();
    const agent = scriptedAgent();
    startRunner(session.url, agent);
    await session.greeted();
    session.send(command);
    session.prompt('t1', 'text');
    expect(outcomeOf(await session.ended('t1'))).toBe('finished');
    expect(agent.prompts.map(({ turnId }) => turnId)).toEqual(['t1']);
  });

  it('sends again what was not confirmed, also after a confirmation that names no frame', async () => {
    const session = await startHandSession({ confirms: false });
    startRunner(session.url, scriptedAgent());
    await session.greeted();
    session.prompt('t1', 'text');
    const chunks = await session.ended('t1');
    const sent = session.frames.length;
    session.send({ type: 'ack', turnId: 't1', seq: 'x' });
    session.send({ type: 'ack', turnId: 'another', seq: 99 });
    session.cut();
    await vi.waitFor(() => expect(session.chunksOf('t1', sent)).toEqual(chunks), WAIT);
    expect(session.frames[sent]).toEqual({ type: 'hello', turnId: null, known: ['t1'] });
  });

  it('sends nothing again that was confirmed, and takes no prompt twice', async () => {
    const session = await startHandSession({ confirms: false });
    const agent = scriptedAgent();
    startRunner(session.url, agent);
    await session.greeted();
    session.prompt('t1', 'slow');
    await session.until(() => session.chunksOf('t1').find(({ type }) => type === 'text-delta'));
    const sent = session.frames.length;
    session.send({ type: 'ack', turnId: 't1', seq: session.frames.at(-1)?.seq });
    session.send({ type: 'pong' });
    await new Promise((resolve) => setTimeout(resolve, 20));
    session.cut();
    await vi.waitFor(() => expect(session.frames[sent]).toBeDefined(), WAIT);
    expect(session.frames[sent]).toEqual({ type: 'hello', turnId: 't1', known: ['t1'] });
    session.prompt('t1', 'slow');
    agent.go();
    await session.ended('t1');
    const again = session.chunksOf('t1', sent);
    expect(again.map(({ type }) => type)).toEqual(['text-delta', 'text-end', 'finish']);
    expect(agent.prompts).toHaveLength(1);
  });

  it('fails a prompt whose agent cannot be started, and tries again for the next', async () => {
    const session = await startHandSession();
    const isBroken = new Error('No key.');
    // The first start is before there is a prompt.
    const start = vi.fn().mockRejectedValueOnce(isBroken).mockRejectedValueOnce(isBroken);
    startRunner(session.url, { ...scriptedAgent(), start });
    await session.greeted();
    session.prompt('t1', 'text');
    const chunks = await session.ended('t1');
    expect(chunks).toContainEqual({ type: 'error', errorText: 'No key.' });
    session.prompt('t2', 'text');
    expect(outcomeOf(await session.ended('t2'))).toBe('finished');
    expect(start).toHaveBeenCalledTimes(3);
  });
});

describe('a runner that closes', () => {
  it('ends its turn, and leaves what waits to the next runner', async () => {
    const agent = scriptedAgent();
    const chain = await startSessionChain({ agent, onRunnerWanted: () => undefined });
    const runner = startRunner(chain.url, agent, { token: chain.RUNNER_TOKEN });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'slow', turnId: 't1' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    ann.send({ type: 'prompt', content: 'text', turnId: 't2' });
    await ann.until(({ data }) => Object(data).promptQueued);
    await runner.close();
    expect(await ann.until(isEnd('t1'))).toMatchObject({
      reason: 'error',
      error: 'The agent was shut down.',
    });
    expect(runner.isBusy).toBe(false);
    startRunner(chain.url, agent, { token: chain.RUNNER_TOKEN });
    expect(await ann.until(isEnd('t2'))).toMatchObject({ reason: 'end_turn' });
    expect(agent.prompts.map(({ messageId }) => messageId)).toEqual(['t1', 't2']);
  });

  it('refuses what waits behind another, and what it gets while it leaves', async () => {
    const session = await startHandSession({ confirms: false });
    const agent = scriptedAgent();
    const runner = startRunner(session.url, agent);
    await session.greeted();
    for (const turnId of ['t1', 't2', 't3']) session.prompt(turnId, 'slow');
    // When this one has ended, the others have arrived.
    session.send({ type: 'stop', turnId: 't3' });
    await session.ended('t3');
    const closing = runner.close();
    await session.until(() => session.of('bye')[0]);
    session.prompt('t4', 'slow');
    for (const turnId of ['t1', 't2', 't4']) {
      expect(foldChunks(await session.ended(turnId)).metadata).toMatchObject({
        outcome: 'failed',
        code: 'run-aborted',
      });
    }
    for (const { turnId, seq } of session.of('chunks')) session.send({ type: 'ack', turnId, seq });
    await closing;
    expect(agent.prompts).toHaveLength(1);
  });

  it('does not wait for ever for an agent that does not close', { timeout: 5_000 }, async () => {
    const session = await startHandSession();
    const agent = { ...scriptedAgent(), close: () => new Promise<void>(() => undefined) };
    const runner = startRunner(session.url, agent);
    await session.greeted();
    await runner.close();
    expect(runner.isConnected).toBe(false);
  });
});
