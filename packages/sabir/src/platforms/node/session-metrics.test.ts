import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatBody, readChunks } from '../../../test/gateway-client.ts';
import { parseMetrics } from '../../../test/parse-metrics.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { joinSession, startSessionChain } from '../../../test/session-chain.ts';
import { memorySessionStore, type SessionStore } from '../../sessions/index.ts';
import { sqliteSessionStore, startSessionStack } from './sessions.ts';

type Chain = Awaited<ReturnType<typeof startSessionChain>>;
const scrape = ({ sessions }: Chain) => parseMetrics(sessions.metrics.toText());

describe('the metrics of a session server', () => {
  it('count sessions, clients, runners, prompts that wait, and turns by how they ended', async () => {
    const agent = scriptedAgent();
    const chain = await startSessionChain({ agent });
    expect(scrape(chain)).toMatchObject({ sabir_sessions: 0, sabir_session_running_turns: 0 });
    const ann = await joinSession(chain);
    await joinSession(chain, { user: 'vera', sessionId: 'other' });
    ann.send({ type: 'prompt', content: 'slow' });
    ann.send({ type: 'prompt', content: 'second' });
    await ann.until(({ type }) => type === 'message.part.text-delta');
    expect(scrape(chain)).toMatchObject({
      sabir_sessions: 2,
      sabir_session_clients: 2,
      sabir_session_runners: 1,
      sabir_session_running_turns: 1,
      sabir_session_queued_prompts: 1,
      'sabir_session_turns_total{outcome="finished"}': 0,
    });
    agent.go();
    await expect.poll(() => ann.of('complete').length, { timeout: 5_000 }).toBe(2);
    const metrics = scrape(chain);
    expect(metrics).toMatchObject({
      sabir_session_running_turns: 0,
      sabir_session_queued_prompts: 0,
      'sabir_session_turns_total{outcome="finished"}': 2,
      'sabir_session_turns_total{outcome="failed"}': 0,
      sabir_session_storage_errors_total: 0,
    });
    expect(metrics.sabir_session_stored_bytes).toBeGreaterThan(100);
  });

  it('count an error of the store, and say so at /readyz until a write succeeds', async () => {
    let isFull = false;
    const store = fillable(memorySessionStore(), () => isFull);
    const chain = await startSessionChain({ agent: scriptedAgent(), store });
    const ann = await joinSession(chain);
    isFull = true;
    ann.send({ type: 'prompt', content: 'hi' });
    await ann.until(({ code }) => code === 'log-failed');
    expect(scrape(chain)).toMatchObject({ sabir_session_storage_errors_total: 1 });
    expect(chain.sessions.problems()).toEqual(['storage-failing']);
    isFull = false;
    ann.send({ type: 'prompt', content: 'again' });
    await ann.until(({ type }) => type === 'complete');
    expect(chain.sessions.problems()).toEqual([]);
  });

  it('stand beside those of the gateway in a session stack, each once, with those of the process', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sabir-metrics-'));
    const store = sqliteSessionStore({ file: join(folder, 'sessions.db') });
    const stack = await startSessionStack({ store, agent: () => scriptedAgent() });
    onTestFinished(async () => {
      await stack.close();
      store.close();
      rmSync(folder, { recursive: true });
    });
    const body = JSON.stringify(chatBody('hi'));
    await readChunks(await fetch(`${stack.url}/api/sessions/s1/chat`, { method: 'POST', body }));
    const text = await (await fetch(`${stack.url}/metrics`)).text();
    const names = text.match(/(?<=# TYPE )\S+/g) ?? [];
    expect(new Set(names).size).toBe(names.length);
    const metrics = parseMetrics(text);
    expect(metrics).toMatchObject({
      'sabir_turns_total{outcome="finished"}': 1,
      'sabir_session_turns_total{outcome="finished"}': 1,
      // The agent is in this process.
      sabir_session_runners: 0,
      'sabir_event_loop_lag_seconds{quantile="0.99"}': expect.any(Number),
    });
    expect(metrics.sabir_session_stored_bytes).toBeGreaterThan(4_096);
    expect(metrics.process_resident_memory_bytes).toBeGreaterThan(1e7);
    const ready = await fetch(`${stack.url}/readyz`);
    expect(await ready.json()).toEqual({ status: 'ready' });
  });
});

/** A store whose writes fail while `isFull`. */
function fillable(store: SessionStore, isFull: () => boolean): SessionStore {
  return {
    ...store,
    open(sessionId) {
      const storage = store.open(sessionId);
      return {
        ...storage,
        addPrompt(prompt) {
          if (isFull()) throw new Error('The disk is full.');
          return storage.addPrompt(prompt);
        },
      };
    },
  };
}
