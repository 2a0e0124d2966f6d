/** The small library that the demo's search tool really searches. */
export type Note = {
  id: string;
  title: string;
  text: string;
  /** Where the note comes from; absent where the archive cannot be reached. */
  source?: string;
};

export const NOTES: readonly Note[] = [
  {
    id: 'lingua-franca',
    title: 'The Mediterranean lingua franca',
    text: 'A contact language spoken in ports around the Mediterranean from the Middle Ages to the nineteenth century. Its words were mostly Italian, with Spanish, Occitan, Portuguese, Arabic, Turkish and Greek among them.',
    source: 'Reference note, history of contact languages',
  },
  {
    id: 'sabir-name',
    title: 'The name Sabir',
    text: 'From saber, “to know”, in the Romance languages. The name caught on through sentences such as “mi no sabir”, “I do not know”. In Arabic, sabir means patient.',
    source: 'Reference note, etymology',
  },
  {
    id: 'sabir-grammar',
    title: 'The grammar of Sabir',
    text: 'One form per verb, close to the infinitive, for every person. Few endings, word order carries the meaning: a language made so that strangers could trade on the same afternoon they met.',
    source: 'Reference note, history of contact languages',
  },
  {
    id: 'moliere-1670',
    title: 'Sabir on the stage, 1670',
    text: 'Molière lets a mufti sing in Sabir in Le Bourgeois gentilhomme: “Se ti sabir, ti respondir; se non sabir, tazir, tazir.” If you know, answer; if you do not, keep silent.',
    source: 'Le Bourgeois gentilhomme, act IV',
  },
  {
    id: 'marseille-1830',
    title: 'The dictionary of Marseille, 1830',
    text: 'A small dictionary of the lingua franca, printed in Marseille for French soldiers who sailed to Algiers.',
  },
  {
    id: 'ui-message-chunks',
    title: 'UI message chunks, the pivot',
    text: 'Sabir translates the events of every agent runtime into one vocabulary: the UI message chunks of the AI SDK. A stock useChat reads them without knowing which runtime spoke.',
    source: 'Sabir, design notes',
  },
  {
    id: 'chat-transport',
    title: 'A transport for useChat',
    text: 'OpenHarnessChatTransport runs a runtime in the same process as the hook. createOpenHarnessHandler serves the same runtime behind a route, as server-sent events.',
    source: 'Sabir, design notes',
  },
  {
    id: 'turn-ends',
    title: 'How a turn ends',
    text: 'Every turn ends with exactly one outcome: finished, stopped, failed, paused or lost. A stream that simply stops is a bug, because a chat client takes it for success.',
    source: 'Sabir, design notes',
  },
  {
    id: 'sse',
    title: 'Server-sent events (SSE)',
    text: 'One long HTTP response of text frames. Passes proxies and load balancers like any request, is compressed and authenticated like one, and the browser reconnects by itself with EventSource. One direction only: server to client.',
    source: 'HTML standard, server-sent events',
  },
  {
    id: 'websocket',
    title: 'WebSockets',
    text: 'A connection of its own after an HTTP upgrade. Both directions, text and binary frames, low overhead per message. Reconnecting, authentication and backpressure are left to the application.',
    source: 'RFC 6455',
  },
  {
    id: 'token-rate',
    title: 'How fast tokens stream',
    text: 'A model writes some tens of tokens per second and a person reads three to five words per second. For streaming tokens, the choice between SSE and WebSockets is seldom about speed.',
    source: 'Reference note, streaming interfaces',
  },
  {
    id: 'tool-errors',
    title: 'Tool errors are not turn errors',
    text: 'A failed tool call is information for the agent, which may try something else. Only when the flow itself fails does a person need to see an error, in words, with a way to try again.',
    source: 'Sabir, design notes',
  },
];
