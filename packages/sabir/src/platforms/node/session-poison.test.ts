import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openSocket } from '../../../test/raw-http.ts';
import { toFrame, upgradeAs } from '../../../test/raw-websocket.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import {
  type ChainClient,
  type ChainOptions,
  joinSession,
  saidBefore,
  startSessionChain,
} from '../../../test/session-chain.ts';
import {
  type Agent,
  DEFAULT_CHANNEL,
  memorySessionStore,
  type SessionStore,
} from '../../sessions/index.ts';
import { memoryTurnLog } from '../../turns/memory.ts';
import { sqliteSessionStore, startSessionStack } from './sessions.ts';

const MB = 1_000_000;

function inFile(): SessionStore {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-poison-'));
  const store = sqliteSessionStore({ file: join(folder, 'sessions.db') });
  onTestFinished(() => {
    store.close();
    rmSync(folder, { recursive: true });
  });
  return store;
}

const start = (options: Partial<ChainOptions> = {}) =>
  startSessionChain({ agent: scriptedAgent(), ...options });

/** How many bytes of JSON are parsed meanwhile, by the server and by the test's own clients. */
async function parsedBytes(run: () => Promise<unknown>): Promise<number> {
  const parse = vi.spyOn(JSON, 'parse');
  try {
    await run();
    return parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
  } finally {
    parse.mockRestore();
  }
}

/** What is reachable. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

const INIT_BYTES = 120_000;

/** 40 messages of 50 KB, and one short one behind them. */
function poison(store: SessionStore): void {
  const text = 'x'.repeat(50_000);
  for (let n = 0; n < 40; n++) store.open('s').addMessage(saidBefore(`large ${n}`, text));
  store.open('s').addMessage(saidBefore('last', 'short'));
}

describe('a session with many large messages', () => {
  it.each([
    ['in memory', memorySessionStore],
    ['in a file', inFile],
  ])('sends a viewer no more messages than fit, and loads no more: %s', async (_, create) => {
    const store = create();
    poison(store);
    const chain = await start({ store, limits: { initBytes: INIT_BYTES } });
    const parsed = await parsedBytes(async () => {
      const vera = await joinSession(chain, { user: 'vera' });
      const { messages } = Object(vera.events[0]?.session);
      const ids = (messages as { id: string }[]).map(({ id }) => id);
      expect(ids).toEqual(['large 38', 'large 39', 'last']);
    });
    expect(parsed).toBeLessThan(3 * INIT_BYTES);
  });

  it('gives a runner no more of them than fits', async () => {
    const store = inFile();
    poison(store);
    const agent = scriptedAgent({ needsHistory: true });
    const chain = await start({ store, agent, limits: { historyBytes: INIT_BYTES } });
    const ann = await joinSession(chain, { query: '&messages=0' });
    const parsed = await parsedBytes(async () => {
      ann.send({ type: 'prompt', content: 'text', promptId: 'p' });
      await ann.until(({ type }) => type === 'message.finalize');
    });
    const ids = agent.prompts[0]?.messages.map(({ id }) => id);
    expect(ids).toEqual(['large 38', 'large 39', 'last', 'p']);
    expect(parsed).toBeLessThan(3 * INIT_BYTES);
  });

  it('answers GET /messages through the gateway, again and again', async () => {
    const store = inFile();
    poison(store);
    const stack = await startSessionStack({
      store,
      agent: () => scriptedAgent(),
      shutdownMs: 100,
      sessions: { limits: { initBytes: INIT_BYTES } },
    });
    onTestFinished(() => stack.close());
    for (let round = 0; round < 3; round++) {
      const parsed = await parsedBytes(async () => {
        const response = await fetch(`${stack.url}/api/sessions/s/messages`);
        const messages = (await response.json()) as { id: string }[];
        expect(messages.map(({ id }) => id)).toEqual(['large 38', 'large 39', 'last']);
      });
      expect(parsed).toBeLessThan(4 * INIT_BYTES);
    }
  });
});

describe('a session that holds as much as it may', () => {
  it('refuses prompts with an error that says what to do, before anything is stored', async () => {
    const chain = await start({ limits: { sessionBytes: 12_000 } });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'x'.repeat(3_000), turnId: 't1' });
    await ann.until(({ type }) => type === 'message.finalize');
    ann.send({ type: 'prompt', content: 'x'.repeat(3_000), promptId: 'refused' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({
      code: 'session-full',
      promptId: 'refused',
    });
    expect(chain.store.open('s').promptInfo('promptId', 'refused')).toBeUndefined();
    expect(chain.sessions.metrics.toText()).toContain(
      'sabir_limit_refusals_total{limit="sessions.sessionBytes"} 1\n',
    );
  });

  it('fails a turn whose answer would not fit', async () => {
    const chain = await start({ limits: { sessionBytes: 20_000 } });
    const ann = await joinSession(chain);
    ann.send({ type: 'prompt', content: 'count 5000' });
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      reason: 'error',
      code: 'session-full',
    });
  });
});

