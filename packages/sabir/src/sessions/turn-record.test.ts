import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addToRecord,
  anySessionTurn,
  type TurnStep,
  toTold,
} from '../../test/arbitrary-session-turns.ts';
import { comparable } from '../../test/comparable.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import type { MessageMetadata } from '../core/outcome.ts';
import { verifyChunks } from '../core/verify.ts';
import { toHistory } from '../sources/agent-ops/history.ts';
import { createAgentOpsTranslator, type MessagePart } from '../sources/agent-ops/index.ts';
import type { PartEvent, TurnEvent } from './protocol.ts';
import { createTurnRecord } from './turn-record.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 500);

function recordOf(steps: TurnStep[]) {
  const record = createTurnRecord();
  for (const step of steps) addToRecord(record, step);
  return record;
}

/** As the server tells it: what happens later does not change it. */
function storedMessage(steps: TurnStep[]) {
  const { parts, content } = recordOf(steps);
  const message = { id: 't', role: 'assistant', promptId: 'p', content, parts, createdAt: 1 };
  return JSON.parse(JSON.stringify(message));
}

function shown(events: object[]): unknown {
  const translator = createAgentOpsTranslator({ promptId: 'p' });
  const chunks: Chunk[] = events.flatMap((event) => translator.push(event));
  expect(verifyChunks(chunks)).toEqual([]);
  // The same part may have another id, and no renderer shows it.
  return comparable(foldChunks(chunks));
}

/** Why a turn failed is an `error` chunk for whoever watches, and in the metadata afterwards. */
function withoutReason({ metadata, ...message }: UIMessage): UIMessage {
  const { reason, ...kept } = metadata as MessageMetadata;
  const isTold = kept.outcome === 'failed' || reason === undefined;
  return { ...message, metadata: isTold ? kept : { ...kept, reason } };
}

