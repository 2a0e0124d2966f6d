/** Two processes of a gateway, each with its own connection, to one real session server. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from '../../../test/session-chain.ts';
import { startSocketProxy } from '../../../test/socket-proxy.ts';
import {
  ann,
  messageOf,
  never,
  promptOf,
  takeOver,
  textOf,
  until,
  type Watched,
  watch,
} from '../../../test/upstream-turn.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { Prompt, UpstreamSession } from '../../turns/upstream.ts';
import { agentOpsUpstream } from './upstream.ts';

const YES = { type: 'answer', questionId: 'q1', answer: 'Yes' } as const;

async function setUp(options: Partial<ChainOptions> = {}) {
  const agent = scriptedAgent();
  const chain = await startSessionChain({ agent, ...options });
  /** Each time another process: nothing is shared but the server. */
  const open = async (sessionId = 's', url = chain.url): Promise<UpstreamSession> => {
    const token = ({ id }: { id: string }) => id;
    const upstream = agentOpsUpstream({ url, WebSocket, token, isSessionServer: true });
    const session = await upstream.open({ sessionId, user: ann, role: 'owner', signal: never() });
    onTestFinished(() => session.close());
    return session;
  };
  return { agent, chain, open };
}

/** Writes so many events of the turn, and is gone. */
async function dieAfter(session: UpstreamSession, prompt: Prompt, events: number) {
  const gone = Promise.withResolvers<void>();
  const begun = watch(session, prompt, 'prompt', ({ position }) => {
    if (position !== events) return;
    session.close();
    gone.resolve();
  });
  await gone.promise;
  return begun;
}

function logOf(first: Watched, second: Watched) {
  const mark = first.turn.position ?? 0;
  const log = takeOver(
    first.told.flatMap(({ chunks }) => chunks),
    mark,
    second.told,
  );
  expect(verifyChunks(log)).toEqual([]);
  return log;
}

