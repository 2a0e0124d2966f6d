/** What becomes of turns and of waiting prompts when a session server ends, and when it starts again. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { WebSocket } from 'ws';
import { chatBody, openSse } from '../../../test/gateway-client.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { type ChainOptions, joinSession, startSessionChain } from '../../../test/session-chain.ts';
import { foldChunks } from '../../core/fold.ts';
import { type Agent, Runner } from '../../sessions/index.ts';
import { type SessionStackOptions, sqliteSessionStore, startSessionStack } from './sessions.ts';

const WAIT = { timeout: 10_000, interval: 5 };

/** Where sessions are kept, opened anew by each process. */
function createFile() {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-shutdown-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return () => {
    const store = sqliteSessionStore({ file: join(folder, 'sabir.db') });
    onTestFinished(() => store.close());
    return store;
  };
}

async function startStack(options: Pick<SessionStackOptions, 'store' | 'agent'>) {
  const stack = await startSessionStack({ shutdownMs: 0, ...options });
  onTestFinished(() => stack.close());
  const post = async (text: string) => {
    const body = JSON.stringify(chatBody(text, { id: text }));
    return openSse(await fetch(`${stack.url}/api/sessions/s/chat`, { method: 'POST', body }));
  };
  const messages = async () =>
    (await (await fetch(`${stack.url}/api/sessions/s/messages`)).json()) as {
      role: string;
      metadata?: object;
    }[];
  return { ...stack, post, messages };
}

describe('a session stack that ends', () => {
  it('ends the turn of its agent with an error, stores it, and has the prompt that waits answered by the next one', async () => {
    const open = createFile();
    const firstStore = open();
    const first = await startStack({ store: firstStore, agent: () => scriptedAgent() });
    const running = await first.post('slow');
    await running.until(() => running.text() === 'Half ');
    const waiting = await first.post('text');
    await waiting.until(() => waiting.chunks().some(({ type }) => type === 'data-queue'));
    const began = performance.now();
    await first.close();
    expect(performance.now() - began).toBeLessThan(900);
    await Promise.all([running.ended, waiting.ended]);
    expect(foldChunks(running.chunks()).metadata).toMatchObject({
      outcome: 'failed',
      code: 'shutting-down',
    });
    // It was not withdrawn: the viewer may come back for it.
    expect(waiting.chunks().at(-2)).toMatchObject({ type: 'error' });
    expect(JSON.stringify(waiting.chunks())).not.toContain('withdrawn');
    firstStore.close();

    const second = await startStack({ store: open(), agent: () => scriptedAgent() });
    await vi.waitFor(async () => {
      expect(await second.messages()).toMatchObject([
        { role: 'user' },
        { role: 'assistant', metadata: { outcome: 'failed', code: 'shutting-down' } },
        { role: 'user' },
        { role: 'assistant', metadata: { outcome: 'finished' } },
      ]);
    }, WAIT);
  });
});

describe('a session server that ends', () => {
  /** Asks about a refund that only an owner may approve. */
  const refundAgent: Agent = {
    name: 'refund',
    async *prompt({ ask }) {
      yield { type: 'text-delta', delta: 'Half ' };
      const answer = await ask({ text: 'Refund?', questionId: 'q', answerBy: { role: 'owner' } });
      yield { type: 'text-delta', delta: `and ${Object(answer).answer}` };
    },
  };

  it('hands the turn of a runner over to the next one, with its question and who may answer it', async () => {
    const open = createFile();
    const start = (options: Partial<ChainOptions> = {}) =>
      startSessionChain({
        agent: refundAgent,
        store: open(),
        onRunnerWanted: () => undefined,
        ...options,
      });
    const first = await start();
    const runner = new Runner({
      url: first.url,
      sessionId: 's',
      agent: refundAgent,
      token: first.RUNNER_TOKEN,
      retryMs: { least: 10, most: 50 },
      WebSocket,
    });
    runner.start();
    onTestFinished(() => runner.close());
    const ann = await joinSession(first, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'Go', promptId: 'p', turnId: 't' });
    await ann.until(({ type }) => type === 'question');
    await first.close();
    expect(await ann.closed).toMatchObject({ code: 1001 });
    first.store.close();
    expect(ann.of('message.finalize')).toEqual([]);

    const second = await start({ port: first.port });
    const carl = await joinSession(second, { user: 'carl', query: '&dialect=v2' });
    carl.send({ type: 'answer', questionId: 'q', answer: true });
    expect(await carl.until(({ type }) => type === 'error')).toMatchObject({
      code: 'may-not-answer',
    });
    const olga = await joinSession(second, { user: 'olga', query: '&dialect=v2' });
    olga.send({ type: 'answer', questionId: 'q', answer: 'yes' });
    expect(await carl.until(({ type }) => type === 'message.finalize')).toMatchObject({
      turnId: 't',
      reason: 'end_turn',
    });
    expect(second.store.open('s').messages().at(-1)?.parts).toMatchObject([
      { type: 'text', text: 'Half ' },
      { type: 'data-question', data: { status: 'answered', answer: 'yes' } },
      { type: 'text', text: 'and yes' },
    ]);
  });
});