describe('the record of a turn', () => {
  it('makes the message that its events made, in the history', () => {
    fc.assert(
      fc.property(anySessionTurn(), (steps) => {
        const live = shown(steps.map(toTold));
        const [stored] = toHistory([storedMessage(steps)], { turn: null });
        expect(comparable(withoutReason(stored as UIMessage))).toEqual(live);
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('tells who missed a part of the turn the rest of it, and nothing twice', () => {
    fc.assert(
      fc.property(anySessionTurn(), fc.nat(), fc.nat(), (steps, some, more) => {
        const told = steps.map(toTold);
        const left = some % (told.length + 1);
        const back = left + (more % (told.length - left + 1));
        const turn = { turnId: 't', promptId: 'p', seq: back };
        const init = {
          type: 'init',
          session: { messages: [storedMessage(steps.slice(0, back))] },
          data: { turn: recordOf(steps.slice(0, back)).isFinal ? null : turn },
        };
        const events = [...told.slice(0, left), init, ...told.slice(left)];
        expect(shown(events)).toEqual(shown(told));
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('is the whole turn for who sees only messages', () => {
    fc.assert(
      fc.property(anySessionTurn(), (steps) => {
        const snapshots = steps.map((_, at) => ({
          type: 'message.updated',
          data: storedMessage(steps.slice(0, at + 1)),
        }));
        expect(shown(snapshots)).toEqual(shown(steps.map(toTold)));
      }),
      { numRuns: NUM_RUNS / 4 },
    );
  });
});

const CREATE: TurnEvent = { type: 'message.create' };
const END: TurnEvent = { type: 'message.finalize', reason: 'end_turn' };
const say = (delta: string): TurnEvent => ({ type: 'message.part.text-delta', delta });
const call = (
  status: 'pending' | 'running' | 'completed' | 'error',
  more: object = {},
): TurnEvent => ({
  type: 'message.part.tool-update',
  callId: 'c',
  toolName: 'bash',
  status,
  ...more,
});
const text = (words: string): MessagePart => ({ type: 'text', text: words });
const FINISH: MessagePart = { type: 'finish', reason: 'end_turn' };
const partsOf = (...events: TurnEvent[]) => recordOf(events).parts;

describe('the parts of a stored turn', () => {
  it('are what was said, in its order', () => {
    const source: PartEvent = { type: 'message.part.source', sourceId: 's', url: 'https://x.test' };
    const chart: PartEvent = { type: 'message.part.data', name: 'chart', id: '1', data: [1] };
    const parts = partsOf(
      CREATE,
      { type: 'message.part.reasoning-delta', delta: 'Hm' },
      { type: 'message.part.reasoning-delta', delta: 'm.' },
      say('Hel'),
      say('lo'),
      chart,
      { type: 'message.part.tool-input-delta', callId: 'c', toolName: 'bash', delta: '{"a"' },
      call('running', { args: { a: 1 } }),
      call('completed', { result: 'ok' }),
      { type: 'message.part.step' },
      { type: 'message.part.step' },
      say('Hello'),
      source,
      { ...chart, data: [2] },
      { type: 'message.part.file', url: 'data:,x', mediaType: 'text/plain' },
      { type: 'usage-report', entries: [{ inputTokens: 1, model: 'm' }] },
      { type: 'usage-report', entries: [{ inputTokens: 2, cachedInputTokens: 3 }] },
      END,
    );
    expect(parts).toEqual([
      { type: 'reasoning', text: 'Hmm.' },
      text('Hello'),
      { type: 'data', name: 'chart', id: '1', data: [2] },
      {
        type: 'tool-call',
        callId: 'c',
        toolName: 'bash',
        status: 'completed',
        args: { a: 1 },
        result: 'ok',
      },
      { type: 'step' },
      text('Hello'),
      { type: 'source', sourceId: 's', url: 'https://x.test' },
      { type: 'file', url: 'data:,x', mediaType: 'text/plain' },
      { type: 'usage', usage: { inputTokens: 3, cachedInputTokens: 3 } },
      FINISH,
    ]);
  });

  it('have no event’s address in them', () => {
    const told = [CREATE, say('a'), call('completed'), END].map(toTold) as TurnEvent[];
    expect(JSON.stringify(partsOf(...told))).not.toMatch(/turnId|promptId|seq|channel/);
  });

  it('leave no call open and no question waiting when the turn is over', () => {
    const question = { type: 'question', questionId: 'q', text: 'Sure?', callId: 'c' } as const;
    const failed: TurnEvent = {
      type: 'message.finalize',
      reason: 'error',
      error: 'Gone.',
      code: 'lost',
    };
    expect(partsOf(CREATE, call('pending'), question, failed)).toEqual([
      {
        type: 'tool-call',
        callId: 'c',
        toolName: 'bash',
        status: 'error',
        args: {},
        error: 'The tool gave no result.',
      },
      { type: 'question', questionId: 'q', text: 'Sure?', callId: 'c', status: 'withdrawn' },
      { type: 'error', message: 'Gone.', code: 'lost' },
      { type: 'finish', reason: 'error' },
    ]);
  });

  it('know how a question ended', () => {
    const record = recordOf([CREATE, { type: 'question', questionId: 'q', text: 'Sure?' }]);
    record.settleQuestion('q', 'answered', true);
    record.settleQuestion('q', 'expired');
    record.settleQuestion('unknown', 'expired');
    const settled = { type: 'question', questionId: 'q', text: 'Sure?', status: 'answered' };
    expect(record.parts).toEqual([{ ...settled, answer: true }]);
  });

  it('say when a text is over though nothing stands behind it', () => {
    const parts = partsOf(
      CREATE,
      call('pending'),
      say('a'),
      call('running', { args: {} }),
      say('b'),
    );
    expect(parts.slice(1)).toEqual([{ ...text('a'), streaming: false }, text('b')]);
  });

  it('are whole when the turn is over, and nothing is added then', () => {
    const record = recordOf([say('a'), CREATE, call('completed', { result: 1 }), say('b')]);
    expect([record.isCreated, record.isFinal, record.content]).toEqual([true, false, 'ab']);
    record.push(END);
    const length = record.parts.length;
    for (const late of [say('c'), END, call('error')]) record.push(late);
    expect([record.isFinal, record.parts.length, record.content]).toEqual([true, length, 'ab']);
    expect(recordOf([]).isCreated).toBe(false);
  });

  it('hold nothing that no client would be shown', () => {
    const data = (name: string, more: object = {}) =>
      ({ type: 'message.part.data', name, data: 1, ...more }) as TurnEvent;
    const odd = [
      ...['question', 'agent-status', 'queue', 'a b', ''].map((name) => data(name)),
      data('chart', { transient: true }),
      data('chart', { id: 5 }),
      { type: 'message.part.source', sourceId: 's' },
      { type: 'message.part.file', url: 'data:,x' },
      { type: 'message.part.tool-update', callId: 'c', status: 'running', args: {} },
      { type: 'message.part.new' },
      say(''),
    ] as TurnEvent[];
    expect(partsOf(CREATE, ...odd)).toEqual([]);
  });
});
