import type { Chunk } from '../core/chunks.ts';
import { questionOf } from './question.ts';

/** What a silent turn may be waiting for. */
export type TurnProgress = {
  /** Calls that have not answered. */
  readonly tools: ReadonlySet<string>;
  /** Open questions, and when they expire; whoever has seen to one may take it out. */
  readonly questions: Map<string, number>;
  see(chunk: Chunk): void;
};

/** A question that does not say when it expires does so after `questionLimitMs`. */
export function trackProgress(questionLimitMs: number): TurnProgress {
  const tools = new Set<string>();
  const questions = new Map<string, number>();
  return {
    tools,
    questions,
    see(chunk) {
      switch (chunk.type) {
        // One that has not told its input may be at work all the same.
        case 'tool-input-start':
        case 'tool-input-available':
          tools.add(chunk.toolCallId);
          break;
        case 'tool-output-available':
          if (!chunk.preliminary) tools.delete(chunk.toolCallId);
          break;
        case 'tool-input-error':
        case 'tool-output-error':
        case 'tool-output-denied':
          tools.delete(chunk.toolCallId);
          break;
        case 'data-question':
        case 'data-client-tool': {
          const question = questionOf(chunk);
          if (!question) break;
          const { questionId, status, expiresAt } = question;
          if (status !== 'open') questions.delete(questionId);
          else if (isTime(expiresAt)) questions.set(questionId, expiresAt);
          else if (!questions.has(questionId)) {
            questions.set(questionId, Date.now() + questionLimitMs);
          }
        }
      }
    },
  };
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && !Number.isNaN(value);
}
