/** The chunks of every fixture there is, for what has to hold of any turn. */
import { readdirSync } from 'node:fs';
import type { Chunk } from '../src/core/chunks.ts';
import { type ContractEncoder, encodeContract } from '../src/wires/contract/encode.ts';
import type { ContractEvent } from '../src/wires/contract/events.ts';
import { readJsonl } from './jsonl.ts';

const FIXTURES = new URL('fixtures/', import.meta.url);

export const CHUNK_FIXTURES: { name: string; chunks: Chunk[] }[] = readdirSync(FIXTURES, {
  recursive: true,
  encoding: 'utf8',
})
  .filter((file) => file.endsWith('.chunks.jsonl'))
  .sort()
  .map((file) => ({
    name: file.replace('.chunks.jsonl', ''),
    chunks: readJsonl(new URL(file, FIXTURES)) as Chunk[],
  }));

/** What an encoder makes of the chunks; without `end()`. */
export function encodeAll(
  chunks: Chunk[],
  encode: ContractEncoder = encodeContract(),
): ContractEvent[] {
  return chunks.flatMap((chunk) => encode(chunk));
}
