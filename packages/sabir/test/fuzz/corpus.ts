/** Real inputs to begin with: what was recorded, and what the properties' generators make. */
import { readdirSync } from 'node:fs';
import fc from 'fast-check';
import type { Chunk } from '../../src/core/chunks.ts';
import { encodeContract } from '../../src/wires/contract/encode.ts';
import type { ContractEvent } from '../../src/wires/contract/events.ts';
import { anyEvents } from '../arbitrary-agent-ops.ts';
import { chunkSequences } from '../arbitrary-chunks.ts';
import { CHUNK_FIXTURES, encodeAll } from '../contract-fixtures.ts';
import { readJsonl } from '../jsonl.ts';
import { wordsOf } from './mutate-json.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);

/** The same for every seed: which of them are taken, and what is done to them, is not. */
const GENERATED = { seed: 7, numRuns: 300 };

export type Recorded = { options: Record<string, unknown>; steps: unknown[] };
export type Corpus<T> = { sequences: T[]; words: string[] };

const once = <T>(make: () => T): (() => T) => {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
};

/** The events of a source's fixtures, without what only a test knows. */
function recordedOf(source: string): Recorded[] {
  const folder = new URL(`${source}/`, FIXTURES);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.events.jsonl'))
    .sort()
    .map((file) => {
      const [first, ...rest] = readJsonl(new URL(file, folder)) as Record<string, unknown>[];
      const options = first?.options as Record<string, unknown> | undefined;
      const steps = options || first === undefined ? rest : [first, ...rest];
      return { options: options ?? {}, steps: steps.filter((step) => !step?.end) };
    });
}

function corpusOf(source: string, more: unknown[][] = []): Corpus<Recorded> {
  const sequences = [...recordedOf(source), ...more.map((steps) => ({ options: {}, steps }))];
  return { sequences, words: wordsOf(sequences.map(({ steps }) => steps)) };
}

export const harnessEvents = once(() => corpusOf('open-harness'));
export const openAIEvents = once(() => corpusOf('openai-agents'));
export const openCodeEvents = once(() => corpusOf('opencode'));
export const agentOpsEvents = once(() =>
  corpusOf('agent-ops', fc.sample(anyEvents(), GENERATED) as unknown[][]),
);

export const chunkTurns = once((): Corpus<Chunk[]> => {
  const recorded = CHUNK_FIXTURES.map(({ chunks }) => chunks);
  const generated = [5, 6, 7].flatMap((major) => fc.sample(chunkSequences(major as 7), GENERATED));
  const sequences = [...recorded, ...generated];
  return { sequences, words: wordsOf(sequences) };
});

export const contractEvents = once((): Corpus<ContractEvent[]> => {
  const meta = { requestId: 'r', runId: 't', sessionId: 's', conversationId: 'c', model: 'm' };
  const sequences = chunkTurns().sequences.map((chunks) =>
    encodeAll(chunks, encodeContract({ meta })),
  );
  return { sequences, words: wordsOf(sequences) };
});

type Said = { dir: string; msg: unknown };

/** What was said on the sockets of real session servers, in one direction. */
function saidOn(kind: 'client' | 'runner', direction: string): unknown[][] {
  const folder = new URL('agent-ops-recordings/', FIXTURES);
  return readdirSync(folder)
    .filter((file) => file.endsWith(`.${kind}.jsonl`))
    .sort()
    .map((file) =>
      (readJsonl(new URL(file, folder)) as Said[])
        .filter(({ dir }) => dir === direction)
        .map(({ msg }) => msg),
    );
}

/** What people may say to a session of ours; the recordings say only a part of it. */
const CLIENT_MESSAGES: readonly unknown[] = [
  { type: 'prompt', content: 'Hello', promptId: 'p1', turnId: 't1' },
  { type: 'prompt', content: 'And then?', promptId: 'p2' },
  {
    type: 'prompt',
    content: '',
    promptId: 'p3',
    channelType: 'web',
    channelId: 'other',
    attachments: [{ type: 'file', mime: 'text/plain', url: 'data:,x', filename: 'x.txt' }],
  },
  { type: 'withdraw', promptId: 'p2' },
  { type: 'abort', turnId: 't1' },
  { type: 'abort', promptId: 'p1' },
  { type: 'abort' },
  { type: 'answer', questionId: 'q', answer: 'Yes' },
  { type: 'answer', questionId: 'q', answer: true },
  { type: 'follow', turnId: 't1', after: 1 },
  { type: 'ping' },
];

