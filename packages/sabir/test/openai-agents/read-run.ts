import { expect } from 'vitest';
import type { Chunk } from '../../src/core/chunks.ts';
import { verifyChunks } from '../../src/core/verify.ts';
import { type StreamedRun, toChunks } from '../../src/sources/openai-agents/to-chunks.ts';
import { collect } from './play-scenario.ts';
import { countingIds, type ModelEvent } from './responses-script.ts';
import { toolsOf } from './scenario-tools.ts';
import { type Hooks, type Script, scriptedModel } from './scripted-model.ts';
import type { Sdk } from './sdks.ts';

/** The chunks of an agent that has the tools, with the model. They keep the law. */
export async function readRun(sdk: Sdk, model: unknown): Promise<Chunk[]> {
  const { weather, find } = toolsOf(sdk);
  const agent = new sdk.Agent({ name: 'Helper', model: model as never, tools: [weather, find] });
  const run = sdk.run(agent, 'Hi', { stream: true });
  const chunks = await collect(toChunks(run as Promise<StreamedRun>));
  expect(verifyChunks(chunks)).toEqual([]);
  return chunks;
}

/** A run whose model says one sentence and then nothing, until it is told to stop. */
export async function silentRun(sdk: Sdk, options: object = {}) {
  const signals: (AbortSignal | undefined)[] = [];
  const hooks: Hooks = {
    onRequest(_, signal) {
      signals.push(signal);
    },
    beforeEvent({ type }: ModelEvent) {
      if (type !== 'response.output_text.done') return undefined;
      const [signal] = signals;
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    },
  };
  const script: Script = [{ outputs: [{ text: 'Hello.' }] }];
  const model = scriptedModel(sdk, script, countingIds(), hooks);
  const agent = new sdk.Agent({ name: 'Helper', model });
  const run = await sdk.run(agent, 'Hi', { ...options, stream: true });
  return { signals, run: run as StreamedRun };
}

/** Everything that came in pieces, piece by piece. */
export function deltasOf(chunks: Chunk[]): string[] {
  return chunks.flatMap((chunk) => {
    if (chunk.type === 'text-delta') return [`says ${chunk.delta}`];
    if (chunk.type === 'reasoning-delta') return [`thinks ${chunk.delta}`];
    return chunk.type === 'tool-input-delta' ? [`asks ${chunk.inputTextDelta}`] : [];
  });
}
