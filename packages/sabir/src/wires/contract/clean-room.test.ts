import { describe, expect, it } from 'vitest';
import { CHUNK_FIXTURES, encodeAll } from '../../../test/contract-fixtures.ts';
import { runSeedClient } from '../../../test/seed-client.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { Loose } from '../../core/loose.ts';
import { toContractSse } from './events.ts';

const isTool = ({ type }: Loose) => type === 'dynamic-tool' || String(type).startsWith('tool-');

/** Calls of which only half an input was ever told. */
function halfCalls(chunks: Chunk[]): Set<unknown> {
  const half = new Set<unknown>();
  for (const chunk of chunks) {
    if (chunk.type === 'tool-input-start') half.add(chunk.toolCallId);
    if (chunk.type === 'tool-input-available') half.delete(chunk.toolCallId);
  }
  return half;
}

/** As much of a message as the contract's first version has words for. */
function shown(parts: readonly object[], half = new Set<unknown>()) {
  const loose = parts as Loose[];
  const texts = loose.filter(({ type }) => type === 'text').map(({ text }) => text);
  const tools = loose.filter(isTool).map(({ type, toolName, toolCallId, ...rest }) => ({
    id: toolCallId,
    name: toolName ?? String(type).slice('tool-'.length),
    // It has no word for a call that waits for approval.
    state: String(rest.state).startsWith('approval-') ? 'input-available' : rest.state,
    // Nor does such a client make anything of half an input.
    input: half.has(toolCallId) ? undefined : rest.input,
    output: rest.output,
    errorText: rest.errorText,
  }));
  const sources = loose
    .filter(({ type }) => type === 'source-url')
    .map(({ sourceId, url, title }) => ({ sourceId, url, title }));
  return { text: texts.join(''), tools, sources };
}

const toBody = (chunks: Chunk[]) =>
  encodeAll(chunks)
    .map((event, index) => toContractSse(event, `t:${index + 1}`))
    .join('');

describe('a client that was written from the first version alone', () => {
  it.each(CHUNK_FIXTURES)('shows what we show of fixture $name', ({ chunks }) => {
    const { messages, status, error } = runSeedClient(toBody(chunks));
    const expected = foldChunks(chunks);
    expect(messages.map(({ id, role }) => ({ id, role }))).toEqual([
      { id: expected.id, role: 'assistant' },
    ]);
    expect(shown(messages[0]?.parts ?? [])).toEqual(shown(expected.parts, halfCalls(chunks)));
    const failure = chunks.find((chunk) => chunk.type === 'error');
    expect(status).toBe(failure ? 'error' : 'ready');
    expect(error).toBe(failure?.errorText);
  });

  it('has seen calls, errors, sources and texts', () => {
    const all = CHUNK_FIXTURES.map(({ chunks }) => shown(foldChunks(chunks).parts));
    expect(all.some(({ tools }) => tools.some(({ state }) => state === 'output-error'))).toBe(true);
    expect(all.some(({ tools }) => tools.length > 1)).toBe(true);
    expect(all.some(({ sources }) => sources.length > 0)).toBe(true);
    expect(all.some(({ text }) => text.length > 0)).toBe(true);
  });
});
