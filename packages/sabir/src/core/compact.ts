/**
 * Merges adjacent deltas of one part without changing the message they make: what a replay sends
 * instead of every delta that once was.
 */
import type { Chunk, ReasoningDeltaChunk, TextDeltaChunk, ToolInputDeltaChunk } from './chunks.ts';

type Delta = TextDeltaChunk | ReasoningDeltaChunk | ToolInputDeltaChunk;

const idOf = (delta: Delta) => (delta.type === 'tool-input-delta' ? delta.toolCallId : delta.id);
const textOf = (delta: Delta) =>
  delta.type === 'tool-input-delta' ? delta.inputTextDelta : delta.delta;
// One whose text is none is ignored by clients in process: joined, it would become text.
const isDelta = (chunk: Chunk): chunk is Delta =>
  (chunk.type === 'text-delta' ||
    chunk.type === 'reasoning-delta' ||
    chunk.type === 'tool-input-delta') &&
  typeof textOf(chunk) === 'string';

function join(run: Delta[]): Delta {
  const first = run[0] as Delta;
  if (run.length === 1) return first;
  const text = run.map(textOf).join('');
  if (first.type === 'tool-input-delta') return { ...first, inputTextDelta: text };
  const joined = { ...first, delta: text };
  // Clients keep the last metadata a part was given.
  for (const delta of run) {
    if (delta.type !== 'tool-input-delta' && delta.providerMetadata != null) {
      joined.providerMetadata = delta.providerMetadata;
    }
  }
  return joined;
}

/**
 * The same chunks with every run of deltas of one part as a single delta. Chunks that are not
 * merged are passed on as they are; none is written into.
 */
export function compactChunks(chunks: Iterable<Chunk>): Chunk[] {
  const compacted: Chunk[] = [];
  let run: Delta[] = [];
  const endRun = () => {
    if (run.length > 0) compacted.push(join(run));
    run = [];
  };
  for (const chunk of chunks) {
    const first = run[0];
    if (!isDelta(chunk)) {
      endRun();
      compacted.push(chunk);
      continue;
    }
    if (first?.type !== chunk.type || idOf(first) !== idOf(chunk)) endRun();
    run.push(chunk);
  }
  endRun();
  return compacted;
}