/** The places of the events that a client has got, in the order they came. */
const seqsOf = ({ events }: ChainClient): number[] =>
  events.flatMap(({ seq }) => (seq === undefined ? [] : [Number(seq)]));

/** 15 MB, in 30 pieces. */
const longAgent: Agent = {
  name: 'long',
  async *prompt() {
    for (let n = 0; n < 30; n++) {
      await new Promise((resolve) => setImmediate(resolve));
      yield { type: 'text-delta', delta: 'x'.repeat(500_000) };
    }
  },
};

describe('a turn of many bytes', () => {
  it('is sent to viewers who follow it at the pace of their sockets, and completely', async () => {
    const chain = await start({ agent: longAgent, limits: { clientBufferBytes: 2 * MB } });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'Go on', turnId: 't' });
    await ann.until(({ type }) => type === 'message.finalize');
    // Those who never read: what is loaded for them is what the system's own buffers take.
    const follow = toFrame(1, Buffer.from('{"type":"follow","turnId":"t"}'));
    const parsed = await parsedBytes(async () => {
      for (let n = 0; n < 5; n++) {
        const socket = openSocket(chain.port, upgradeAs('vera'));
        socket.pause();
        socket.write(follow);
      }
      await expect.poll(() => chain.sessions.clientCount).toBe(6);
      await new Promise((resolve) => setTimeout(resolve, 300));
    });
    expect(parsed).toBeLessThan(5 * 11 * MB);
    const vera = await joinSession(chain, { user: 'vera', query: '&dialect=v2&messages=0' });
    vera.send({ type: 'follow', turnId: 't' });
    vera.send({ type: 'ping' });
    await vera.until(({ type }) => type === 'pong');
    expect(seqsOf(vera)).toEqual(seqsOf(ann));
    expect(vera.text('t')).toHaveLength(15 * MB);
    // In order: the answer to the later message comes later.
    expect(vera.events.at(-1)).toEqual({ type: 'pong' });
  });

  it('is followed in order while it goes on', async () => {
    const agent = scriptedAgent();
    const chain = await start({ agent });
    const ann = await joinSession(chain, { query: '&dialect=v2' });
    ann.send({ type: 'prompt', content: 'bursts 4000', turnId: 't' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    const vera = await joinSession(chain, { user: 'vera', query: '&dialect=v2&messages=0' });
    vera.send({ type: 'follow', turnId: 't' });
    await vera.until(({ type }) => type === 'complete');
    // Without the events that came between its connection and its request.
    const seqs = seqsOf(vera);
    expect(seqs.slice(seqs.indexOf(1))).toEqual(seqsOf(ann));
    expect(seqsOf(ann)).toEqual([...seqsOf(ann)].sort((one, other) => one - other));
  });
});

describe('the events of turns that have ended', () => {
  it('can be followed for as long as the log keeps them, and then the answer says that they are gone', async () => {
    const chain = await start({ log: memoryTurnLog({ retainedBytes: 30_000 }) });
    const ann = await joinSession(chain);
    for (const turnId of ['t1', 't2', 't3', 't4']) {
      ann.send({ type: 'prompt', content: `echo ${'x'.repeat(10_000)}`, turnId });
      await ann.until((event) => event.type === 'complete' && event.turnId === turnId);
    }
    ann.send({ type: 'follow', turnId: 't1' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({ code: 'events-gone' });
    const seen = ann.of('message.finalize').length;
    ann.send({ type: 'follow', turnId: 't4' });
    await expect.poll(() => ann.of('message.finalize').length).toBe(seen + 1);
  });
});

describe('a queue of large prompts', () => {
  it('stays in the storage when the server starts again', async () => {
    const store = inFile();
    const text = `text ${'x'.repeat(5 * MB)}`;
    for (let n = 0; n < 8; n++) {
      store.open('s').addPrompt({
        ...{ promptId: `p${n}`, turnId: `t${n}`, messageId: `m${n}`, status: 'queued' },
        ...{ text, attachments: [], body: {}, authorId: 'ann', askedAt: 1 },
        ...DEFAULT_CHANNEL,
      });
    }
    const before = heapBytes();
    const chain = await start({ store, onRunnerWanted: () => undefined });
    expect(chain.sessions.sessions.size).toBe(1);
    expect(heapBytes() - before).toBeLessThan(10 * MB);
  });
});
