import { countHits, plural, type Topic } from '../script.ts';

export const sabir: Topic = {
  suggestion: {
    title: 'Connect an agent to useChat',
    message: 'How does Sabir connect an agent runtime to useChat?',
  },
  matches: (message) =>
    /\b(sabir|usechat|harness|ai sdk|adapter|this (page|demo))\b/i.test(message),
  write: () => ({
    researcher: [
      () => [
        {
          think:
            'They want to know how the pieces fit together. I should find what travels between the runtime and the hook, and then how little code it takes. Two searches, and perhaps the source of the second.',
        },
        { say: 'Let me look at both ends of the wire.' },
        { call: 'search_notes', input: { query: 'UI message chunks vocabulary pivot' } },
        { call: 'search_notes', input: { query: 'transport for useChat' } },
        { call: 'open_source', input: { id: 'transport-benchmarks' } },
      ],
      (answers) => [
        {
          think:
            'The last source does not exist. It would only have added figures; the two searches have what matters: one vocabulary in the middle, and a transport on either side of the network.',
        },
        {
          say: `I have ${plural(countHits(answers), 'note')} on this. One source could not be opened, and nothing below depends on it. The heart of it: **every runtime is translated into one vocabulary**, the chunks that \`useChat\` already reads.`,
        },
      ],
    ],
    writer: [
      () => [
        {
          say: `## From agent events to a chat

A runtime speaks in *events*: a node began, a word was written, a tool answered. A chat page wants *messages* made of parts. Sabir stands between the two and translates, one event at a time, as it happens.

### In the browser, or behind a route

\`\`\`tsx
import { useChat } from '@ai-sdk/react';
import { OpenHarnessChatTransport } from 'sabir/open-harness';

const transport = new OpenHarnessChatTransport(() => createFlow());

export function Chat() {
  const { messages, sendMessage, stop } = useChat({ transport });
  // render messages[i].parts, as with any other model
}
\`\`\`

The same flow can be served over HTTP with \`createOpenHarnessHandler\`. The page you are looking at does both: try the switch below the input.

### What becomes what

| The agent… | You see |
| --- | --- |
| starts a node | a step with its name |
| thinks | reasoning that folds away |
| calls a tool | a card with input and output |
| ends, however it ends | an outcome, never silence |

- **Nothing is buffered.** A word reaches the page in milliseconds.
- **Nothing is left open.** A tool that never answers is closed when the turn ends.
- **Nothing is vendor-shaped.** Your components know parts, not providers.`,
        },
      ],
    ],
    reviewer: [
      () => [
        {
          think:
            'Check the claims against the notes: chunks as the pivot, a transport in process, a handler behind a route, one outcome per turn. All four are covered. The code has the current hook names.',
        },
        {
          say: `**Verdict: ready to publish.**

1. The code sample uses the present \`useChat\` API.
2. Every row of the table can be checked against this very conversation.`,
        },
      ],
    ],
  }),
};
