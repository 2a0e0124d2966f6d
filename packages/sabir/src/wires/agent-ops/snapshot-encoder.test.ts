import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { comparable } from '../../../test/comparable.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createAgentOpsTranslator } from '../../sources/agent-ops/translate.ts';
import { createV2Encoder } from './encode.ts';
import type { AnswerMessage, V2Event } from './events.ts';
import { createSnapshotEncoder, type SnapshotEncoderOptions } from './snapshot-encoder.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 500);
const CHANNEL = { channelType: 'web', channelId: 'default' };
const OF_TURN = { turnId: 'm', promptId: 'p', channel: CHANNEL };
const OPTIONS: SnapshotEncoderOptions = { ...OF_TURN, createdAt: 1 };

type Frame = { type: string; data: AnswerMessage; content?: string };

function encodeAll(chunks: Chunk[]): V2Event[] {
  const encoder = createV2Encoder(OF_TURN);
  return chunks.flatMap((chunk) => encoder.push(chunk));
}

function framesOf(chunks: Chunk[], options: Partial<SnapshotEncoderOptions> = {}): Frame[] {
  const encoder = createSnapshotEncoder({ ...OPTIONS, ...options });
  const frames = encodeAll(chunks).map((event) => encoder.push(event));
  return frames.flatMap((frame) => (frame === undefined ? [] : [JSON.parse(frame)]));
}

/** What a client makes of the events. */
function shown(events: object[]): unknown {
  const translator = createAgentOpsTranslator({ turnId: OPTIONS.turnId });
  const chunks = events.flatMap((event) => translator.push(JSON.parse(JSON.stringify(event))));
  expect(verifyChunks(chunks)).toEqual([]);
  return comparable(foldChunks(chunks));
}

const numbered = (events: V2Event[]) => events.map((event, at) => ({ ...event, seq: at + 1 }));

function messageAfter(events: V2Event[]): AnswerMessage {
  const encoder = createSnapshotEncoder(OPTIONS);
  for (const event of events) encoder.push(event);
  return encoder.message;
}

