import { countHits, plural, type Topic } from '../script.ts';

/** For every other message: honest that the model is scripted, and still about what was asked. */
export const anything: Topic = {
  matches: () => true,
  write: ({ message, history }) => {
    const question = quote(message);
    const words = message.match(/[\p{L}\d]+/gu) ?? [];
    const earlier = history.filter(({ role }) => role === 'user').length;
    return {
      researcher: [
        () => [
          {
            think: `The message is ${question}. I have only a small library here. I search it for the person's own words and see what comes.`,
          },
          { say: `Searching the library for ${question}.` },
          { call: 'search_notes', input: { query: words.join(' ') || message } },
          { call: 'open_source', input: { id: 'the-wider-world' } },
        ],
        (answers) => [
          {
            say:
              countHits(answers) > 0
                ? `The library has ${plural(countHits(answers), 'note')} that touch on this. The wider world was out of reach.`
                : 'The library has nothing on this, and the wider world was out of reach. The writer will have to say so.',
          },
        ],
      ],
      writer: [
        () => [
          {
            say: `## On ${question}

This demo runs on a **scripted model**, so that it works without a key. It cannot know everything, but it did read your message:

| Your message | |
| --- | --- |
| Words | ${words.length} |
| Longest word | ${longest(words)} |
| Messages before it | ${earlier} |

With a provider's key in the environment of the server, the same three agents answer with a real model.

\`\`\`sh
npm start -w demo   # finds the key, says which model it uses
\`\`\`

- Nothing in the page changes.
- The key stays on the server.`,
          },
        ],
      ],
      reviewer: [
        () => [
          { think: 'The draft does not pretend to know what it does not know. Good.' },
          {
            say: `**Verdict: honest.**\n\n1. It answers ${question} with what it has, and says so.`,
          },
        ],
      ],
    };
  },
};

function quote(message: string): string {
  const line = message.replace(/[\s`*_#|<>[\]]+/g, ' ').trim();
  return `“${line.length > 80 ? `${line.slice(0, 79)}…` : line}”`;
}

function longest(words: readonly string[]): string {
  return words.reduce((best, word) => (word.length > best.length ? word : best), '') || 'none';
}
