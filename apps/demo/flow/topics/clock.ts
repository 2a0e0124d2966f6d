import type { Topic } from '../script.ts';

const WORDS = 70;

/**
 * Answers with the time at which each word was written. Compared with the moment a word shows
 * on the screen, it gives the latency of the whole way; the tests do just that.
 */
export const clock: Topic = {
  matches: (message) => /\bclock\b/i.test(message),
  write: () => ({
    researcher: [() => [{ stamp: 'thinking', words: WORDS }, { say: 'The clock was read.' }]],
    writer: [() => [{ stamp: 'text', words: WORDS }]],
    reviewer: [() => [{ say: '**Verdict: on time.**' }]],
  }),
};
