import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { carriedByV2 } from '../../../test/carried-by-v2.ts';
import { comparable } from '../../../test/comparable.ts';
import { CHUNK_FIXTURES } from '../../../test/contract-fixtures.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { UIMessage } from '../../core/message.ts';
import type { MessagePart } from '../../sources/agent-ops/events.ts';
import { toHistory } from '../../sources/agent-ops/history.ts';
import { toSessionMessage, toUserSessionMessage } from './snapshot.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 500);
const INFO = { promptId: 'p', createdAt: 1, isOver: true };

/** The fold of a turn, with the text of its error where a session keeps it. */
function storedOf(chunks: Chunk[]): UIMessage {
  const message = foldChunks(chunks);
  const failure = chunks.find((chunk) => chunk.type === 'error');
  if (!failure) return message;
  const metadata = { outcome: 'failed', ...(message.metadata as object) };
  return { ...message, metadata: { ...metadata, reason: failure.errorText } };
}

function readBack(chunks: Chunk[]): unknown {
  const message = toSessionMessage(storedOf(chunks), INFO);
  const [read] = toHistory([JSON.parse(JSON.stringify(message))], { turn: null });
  return comparable(read);
}

describe('a stored answer', () => {
  it.each(CHUNK_FIXTURES)('is read back as it was: $name', ({ chunks }) => {
    expect(readBack(chunks)).toEqual(carriedByV2(chunks, 'message'));
  });

  it.each([5, 6, 7] as const)('is read back as it was, whatever is in it: AI SDK %i', (major) => {
    fc.assert(
      fc.property(chunkSequences(major, 'whole'), (chunks) => {
        expect(readBack(chunks)).toEqual(carriedByV2(chunks, 'message'));
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('says where and when it was given, what it answers, and all of its text', () => {
    const channel = { channelType: 'web', channelId: 'default' };
    const message: UIMessage = {
      id: 't',
      role: 'assistant',
      parts: [
        { type: 'text', text: 'a' },
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'b' },
      ],
    };
    const { parts: _, ...rest } = toSessionMessage(message, { ...INFO, channel });
    expect(rest).toEqual({
      id: 't',
      role: 'assistant',
      content: 'ab',
      createdAt: 1,
      ...channel,
      promptId: 'p',
    });
    const unlinked = toSessionMessage(message, { createdAt: 1, isOver: true });
    expect(Object.keys(unlinked)).toEqual(['id', 'role', 'content', 'parts', 'createdAt']);
  });
});

const START: Chunk[] = [{ type: 'start', messageId: 't' }, { type: 'start-step' }];
const FINISH: MessagePart = { type: 'finish', reason: 'end_turn' };

function partsOf(isOver: boolean, ...chunks: Chunk[]): MessagePart[] {
  const message = foldChunks([...START, ...chunks]);
  return toSessionMessage(message, { createdAt: 1, isOver }).parts;
}

const text = (id: string, delta: string): Chunk[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
];
const bash = { toolCallId: 'c', toolName: 'bash' };
const named: Chunk = { type: 'tool-input-start', ...bash };
const called: Chunk = { type: 'tool-input-available', ...bash, input: { a: 1 } };
const call = { type: 'tool-call', callId: 'c', toolName: 'bash' };
const question = (status: string, more: object = {}): Chunk => ({
  type: 'data-question',
  id: 'q',
  data: { questionId: 'q', text: 'Sure?', toolCallId: 'c', status, ...more },
});

describe('the parts of an answer', () => {
  it('are its parts in their order, then usage and end', () => {
    expect(
      partsOf(
        true,
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'Hmm.' },
        { type: 'reasoning-end', id: 'r' },
        ...text('1', 'Hello'),
        { type: 'data-chart', id: '1', data: [2] },
        called,
        { type: 'tool-output-available', toolCallId: 'c', output: 'ok' },
        { type: 'finish-step' },
        { type: 'start-step' },
        { type: 'finish-step' },
        { type: 'start-step' },
        ...text('2', 'Hello'),
        { type: 'source-url', sourceId: 's', url: 'https://x.test' },
        { type: 'file', url: 'data:,x', mediaType: 'text/plain' },
        { type: 'finish', messageMetadata: { outcome: 'finished', usage: { inputTokens: 3 } } },
      ),
    ).toEqual([
      { type: 'reasoning', text: 'Hmm.' },
      { type: 'text', text: 'Hello' },
      { type: 'data', name: 'chart', id: '1', data: [2] },
      { ...call, status: 'completed', args: { a: 1 }, result: 'ok' },
      { type: 'step' },
      { type: 'text', text: 'Hello' },
      { type: 'source', sourceId: 's', url: 'https://x.test' },
      { type: 'file', url: 'data:,x', mediaType: 'text/plain' },
      { type: 'usage', usage: { inputTokens: 3 } },
      FINISH,
    ]);
  });

  it('leave no call open and no question waiting when the turn is over', () => {
    const message = foldChunks([...START, named, question('open')]);
    const metadata = { outcome: 'failed', code: 'lost', reason: 'Gone.' };
    const { parts } = toSessionMessage({ ...message, metadata }, INFO);
    expect(parts).toEqual([
      { ...call, status: 'error', args: {}, error: 'The tool gave no result.' },
      { type: 'question', questionId: 'q', text: 'Sure?', callId: 'c', status: 'withdrawn' },
      { type: 'error', message: 'Gone.', code: 'lost' },
      { type: 'finish', reason: 'error' },
    ]);
  });

  it('say how far each call is while the turn runs', () => {
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 1 } as const;
    const approval: Chunk = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
    const delta: Chunk = { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"a":' };
    const running = { ...call, status: 'running', args: { a: 1 } };
    expect(partsOf(false, named, delta)).toEqual([{ ...call, status: 'pending' }]);
    expect(partsOf(false, called)).toEqual([running]);
    expect(partsOf(false, called, approval)).toEqual([running]);
    expect(partsOf(false, called, { ...output, preliminary: true })).toEqual([running]);
    expect(partsOf(false, called, output)).toEqual([
      { ...running, status: 'completed', result: 1 },
    ]);
  });

  it('say why a call failed or was denied', () => {
    const errorText = 'No.';
    const failed: Chunk = { type: 'tool-output-error', toolCallId: 'c', errorText };
    const denied: Chunk = { type: 'tool-output-denied', toolCallId: 'c' };
    const asked: Chunk = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
    const refused: Chunk = {
      type: 'tool-approval-response',
      approvalId: 'a',
      approved: false,
      reason: 'Later.',
    };
    const error = (...chunks: Chunk[]) => partsOf(false, called, ...chunks)[0];
    expect(error(failed)).toMatchObject({ status: 'error', error: 'No.' });
    expect(error(denied)).toMatchObject({ status: 'error', error: 'It was not approved.' });
    expect(error(asked, refused, denied)).toMatchObject({ status: 'error', error: 'Later.' });
  });

  it('name the tool of a dynamic call', () => {
    expect(partsOf(false, { ...called, dynamic: true } as Chunk)).toMatchObject([call]);
  });

  it('know how a question ended', () => {
    const expiresAt = 1_794_769_643_999;
    const status = 'answered';
    expect(partsOf(true, question(status, { answer: 'Yes', expiresAt, options: ['Yes'] }))).toEqual(
      [
        {
          type: 'question',
          questionId: 'q',
          text: 'Sure?',
          options: ['Yes'],
          expiresAt: 1_794_769_643,
          callId: 'c',
          status,
          answer: 'Yes',
        },
        FINISH,
      ],
    );
    expect(partsOf(false, question('open'))).toMatchObject([{ status: 'open' }]);
  });

  it('say that a text is over where no part behind it shows it', () => {
    const over = { streaming: false };
    const source: Chunk = { type: 'source-url', sourceId: 's', url: 'https://x.test' };
    expect(partsOf(false, ...text('1', 'a'), source)).toMatchObject([over, {}]);
    expect(partsOf(false, ...text('1', 'a'), ...text('2', 'b'))).toMatchObject([over, over]);
    expect(partsOf(false, ...text('1', 'a'), named)[0]).toEqual({ type: 'text', text: 'a' });
    expect(partsOf(false, ...text('1', 'a').slice(0, 2))).toEqual([{ type: 'text', text: 'a' }]);
    expect(partsOf(false, ...text('1', 'a'), question('open'))[0]).not.toMatchObject(over);
    expect(partsOf(true, ...text('1', 'a'))[0]).toEqual({ type: 'text', text: 'a' });
  });

  it('hold nothing that readers of V2 refuse, and no text without words', () => {
    const odd: Chunk[] = [
      { type: 'data-queue', id: 'queue', data: { position: 1 } },
      { type: 'data-a b', data: 1 },
      { type: 'data-question', data: { text: 'Sure?' } },
      { type: 'data-question', id: 'q', data: 'Sure?' },
      { type: 'source-url', sourceId: '', url: 'https://x.test' },
      { type: 'text-start', id: '1' },
    ];
    expect(partsOf(false, ...odd)).toEqual([]);
  });

  it.each([
    ['finished', 'end_turn'],
    ['paused', 'end_turn'],
    ['stopped', 'canceled'],
    ['failed', 'error'],
    ['lost', 'error'],
  ])('end a turn that is %s with %s', (outcome, reason) => {
    const parts = partsOf(true, { type: 'finish', messageMetadata: { outcome } });
    expect(parts.at(-1)).toEqual({ type: 'finish', reason });
    expect(parts.some(({ type }) => type === 'error')).toBe(reason === 'error');
  });
});

describe('a prompt', () => {
  it('has its text, its files as parts, its author and its channel', () => {
    const message: UIMessage = {
      id: 'p',
      role: 'user',
      parts: [
        { type: 'text', text: 'Look ' },
        { type: 'file', url: 'data:,x', mediaType: 'text/plain', filename: 'x.txt' },
        { type: 'text', text: 'here' },
        { type: 'file', url: 'data:,y', mediaType: 'text/plain' },
      ],
    };
    const channel = { channelType: 'web', channelId: 'default' };
    const author = { id: 'ann', name: 'Ann' };
    const prompt = toUserSessionMessage(message, { createdAt: 1, channel, author });
    expect(prompt).toEqual({
      id: 'p',
      role: 'user',
      content: 'Look here',
      createdAt: 1,
      parts: [
        { type: 'file', mime: 'text/plain', url: 'data:,x', filename: 'x.txt' },
        { type: 'file', mime: 'text/plain', url: 'data:,y' },
      ],
      authorId: 'ann',
      authorName: 'Ann',
      ...channel,
    });
    const [read] = toHistory([prompt], {});
    expect(read?.parts).toEqual([
      { type: 'text', text: 'Look here' },
      { type: 'file', url: 'data:,x', mediaType: 'text/plain', filename: 'x.txt' },
      { type: 'file', url: 'data:,y', mediaType: 'text/plain' },
    ]);
  });

  it('without files has no parts, and without an author none', () => {
    const message: UIMessage = { id: 'p', role: 'user', parts: [{ type: 'text', text: 'Hi' }] };
    expect(toUserSessionMessage(message, { createdAt: 1 })).toEqual({
      id: 'p',
      role: 'user',
      content: 'Hi',
      createdAt: 1,
    });
  });
});