export const clientMessages = once((): Corpus<unknown[]> => {
  const sequences = [[...CLIENT_MESSAGES], ...saidOn('client', 'client->do')];
  return { sequences, words: wordsOf(sequences) };
});

export const runnerEvents = once((): Corpus<unknown[]> => {
  const sequences = [
    ...saidOn('runner', 'runner->do'),
    ...agentOpsEvents().sequences.map(({ steps }) => steps),
  ].filter(({ length }) => length > 0);
  return { sequences, words: wordsOf(sequences) };
});

/** Some chunks of each turn at a time, with an event of the session in between. */
function inFrames<Frame>(toFrame: (chunks: Chunk[], at: number) => Frame): Frame[][] {
  return chunkTurns().sequences.map((chunks) => {
    const frames: Frame[] = [];
    for (let from = 0; from < chunks.length; from += 3) {
      frames.push(toFrame(chunks.slice(from, from + 3), from));
    }
    return frames;
  });
}

/** What runners of ours send. */
export const runnerFrames = once((): Corpus<unknown[]> => {
  const hello = { type: 'hello', turnId: null, known: ['t'], needsHistory: true };
  const event = { type: 'event', event: { type: 'git-state', branch: 'main' } };
  const sequences = inFrames<object>((chunks, at) => {
    return { type: 'chunks', turnId: 't', seq: at / 3 + 1, chunks };
  }).map((frames) => [hello, ...frames.slice(0, 2), event, ...frames.slice(2), { type: 'ping' }]);
  return { sequences, words: wordsOf(sequences) };
});

const CHANNEL = { channelType: 'web', channelId: 'default' };
const linkPrompt = (turnId: string, text: string) => ({
  type: 'prompt',
  turnId,
  messageId: `m-${turnId}`,
  channel: CHANNEL,
  text,
  attachments: [{ url: 'data:,x', mediaType: 'text/plain' }],
  body: { model: 'm' },
  after: 0,
});

/** What gateways send to a session server of ours. */
export const linkRequests = once((): Corpus<unknown[]> => {
  const by = { userId: 'ann', role: 'owner' };
  const sequences = [
    [linkPrompt('t1', 'text'), { ...linkPrompt('t1', 'text'), after: 3 }, { type: 'ping' }],
    [
      linkPrompt('t1', 'question'),
      linkPrompt('t2', 'everything'),
      { type: 'answer', turnId: 't1', questionId: 'q1', answer: 'Yes', by },
      { type: 'steer', turnId: 't1', message: { id: 'm1', text: 'More', attachments: [], by } },
      { type: 'history', id: 1, channel: CHANNEL },
      { type: 'stop', turnId: 't2' },
      { type: 'release', turnId: 't1' },
    ],
    [linkPrompt('t1', 'slow'), linkPrompt('t2', 'tool'), { type: 'stop', turnId: 't1' }],
    [{ type: 'stop', turnId: 't3' }, linkPrompt('t3', 'text'), linkPrompt('t4', 'fail')],
  ];
  return { sequences, words: wordsOf(sequences) };
});

/** What a session server of ours sends of the turn `p`. */
export const linkEvents = once((): Corpus<unknown[]> => {
  const turnId = 'p';
  const before = [
    { type: 'accepted', turnId },
    { type: 'queue', turnId, position: 1 },
    { type: 'queue', turnId, position: 0 },
  ];
  const sequences: unknown[][] = inFrames<object>((chunks, at) => {
    return { type: 'chunks', turnId, seq: at + chunks.length, chunks };
  }).map((frames) => [...before, ...frames, { type: 'stopped', turnId }, { type: 'pong' }]);
  const error = 'Too many messages are waiting already.';
  sequences.push(
    [{ type: 'refused', turnId, code: 'queue-full', error }],
    [...before, { type: 'withdrawn', turnId }],
    [...before, { type: 'gone', turnId }],
  );
  return { sequences, words: wordsOf(sequences) };
});
