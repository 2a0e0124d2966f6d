import { countHits, plural, type Topic } from '../script.ts';

export const wires: Topic = {
  suggestion: {
    title: 'SSE or WebSockets?',
    message: 'Compare SSE and WebSockets for streaming tokens',
  },
  matches: (message) => /\b(sse|websockets?|streaming|tokens?|wires?)\b/i.test(message),
  write: () => ({
    researcher: [
      () => [
        {
          think:
            'A comparison needs both sides and a measure. The measure here is a person who reads: tokens come far slower than either wire can carry.',
        },
        { say: 'I will read up on both, and on how fast tokens really come.' },
        { call: 'search_notes', input: { query: 'SSE server-sent events' } },
        { call: 'search_notes', input: { query: 'WebSockets streaming tokens speed' } },
        { call: 'open_source', input: { id: 'proxy-survey' } },
      ],
      (answers) => [
        {
          think:
            'There is no survey of proxies in the library. I can still say what an HTTP response is to a proxy, without numbers.',
        },
        {
          say: `${capital(plural(countHits(answers), 'note'))} will do; a survey I hoped for is not in the library. The short of it: **speed does not decide this, direction does.**`,
        },
      ],
    ],
    writer: [
      () => [
        {
          say: `## Two wires for one stream of words

A model writes some tens of tokens a second. Both wires carry thousands. So choose by what *else* has to travel.

| | SSE | WebSocket |
| --- | --- | --- |
| Direction | server → client | both |
| Looks to proxies like | any HTTP response | an upgrade |
| Reconnects | by itself | you write it |
| Authentication | headers, cookies | once, at the start |

### Choose SSE when

- one request leads to one streamed answer, as in most chats;
- you want to read the traffic with \`curl\`:

\`\`\`sh
curl -N localhost:3000/api/flow \\
  -H 'content-type: application/json' \\
  -d '{"id":"c1","messages":[{"id":"m1","role":"user",
       "parts":[{"type":"text","text":"Hello"}]}]}'
\`\`\`

### Choose WebSockets when

- the client keeps talking while the answer streams: voice, cursors, collaborative editing;
- frames are binary.

And keep the choice out of your components. If the page only knows *messages*, the wire can change later without anybody noticing.`,
        },
      ],
    ],
    reviewer: [
      () => [
        {
          think:
            'Is the table fair? EventSource reconnects by itself; a fetch-based reader does not, which is worth a remark. The curl line matches the route of this demo.',
        },
        {
          say: `**Verdict: accurate, with one remark.**

1. “Reconnects by itself” is true of \`EventSource\`. A reader built on \`fetch\` has to do it too.
2. The \`curl\` command works against this demo as it stands.`,
        },
      ],
    ],
  }),
};

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