describe('the message of a turn that runs', () => {
  it('gives a client that connects in mid-turn all that it missed, and no word twice', () => {
    fc.assert(
      fc.property(chunkSequences(7, 'whole'), fc.nat(), fc.nat(), (chunks, some, more) => {
        const events = encodeAll(chunks);
        const left = some % (events.length + 1);
        const back = left + (more % (events.length - left + 1));
        const message = messageAfter(events.slice(0, back));
        const isOver = message.parts.some(({ type }) => type === 'finish');
        const init = {
          type: 'init',
          session: { messages: back > 0 ? [message] : [] },
          data: { turn: isOver ? null : { turnId: 'm', promptId: 'p', seq: back } },
        };
        const all = numbered(events);
        expect(shown([...all.slice(0, left), init, ...all.slice(left)])).toEqual(shown(all));
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('is the whole turn for a client that reads only messages', () => {
    fc.assert(
      fc.property(chunkSequences(7, 'whole'), (chunks) => {
        const events = encodeAll(chunks);
        const encoder = createSnapshotEncoder(OPTIONS);
        const snapshots = events.map((event) => {
          encoder.push(event);
          return JSON.parse(JSON.stringify({ type: 'message.updated', data: encoder.message }));
        });
        expect(shown(snapshots)).toEqual(shown(events));
      }),
      { numRuns: NUM_RUNS / 5 },
    );
  });

  it('says where and when the turn is and what it answers', () => {
    expect(messageAfter(encodeAll([{ type: 'start' }]))).toEqual({
      id: 'm',
      role: 'assistant',
      content: '',
      parts: [],
      createdAt: 1,
      ...CHANNEL,
      promptId: 'p',
    });
  });
});

const text: Chunk[] = [
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'Hel' },
  { type: 'text-delta', id: '1', delta: 'lo' },
];
const bash = { toolCallId: 'c', toolName: 'bash' };
const tool: Chunk[] = [
  { type: 'tool-input-start', ...bash },
  { type: 'tool-input-available', ...bash, input: { a: 1 } },
  { type: 'tool-output-available', toolCallId: 'c', output: 1 },
];
const START: Chunk[] = [{ type: 'start', messageId: 'm' }, { type: 'start-step' }];
const failure: Chunk[] = [
  { type: 'message-metadata', messageMetadata: { outcome: 'failed', code: 'x' } },
  { type: 'error', errorText: 'It broke.' },
];

describe('a client of the old dialect', () => {
  it('gets the empty message, text as it comes, and the whole message when a tool changes and at the end', () => {
    const frames = framesOf([...START, ...text, ...tool, { type: 'finish' }]);
    const chunk = { type: 'chunk', messageId: 'm', promptId: 'p', ...CHANNEL };
    expect(frames.slice(0, 3)).toMatchObject([
      { type: 'message', data: { id: 'm', content: '', parts: [], promptId: 'p' } },
      { ...chunk, content: 'Hel' },
      { ...chunk, content: 'lo' },
    ]);
    const snapshots = frames.slice(3);
    expect(snapshots.map(({ type }) => type)).toEqual(Array(4).fill('message.updated'));
    const words = { type: 'text', text: 'Hello' };
    const call = { type: 'tool-call', callId: 'c', toolName: 'bash' };
    const over = { ...call, status: 'completed', args: { a: 1 }, result: 1 };
    expect(snapshots.map(({ data }) => data.parts)).toEqual([
      [words, { ...call, status: 'pending' }],
      [words, { ...call, status: 'running', args: { a: 1 } }],
      [words, over],
      [words, over, { type: 'finish', reason: 'end_turn' }],
    ]);
    expect(snapshots.at(-1)?.data.content).toBe('Hello');
  });

  it('gets the text and the code of an error in the last message', () => {
    expect(framesOf([...START, ...failure]).at(-1)?.data.parts).toEqual([
      { type: 'error', message: 'It broke.', code: 'x' },
      { type: 'finish', reason: 'error' },
    ]);
  });

  it('that is not there costs no frame, and the message is kept', () => {
    const encoder = createSnapshotEncoder({ ...OPTIONS, isWanted: () => false });
    const frames = encodeAll([...START, ...text, ...tool]).map((event) => encoder.push(event));
    expect(new Set(frames)).toEqual(new Set([undefined]));
    expect(encoder.flush()).toBeUndefined();
    expect(encoder.message.content).toBe('Hello');
  });
});

/** A turn of one long text and many calls: its snapshots are much longer than its events. */
function longTurn(textLength: number, calls: number): V2Event[] {
  const delta = 'x'.repeat(textLength);
  const chunks: Chunk[] = [...START, ...text, { type: 'text-delta', id: '1', delta }];
  for (let at = 0; at < calls; at++) {
    chunks.push({
      type: 'tool-input-available',
      toolCallId: `c${at}`,
      toolName: 'bash',
      input: {},
    });
  }
  return encodeAll(chunks);
}

describe('the snapshots of a long turn', () => {
  it('are left out when a megabyte of them waits, and the next flush brings what was left out', () => {
    const encoder = createSnapshotEncoder(OPTIONS);
    const events = longTurn(300_000, 10);
    const frames = events.map((event) => encoder.push(event));
    const sent = frames.filter((frame) => frame?.includes('message.updated'));
    // Each has the text twice: as content, and as a part.
    expect(sent).toHaveLength(2);
    const missed = JSON.parse(encoder.flush() ?? '{}') as Frame;
    expect(missed.data.parts).toHaveLength(11);
    expect(encoder.flush()).toBeUndefined();
  });

  it('come to a bounded multiple of the turn, and the end is always sent', () => {
    const encoder = createSnapshotEncoder(OPTIONS);
    let snapshots = 0;
    let bytes = 0;
    for (const event of longTurn(200_000, 2_000)) {
      bytes += JSON.stringify(event).length;
      const frame = encoder.push(event);
      if (frame?.includes('message.updated')) snapshots += frame.length;
      const missed = encoder.flush();
      snapshots += missed?.length ?? 0;
    }
    expect(snapshots).toBeGreaterThan(4_000_000);
    expect(snapshots).toBeLessThan(5_000_000 + 64 * bytes);
    const [end] = encodeAll([{ type: 'finish' }]).filter(({ type }) => type === 'message.finalize');
    const last = JSON.parse(encoder.push(end as V2Event) ?? '{}') as Frame;
    expect(last.data.parts.at(-1)).toEqual({ type: 'finish', reason: 'end_turn' });
  });
});