describe('a turn whose process is gone', () => {
  it('is whole in the next, wherever it was cut, also when it has ended meanwhile', async () => {
    const { agent, open } = await setUp();
    const whole = watch(await open('whole'), promptOf('everything'));
    await whole.done;
    const count = whole.turn.position ?? 0;
    expect(count).toBeGreaterThan(12);
    for (let events = 1; events < count; events++) {
      const prompt = promptOf('everything');
      const first = await dieAfter(await open(`s${events}`), prompt, events);
      expect(first.turn.position).toBe(events);
      const second = watch(await open(`s${events}`), prompt, 'attach');
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      const wanted = { ...messageOf(whole.chunks), id: prompt.messageId };
      expect(messageOf(logOf(first, second))).toEqual(wanted);
    }
    expect(agent.prompts).toHaveLength(count);
  });

  it('goes on in the next while it runs, from one to the next again and again', async () => {
    const { agent, open } = await setUp();
    const prompt = promptOf('paced 120');
    const first = await dieAfter(await open(), prompt, 20);
    let mark = 20;
    let log = first.told.flatMap(({ chunks }) => chunks);
    while (mark < 100) {
      const session = await open();
      const until = mark + 25;
      const gone = Promise.withResolvers<void>();
      const next = watch(session, prompt, 'attach', ({ position }) => {
        if (position < until || session.isClosed) return;
        session.close();
        gone.resolve();
      });
      await gone.promise;
      log = takeOver(log, mark, next.told);
      mark = next.turn.position ?? 0;
    }
    const last = watch(await open(), prompt, 'attach');
    expect(await last.done).toMatchObject({ outcome: 'finished' });
    log = takeOver(log, mark, last.told);
    expect(verifyChunks(log)).toEqual([]);
    expect(textOf(log)).toBe(Array.from({ length: 120 }, (_, at) => `${at + 1} `).join(''));
    expect(messageOf(log)).toEqual(messageOf(last.chunks));
    expect(agent.prompts).toHaveLength(1);
  });

  it('is told from its first event though the connection is cut meanwhile', async () => {
    const { agent, chain, open } = await setUp();
    const prompt = promptOf('count 3000');
    const first = await dieAfter(await open(), prompt, 500);
    const cuts = [9_000, 60_000, 150_000];
    const proxy = await startSocketProxy(chain.port, () => cuts.shift());
    onTestFinished(() => proxy.close());
    const second = watch(await open('s', proxy.url), prompt, 'attach');
    expect(await second.done).toMatchObject({ outcome: 'finished' });
    expect(proxy.cuts).toBe(3);
    expect(messageOf(logOf(first, second))).toEqual(messageOf(second.chunks));
    expect(second.text).toHaveLength(
      Array.from({ length: 3000 }, (_, at) => `${at + 1} `).join('').length,
    );
    expect(agent.prompts).toHaveLength(1);
  });

  it('has left the queue in the next, whether it waits there or begins before', async () => {
    for (const waits of [true, false]) {
      const { agent, open } = await setUp();
      const slow = watch(await open(), promptOf('slow'));
      await until(() => slow.text === 'Half ');
      const session = await open();
      const prompt = promptOf('echo after');
      const first = watch(session, prompt);
      await until(() => first.chunks.some(({ type }) => type === 'data-queue'));
      session.close();
      // What it is closed with nobody writes any more.
      const written = first.told;
      const waiting = waits ? watch(await open(), prompt, 'attach') : undefined;
      if (waiting) await until(() => waiting.turn.isQueued && waiting.told.length > 0);
      agent.go();
      await slow.done;
      await until(() => agent.prompts.length === 2);
      const second = waiting ?? watch(await open(), prompt, 'attach');
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      const chunks = written.flatMap((told) => told.chunks);
      const log = takeOver(chunks, 0, second.told);
      expect(verifyChunks(log)).toEqual([]);
      expect(log.findLast(({ type }) => type === 'data-queue')).toMatchObject({
        data: { position: 0, status: 'begun' },
      });
      expect(textOf(log)).toBe('echo after');
      expect(agent.prompts).toHaveLength(2);
    }
  });

  it('is stopped in the next, if its prompt was taken back meanwhile', async () => {
    const { agent, chain, open } = await setUp();
    const slow = watch(await open(), promptOf('slow'));
    await until(() => slow.text === 'Half ');
    const session = await open();
    const prompt = promptOf('echo never');
    const first = watch(session, prompt);
    await until(() => first.chunks.some(({ type }) => type === 'data-queue'));
    session.close();
    const page = await joinSession(chain);
    page.send({ type: 'withdraw', promptId: prompt.turnId });
    await page.until(({ type }) => type === 'queue.withdrawn');
    const second = watch(await open(), prompt, 'attach');
    expect(await second.done).toMatchObject({ outcome: 'stopped', reason: 'withdrawn' });
    agent.go();
    await slow.done;
    expect(agent.prompts).toHaveLength(1);
  });

  it('stops in the next, whether the stop had arrived or was lost with the process', async () => {
    const { agent, chain, open } = await setUp();
    for (const arrives of [true, false]) {
      const proxy = await startSocketProxy(chain.port, () => undefined);
      onTestFinished(() => proxy.close());
      const session = await open('s', proxy.url);
      const prompt = promptOf('slow');
      const first = watch(session, prompt);
      await until(() => first.text === 'Half ');
      if (!arrives) proxy.cutAll();
      first.turn.stop();
      if (arrives) await first.done;
      session.close();
      const next = await open();
      const second = watch(next, prompt, 'attach');
      second.turn.stop();
      expect(await second.done).toMatchObject({ outcome: 'stopped' });
      expect(second.text).toBe('Half ');
      await until(() => !next.isBusy);
      expect(agent.prompts.at(-1)?.signal.aborted).toBe(true);
    }
    expect(agent.prompts).toHaveLength(2);
  });

  it('has the answer that was lost with the process, if the next gives it again', async () => {
    const { agent, chain, open } = await setUp();
    const proxy = await startSocketProxy(chain.port, () => undefined);
    onTestFinished(() => proxy.close());
    const session = await open('s', proxy.url);
    const prompt = promptOf('question');
    const first = watch(session, prompt);
    await until(() => first.chunks.some(({ type }) => type === 'data-question'));
    proxy.cutAll();
    first.turn.answer(YES);
    session.close();
    const second = watch(await open(), prompt, 'attach');
    // Before it has been told of the question.
    second.turn.answer(YES);
    expect(await second.done).toMatchObject({ outcome: 'finished' });
    expect(second.text).toContain('Answered: Yes');
    expect(agent.prompts).toHaveLength(1);
  });

  it('tells at its place that nobody answered in time', async () => {
    const { open } = await setUp({ timing: { questionMs: 300 } });
    const prompt = promptOf('question');
    const first = watch(await open(), prompt);
    await first.done;
    const second = watch(await open(), prompt, 'attach');
    await second.done;
    for (const { chunks } of [first, second]) {
      expect(chunks.findLast(({ type }) => type === 'data-question')).toMatchObject({
        data: { questionId: 'q1', status: 'expired' },
      });
    }
    expect(second.text).toContain('Answered: nobody');
    expect(messageOf(second.chunks)).toEqual(messageOf(first.chunks));
  });

  it('fails in the next, if the server has forgotten its events', async () => {
    const { agent, open } = await setUp();
    const prompt = promptOf('text');
    const session = await open();
    await watch(session, prompt).done;
    for (let turns = 0; turns < 18; turns++) await watch(session, promptOf('text')).done;
    const second = watch(session, prompt, 'attach');
    expect(await second.done).toMatchObject({ outcome: 'failed', code: 'upstream-dropped' });
    expect(second.closed).toHaveLength(1);
    expect(second.turn.position).toBe(0);
    expect(agent.prompts).toHaveLength(19);
  });

  it('is taken from whoever had it in the same session, who is told', async () => {
    const { agent, open } = await setUp();
    const session = await open();
    const prompt = promptOf('slow');
    const first = watch(session, prompt);
    await until(() => first.text === 'Half ');
    const second = watch(session, prompt, 'attach');
    expect(await first.done).toMatchObject({ outcome: 'failed' });
    agent.go();
    expect(await second.done).toMatchObject({ outcome: 'finished' });
    expect(second.text).toBe('Half and whole.');
    expect(agent.prompts).toHaveLength(1);
  });
});
