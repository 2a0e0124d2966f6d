import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { findToolFaults, runPrompt } from '../../../test/driver-run.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { DriverEvent } from '../../turns/driver.ts';
import { chunkDriver } from './chunk-driver.ts';

type Told = { text: string[]; reasoning: string[]; sources: unknown[]; calls: [string, unknown][] };

/** What chunks say, told by the chunks alone: texts whole, in the order in which they began. */
function toldBy(chunks: Chunk[]): Told {
  const blocks = { text: [] as string[], reasoning: [] as string[] };
  const open = new Map<string, number>();
  const calls = new Map<string, unknown>();
  const sources: unknown[] = [];
  for (const chunk of chunks) {
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') {
      const kind = chunk.type === 'text-start' ? 'text' : 'reasoning';
      open.set(chunk.id, blocks[kind].push('') - 1);
    } else if (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta') {
      const kind = chunk.type === 'text-delta' ? 'text' : 'reasoning';
      blocks[kind][open.get(chunk.id) as number] += chunk.delta;
    } else if (chunk.type === 'source-url' || chunk.type === 'source-document') {
      const { providerMetadata: _, type, ...source } = chunk;
      sources.push(source);
    } else if (chunk.type === 'tool-input-available') calls.set(chunk.toolCallId, 'running');
    else if (chunk.type === 'tool-input-error' || chunk.type === 'tool-output-error') {
      calls.set(chunk.toolCallId, chunk.errorText || 'The tool failed.');
    } else if (chunk.type === 'tool-output-available') calls.set(chunk.toolCallId, [chunk.output]);
    else if (chunk.type === 'tool-output-denied') calls.set(chunk.toolCallId, 'denied');
    else if (chunk.type === 'tool-input-start') calls.set(chunk.toolCallId, 'pending');
  }
  return { ...blocks, sources, calls: [...calls] };
}

const textOf = (events: DriverEvent[], type: 'text' | 'reasoning') =>
  events.map((event) => (event.type === type ? event.delta : '')).join('');

async function play(chunks: Chunk[]) {
  async function* answer(): AsyncGenerator<Chunk> {
    yield* chunks;
  }
  const turn = runPrompt(chunkDriver({ answer }), 'hi');
  const error = await turn.done.then(
    () => undefined,
    (reason: Error) => reason.message,
  );
  return { events: turn.events, error };
}

it.each([5, 6, 7] as const)('tells all that chunks of AI SDK %i say', async (major) => {
  await fc.assert(
    fc.asyncProperty(chunkSequences(major), async (given) => {
      // An abort ends the answer, which is told elsewhere.
      const chunks = given.filter(({ type }) => type !== 'abort');
      const failed = chunks.find((chunk) => chunk.type === 'error');
      const { events, error } = await play(chunks);
      expect(error).toBe(failed && 'failed');
      const told = toldBy(chunks);
      expect(textOf(events, 'text')).toBe(told.text.join(''));
      expect(textOf(events, 'reasoning')).toBe(told.reasoning.join(''));
      const sources = events.flatMap((event) => {
        if (event.type !== 'source') return [];
        const { type: _, ...source } = event;
        return [source];
      });
      expect(sources).toEqual(told.sources);
      expect(findToolFaults(events, !failed)).toEqual([]);
      const ends = new Map(
        events.flatMap((event) => (event.type === 'tool' ? [[event.callId, event] as const] : [])),
      );
      expect([...ends.keys()]).toEqual(told.calls.map(([callId]) => callId));
      for (const [callId, end] of told.calls) {
        const { status, result, error: words } = ends.get(callId) ?? {};
        if (Array.isArray(end)) expect([status, result]).toEqual(['completed', end[0]]);
        else if (!['running', 'pending', 'denied'].includes(end as string)) {
          expect([status, words]).toEqual(['error', end]);
        } else expect(status).toBe('error');
      }
    }),
    { numRuns: 200 },
  );
});

it('never throws but for an error, whatever is cut off or aborts', async () => {
  await fc.assert(
    fc.asyncProperty(chunkSequences(7), async (chunks) => {
      const { events, error } = await play(chunks);
      const stops = chunks.find(({ type }) => type === 'error' || type === 'abort');
      expect(error).toBe(stops?.type === 'error' ? 'failed' : undefined);
      expect(findToolFaults(events, stops?.type !== 'error')).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
