/** The server is killed at random moments, and what it had said must be true afterwards. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ChainClient, joinSession } from './session-chain.ts';
import { createRandom, startSessionChild } from './session-child.ts';

const KILLS = 25;
const SESSIONS = ['s1', 's2', 's3'];
const DELTAS = 120;
const WHOLE = Array.from({ length: DELTAS }, (_, i) => `${i + 1} `).join('');

type Told = {
  /** The prompts it said it has taken. */
  taken: Set<string>;
  /** The last word it has told of each answer; whoever came late has not heard the first. */
  words: Map<string, number>;
  /** How it said that each ended. */
  ends: Map<string, unknown>;
};
type Message = { id: string; role: string; content: string; promptId?: string; parts?: Part[] };
type Part = { type: string; reason?: string; code?: string; message?: string };

function listen({ events }: ChainClient, told: Told): void {
  for (const { type, turnId, delta, reason, data } of events) {
    const { id, role, promptQueued, promptId } = (data ?? {}) as Record<string, string>;
    if (type === 'message' && role === 'user') told.taken.add(id as string);
    if (type === 'status' && promptQueued) told.taken.add(promptId as string);
    if (type === 'message.part.text-delta') told.words.set(turnId as string, Number(delta));
    if (type === 'message.finalize') told.ends.set(turnId as string, reason);
  }
  events.length = 0;
}

/** Everything that was said before the kill, against what is there after it. */
function compare(told: Told, messages: Message[]): void {
  const ids = messages.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  for (const promptId of told.taken) {
    expect(messages.filter(({ id }) => id === promptId)).toHaveLength(1);
    expect(messages.filter((message) => message.promptId === promptId)).toHaveLength(1);
  }
  for (const [turnId, word] of told.words) {
    expect(messages.find(({ id }) => id === turnId)?.content).toContain(`${word} `);
  }
  for (const { id, role, content, parts } of messages) {
    if (role !== 'assistant') continue;
    const finish = parts?.find(({ type }) => type === 'finish');
    const error = parts?.find(({ type }) => type === 'error');
    expect(WHOLE.startsWith(content)).toBe(true);
    if (content === WHOLE && finish?.reason === 'end_turn') continue;
    // Broken, and marked as such.
    expect(finish).toMatchObject({ reason: 'error' });
    expect(error).toMatchObject({ code: 'server-restarted' });
    expect(told.ends.get(id) ?? 'error').toBe('error');
  }
}

async function killRepeatedly(seed: number): Promise<{ broken: number; messages: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-kill-'));
  const file = join(folder, 'sessions.db');
  const random = createRandom(seed);
  const told = new Map<string, Told>(
    SESSIONS.map((id) => [id, { taken: new Set(), words: new Map(), ends: new Map() }]),
  );
  let prompts = 0;
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      const server = await startSessionChild(file);
      const clients = await Promise.all(
        SESSIONS.map((sessionId) => joinSession(server, { sessionId, query: '&dialect=v2' })),
      );
      for (const client of clients) {
        for (let i = 0; i < 2; i++) {
          const promptId = `p${++prompts}`;
          client.send({
            type: 'prompt',
            content: `bursts ${DELTAS}`,
            promptId,
            turnId: `t-${promptId}`,
          });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, random() * 120));
      await server.kill();
      for (const [i, id] of SESSIONS.entries()) {
        listen(clients[i] as ChainClient, told.get(id) as Told);
      }
    }
    return await settle(file, told);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Comes back one more time: nothing is stuck, and everything is as it was said. */
async function settle(file: string, told: Map<string, Told>) {
  const server = await startSessionChild(file);
  let [broken, messages] = [0, 0];
  for (const sessionId of SESSIONS) {
    const client = await joinSession(server, { sessionId, query: '&dialect=v2' });
    client.send({
      type: 'prompt',
      content: `bursts ${DELTAS}`,
      promptId: 'last',
      turnId: 't-last',
    });
    // What was left in the queue comes first.
    const isLast = ({ type, turnId }: { type: string; turnId?: unknown }) =>
      type === 'message.finalize' && turnId === 't-last';
    const end = await client.until(isLast, 60_000);
    expect(end).toMatchObject({ reason: 'end_turn' });
    client.close();
    const again = await joinSession(server, { sessionId });
    const { session, data } = again.events[0] as unknown as {
      session: { messages: Message[] };
      data: { turn: unknown; queue: unknown[] };
    };
    expect([data.turn, data.queue]).toEqual([null, []]);
    compare(told.get(sessionId) as Told, session.messages);
    messages += session.messages.length;
    broken += session.messages.filter(({ parts }) =>
      parts?.some(({ type }) => type === 'error'),
    ).length;
    again.close();
  }
  await server.kill();
  return { broken, messages };
}

it('killed at 50 random moments: what was taken is there once, what broke is marked, nothing is stuck [BAR-03]', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  // Two at a time: most of a round is starting.
  const runs = await Promise.all([seed, seed + 1].map(killRepeatedly));
  const broken = runs.reduce((sum, run) => sum + run.broken, 0);
  const messages = runs.reduce((sum, run) => sum + run.messages, 0);
  console.log(`${2 * KILLS} kills, seed ${seed}: ${messages} messages, ${broken} broken answers`);
  expect(broken).toBeGreaterThan(0);
}, 120_000);
