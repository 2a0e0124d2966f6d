import { countHits, plural, type Topic } from '../script.ts';

export const failure: Topic = {
  suggestion: {
    title: 'Show me a failure',
    message: 'Show me a failure',
  },
  matches: (message) => /fail/i.test(message),
  write: (_person, attempt) => ({
    researcher: [
      () => [
        {
          think: 'They want to see something go wrong. First I do my own part properly.',
        },
        { say: 'Looking up what the notes say about errors.' },
        { call: 'search_notes', input: { query: 'tool errors turn outcome failed' } },
        { call: 'open_source', input: { id: 'incident-reports' } },
      ],
      (answers) => [
        {
          say: `I have ${plural(countHits(answers), 'note')}, and already a small failure of my own: one source could not be opened. That is **not** the end of the turn. The writer can go on.`,
        },
      ],
    ],
    writer: [
      () =>
        attempt === 1
          ? [
              {
                say: '## When things go wrong\n\nThere are two kinds of failure, and a chat should',
              },
              {
                fail: 'The writer lost its connection to the model. Your message is safe: try again.',
              },
            ]
          : [
              {
                say: `## When things go wrong

There are two kinds of failure, and a chat should treat them differently.

| What failed | What you saw | What you could do |
| --- | --- | --- |
| a tool | a card marked *failed* | nothing, the agent went on |
| the flow | a banner, in plain words | try again |

- The first attempt **kept its partial answer** on the page until you asked for another.
- The retry sent the *same* message, so nothing had to be typed twice.
- No stack trace and no status code reached you.

This is attempt number ${attempt}, and it worked.`,
              },
            ],
    ],
    reviewer: [
      () => [
        { think: 'It failed once, it was retried, it is here. That is the whole test.' },
        {
          say: `**Verdict: recovered.**

1. Both kinds of failure were shown, and told apart.`,
        },
      ],
    ],
  }),
};
