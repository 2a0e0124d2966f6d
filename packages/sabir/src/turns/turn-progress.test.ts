import { expect, it } from 'vitest';
import type { Chunk } from '../core/chunks.ts';
import type { TurnInfo } from './log.ts';
import { createTurnProgress, toldBy, waitsFor } from './turn-progress.ts';

const QUESTION: Chunk = {
  type: 'data-question',
  id: 'a',
  data: { questionId: 'a', status: 'open' },
};

function waitsAfter(...chunks: Chunk[]): ReturnType<typeof waitsFor> {
  const progress = createTurnProgress();
  for (const [at, chunk] of chunks.entries()) progress.see(at + 1, chunk);
  const turn = { lastSeq: chunks.length, isEnded: false, isAnswered: () => false };
  return waitsFor(toldBy(progress, turn) as TurnInfo);
}

it('a turn waits for an answer until its question or its tool call is settled', () => {
  const request: Chunk = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
  const response: Chunk = { type: 'tool-approval-response', approvalId: 'a', approved: true };
  const output: Chunk = { type: 'tool-output-available', toolCallId: 'c', output: 1 };
  const answered: Chunk = { ...QUESTION, data: { questionId: 'a', status: 'answered' } } as Chunk;
  expect(waitsAfter(QUESTION)).toBe('answer');
  expect(waitsAfter(request, QUESTION)).toBe('answer');
  for (const end of [response, output, answered]) {
    expect(waitsAfter(request, QUESTION, end)).toBeUndefined();
  }
});

it('a question whose time is over is not waited for', () => {
  const expired = { questionId: 'a', status: 'open', expiresAt: Date.now() - 1 };
  expect(waitsAfter({ ...QUESTION, data: expired } as Chunk)).toBeUndefined();
});

it('progress comes back from its stored form as it was', () => {
  const progress = createTurnProgress();
  progress.see(1, { type: 'start', messageId: 'm' });
  progress.see(2, QUESTION);
  progress.see(3, { type: 'data-queue', id: 'q', data: { status: 'waiting' } });
  const again = createTurnProgress(progress.encode());
  expect(again.encode()).toBe(progress.encode());
  expect([again.messageId, again.isQueued]).toEqual(['m', true]);
});
