import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import { createSseDecoder, type SseFrame } from '../../core/sse.ts';
import { verifyChunks } from '../../core/verify.ts';
import { decodeContract } from './decode.ts';
import {
  type ContractEvent,
  type ContractEventType,
  isContractEvent,
  toContractSse,
} from './events.ts';

const PAGE = readFileSync(new URL('../../../../../docs/PROTOCOL.md', import.meta.url), 'utf8');

const blocksOf = (info: string) =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${info}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, body = '']) => body,
  );

function framesOf(body: string): SseFrame[] {
  const frames: SseFrame[] = [];
  const decoder = createSseDecoder({ frame: (frame) => frames.push(frame) });
  // A block on a page has no empty line before its fence.
  decoder.push(`${body}\n`);
  decoder.end();
  return frames;
}

const streams = blocksOf('sse contract');
const messages = blocksOf('json contract-message');
const examples = streams.map((body, index) => {
  const frames = framesOf(body);
  const events = frames.map(({ event, data }) => ({ type: event, data: JSON.parse(data) }));
  return { body, frames, events, message: JSON.parse(messages[index] ?? 'null') };
});

/** By a record, so that the compiler misses none. */
const EVENT_TYPES: Record<ContractEventType, true> = {
  meta: true,
  'message.start': true,
  'message.delta': true,
  'message.end': true,
  'text.start': true,
  'text.end': true,
  'reasoning.start': true,
  'reasoning.delta': true,
  'reasoning.end': true,
  'tool.call': true,
  'tool.delta': true,
  'tool.result': true,
  'tool.approval': true,
  source: true,
  step: true,
  question: true,
  data: true,
  metadata: true,
  part: true,
  status: true,
  error: true,
  done: true,
};

/** What section 4 says about the order of events. */
function brokenRules(events: ContractEvent[]): string[] {
  const types = events.map(({ type }) => type);
  const isFirst = (type: string, place: number) =>
    types.indexOf(type as never) === place && types.lastIndexOf(type as never) === place;
  const broken: string[] = [];
  if (!isFirst('meta', 0)) broken.push('meta is first, once');
  if (!isFirst('message.start', 1)) broken.push('the message begins before what is in it');
  const ends = types.filter((type) => type === 'done' || type === 'error');
  if (ends.length !== 1 || ends[0] !== types.at(-1)) broken.push('one end, and last');
  if (types.at(-1) === 'done' && types.at(-2) !== 'message.end') broken.push('message.end is told');
  const calls = new Set<string>();
  for (const { type, data } of events) {
    if (type === 'tool.call' || type === 'tool.delta') calls.add(data.toolCallId);
    if (type === 'tool.result' && !calls.has(data.toolCallId)) broken.push('a call, then a result');
    if (type === 'error' && data.terminal !== true) broken.push('the last error is terminal');
  }
  return broken;
}

describe('the examples of docs/PROTOCOL.md', () => {
  it('are one run that ends well and one that fails, each with its message', () => {
    expect(examples.map(({ events }) => events.at(-1)?.type)).toEqual(['done', 'error']);
    expect(messages).toHaveLength(streams.length);
  });

  it.each(examples)('are events of the contract, in their order', ({ events }) => {
    expect(events.filter((event) => !isContractEvent(event))).toEqual([]);
    expect(brokenRules(events as ContractEvent[])).toEqual([]);
  });

  it.each(examples)('are written as we write them', ({ body, frames, events }) => {
    const written = events.map((event, index) =>
      toContractSse(event as ContractEvent, frames[index]?.id),
    );
    expect(written.join('')).toBe(`${body}\n`);
  });

  it.each(examples)('make the message that the page shows', ({ events, message }) => {
    const decode = decodeContract();
    const chunks: Chunk[] = events.flatMap((event) => decode(event as ContractEvent));
    expect(decode.end()).toEqual([]);
    expect(verifyChunks(chunks)).toEqual([]);
    expect(foldChunks(chunks)).toEqual(message);
  });
});

it('docs/PROTOCOL.md lists every event of the contract, and no other', () => {
  const section = PAGE.slice(PAGE.indexOf('## 4. The contract'), PAGE.indexOf('## 5. '));
  const listed = [...section.matchAll(/^\| (?:\+ )?`([\w.]+)` +\|/gm)].map(([, type]) => type);
  expect(listed.sort()).toEqual(Object.keys(EVENT_TYPES).sort());
});
