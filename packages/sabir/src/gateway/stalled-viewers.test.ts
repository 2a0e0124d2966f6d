import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatBody, createAgent, createUser } from '../../test/gateway-client.ts';
import { startServer } from '../../test/raw-http.ts';
import type { Chunk } from '../core/chunks.ts';
import { createChatGateway } from './index.ts';

const MEGABYTE = 1_000_000;

/** A gateway on a port with one running turn, which has said these. */
async function startTurn(chunks: Chunk[]) {
  const agent = createAgent();
  const gateway = createChatGateway({
    upstream: agent.upstream,
    authenticate: () => ({ id: 'olga' }),
    access: () => 'owner',
    timing: { shutdownMs: 0 },
  });
  const { port } = await startServer(gateway.fetch);
  onTestFinished(() => gateway.close());
  const headers = { 'x-sabir-detach': '1', 'x-sabir-ai-sdk': '7' };
  const olga = createUser(gateway, 'olga');
  const begun = await olga.post(chatBody('go'), { headers });
  const turnId = begun.headers.get('x-sabir-turn');
  await begun.body?.cancel();
  const run = await agent.run();
  for (const chunk of chunks) run.say(chunk);
  await readUntil(await olga.resume(), `:${chunks.length + 1}\n`);
  return { run, port, turnId };
}

async function readUntil({ body }: Response, text: string): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of body ?? []) if (decoder.decode(bytes).includes(text)) return;
}

/** Asks for the turn after a cursor, and reads nothing of it. */
async function stall(port: number, cursor: string): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  socket.pause();
  const lines = [
    'GET /api/sessions/s1/chat/c1/stream HTTP/1.1',
    'Host: localhost',
    `Last-Event-ID: ${cursor}`,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
}

function heldBytes(): number {
  for (let n = 0; n < 4; n++) globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

describe('forty viewers who come late to a turn of 12 MB and read nothing', () => {
  async function expectLittle(chunks: Chunk[], seqOf: (viewer: number) => number): Promise<void> {
    const { port, turnId } = await startTurn(chunks);
    await stall(port, `${turnId}:0`);
    await setTimeout(100);
    const before = heldBytes();
    for (let n = 0; n < 40; n++) await stall(port, `${turnId}:${seqOf(n)}`);
    await setTimeout(500);
    const more = heldBytes() - before;
    console.log(`40 stalled viewers: ${(more / MEGABYTE).toFixed(1)} MB more`);
    expect(more).toBeLessThan(20 * MEGABYTE);
  }

  it('share the large chunks that they have not taken', async () => {
    const chunks = Array.from({ length: 12 }, (_, n): Chunk => {
      return { type: 'data-x', id: `${n}`, data: 'x'.repeat(MEGABYTE) };
    });
    await expectLittle(chunks, () => 0);
  });

  it('have a small piece each where they come with different cursors', async () => {
    const deltas = Array.from({ length: 60_000 }, (): Chunk => {
      return { type: 'text-delta', id: '1', delta: 'x'.repeat(200) };
    });
    await expectLittle([{ type: 'text-start', id: '1' }, ...deltas], (n) => 10 + n);
  });
});

describe('a resume of a long turn', () => {
  it('leaves the event loop to others between its pieces', async () => {
    const deltas = Array.from({ length: 150_000 }, (): Chunk => {
      return { type: 'text-delta', id: '1', delta: 'word ' };
    });
    const { port, run } = await startTurn([{ type: 'text-start', id: '1' }, ...deltas]);
    let rounds = 0;
    let longestMs = 0;
    let at = performance.now();
    const count = () => {
      rounds++;
      const now = performance.now();
      longestMs = Math.max(longestMs, now - at);
      at = now;
      if (isReading) setImmediate(count);
    };
    let isReading = true;
    const response = await fetch(`http://127.0.0.1:${port}/api/sessions/s1/chat/c1/stream`);
    count();
    await readUntil(response, `:${deltas.length + 2}\n`);
    isReading = false;
    console.log(`${rounds} rounds of the loop, the longest ${longestMs.toFixed(0)} ms`);
    // One synchronous piece would take a handful of rounds, however fast the machine is.
    expect(rounds).toBeGreaterThan(50);
    run.end();
  });
});
