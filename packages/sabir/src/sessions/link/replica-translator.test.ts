import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { CHUNK_FIXTURES } from '../../../test/contract-fixtures.ts';
import type { Chunk } from '../../core/chunks.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createChunkTranslator } from '../../sources/ai-sdk/translate.ts';
import { createReplicaTranslator } from './replica-translator.ts';

/** What a session has in its log of an agent that yields these. */
function logOf(said: readonly Chunk[], isStopped = false): Chunk[] {
  const translator = createChunkTranslator({ messageId: 'm', isMessageIdFixed: true });
  const log = said.flatMap((chunk) => translator.push(chunk));
  return [...log, ...translator.end({ status: isStopped ? 'stopped' : 'finished' })];
}

function expectSame(log: Chunk[], from: number): void {
  const replica = createReplicaTranslator('m', log.slice(0, from));
  expect(log.slice(from).flatMap((chunk) => replica.push(chunk))).toEqual(log.slice(from));
  expect(replica.ended).toBe(true);
  expect(replica.push({ type: 'text-delta', id: '1', delta: 'late' })).toEqual([]);
}

function expectLawful(log: Chunk[], cut: number): void {
  const replica = createReplicaTranslator('m', []);
  const begun = log.slice(0, cut).flatMap((chunk) => replica.push(chunk));
  const ended = replica.end({ status: 'failed', code: 'upstream-dropped', message: 'Gone.' });
  expect(begun).toEqual(log.slice(0, cut));
  expect(verifyChunks([...begun, ...ended], { aiSdk: 7 })).toEqual([]);
}

describe('the replica of a session’s log', () => {
  it('has its very chunks, from any cut on', () => {
    for (const { chunks } of CHUNK_FIXTURES) {
      for (const isStopped of [false, true]) {
        const log = logOf(chunks, isStopped);
        for (let cut = 0; cut < log.length; cut++) expectSame(log, cut);
      }
    }
  });

  it('has the very chunks that any source gives', () => {
    for (const { chunks } of CHUNK_FIXTURES) {
      if (chunks.at(-1)?.type === 'finish') expectSame(chunks, 0);
    }
  });

  it.each([5, 6, 7] as const)('has the very chunks of any agent of AI SDK %i', (major) => {
    fc.assert(
      fc.property(chunkSequences(major), fc.nat(), (said, cut) => {
        const log = logOf(said as Chunk[]);
        expectSame(log, cut % log.length);
      }),
    );
  });

  it('is closed lawfully after any cut', () => {
    const ends = new Set<string>(['abort', 'error', 'finish']);
    for (const { chunks } of CHUNK_FIXTURES) {
      const log = logOf(chunks);
      const end = log.findIndex(({ type }) => ends.has(type));
      for (let cut = 0; cut <= end; cut++) expectLawful(log, cut);
    }
  });

  it.each([
    ['is null', null],
    ['is a text', 'text-delta'],
    ['has no type', {}],
    ['has an unknown type', { type: 'shout' }],
    ['is of a text that never began', { type: 'text-delta', id: 'x', delta: 'x' }],
    ['ends a text that never began', { type: 'text-end', id: 'x' }],
    ['has no delta', { type: 'text-delta', id: '1' }],
    ['is an error without a text', { type: 'error' }],
    ['finishes for no known reason', { type: 'finish', finishReason: 7 }],
    ['finishes with metadata that is none', { type: 'finish', messageMetadata: 'x' }],
    ['finishes while a text is open', { type: 'finish' }],
    ['fails while a text is open', { type: 'error', errorText: 'It broke.' }],
  ])('stays lawful after a chunk that no session logs: one that %s', (_, chunk) => {
    const begun: Chunk[] = [
      { type: 'start', messageId: 'm' },
      { type: 'text-start', id: '1' },
    ];
    const replica = createReplicaTranslator('m', begun);
    const chunks = [...replica.push(chunk), ...replica.push({ type: 'text-end', id: '1' })];
    chunks.push(...replica.end({ status: 'finished' }));
    expect(verifyChunks([...begun, ...chunks], { aiSdk: 7 })).toEqual([]);
    expect(chunks.at(-1)?.type).toBe('finish');
  });

  it.each([{ type: 'abort' }, { type: 'error', errorText: 'x' }, { type: 'finish' }])(
    'begins with a start, also where its session begins with $type',
    (chunk) => {
      const replica = createReplicaTranslator('m', []);
      const chunks = [...replica.push(chunk), ...replica.end({ status: 'stopped' })];
      expect(verifyChunks(chunks, { aiSdk: 7 })).toEqual([]);
    },
  );

  it('ends a turn as failed when a chunk comes that no session logs', () => {
    const replica = createReplicaTranslator('m', [{ type: 'start', messageId: 'm' }]);
    const ended = replica.push({ type: 'text-delta', id: 'never begun', delta: 'x' });
    expect(replica.ended).toBe(true);
    expect(ended.at(-1)).toMatchObject({ type: 'finish', finishReason: 'error' });
    expect(replica.push({ type: 'text-start', id: '1' })).toEqual([]);
  });
});
