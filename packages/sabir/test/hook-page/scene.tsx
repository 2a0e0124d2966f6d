/** What the page shows, as plain data that a test can send over. A server can render it too. */
import {
  Activity,
  memo,
  StrictMode,
  Suspense,
  use,
  useDeferredValue,
  useEffect,
  useLayoutEffect,
} from 'react';
import {
  type UseChatStream,
  type UseChatStreamOptions,
  useChatStream,
} from '../../src/clients/react/index.ts';
import type { UIMessage } from '../../src/core/message.ts';

export type ReaderProps = {
  name: string;
  options: UseChatStreamOptions;
  /** What its callbacks are known by. */
  label?: string;
  /** Sends this as soon as it is there. */
  says?: string;
  /** A hidden one is kept, without its effects. */
  isHidden?: boolean;
  /** Renders, and never comes to the screen. */
  isSuspended?: boolean;
  /** Shows what it has when there is time. */
  isDeferred?: boolean;
  /** How long it takes to render, beside the chat. */
  slowMs?: number;
};

export type Scene = { isStrict?: boolean; readers: ReaderProps[] };

/** What happened, for a test to look at. */
export const seen = {
  chats: {} as Record<string, UseChatStream>,
  heard: [] as string[],
  commits: {} as Record<string, number>,
  /** How often every message was rendered, by its id. */
  rows: {} as Record<string, number>,
};

const textOf = (messages: UIMessage[]): string =>
  messages
    .flatMap(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : '')))
    .join('|');

const never = new Promise<never>(() => undefined);

const Row = memo(function Row({ message }: { message: UIMessage }) {
  seen.rows[message.id] = (seen.rows[message.id] ?? 0) + 1;
  return <li data-role={message.role}>{textOf([message])}</li>;
});

/** Enough of them that React stops in between. */
function Slow({ ms }: { ms: number }) {
  const until = performance.now() + ms;
  while (performance.now() < until);
  return null;
}

function Deferred({ messages }: { messages: UIMessage[] }) {
  return <p data-deferred>{textOf(useDeferredValue(messages))}</p>;
}

function Says({ text, chat }: { text: string; chat: UseChatStream }) {
  const { sendMessage } = chat;
  useEffect(() => void sendMessage(text), [sendMessage, text]);
  return null;
}

function Reader({ name, options, label, says, isSuspended, isDeferred, slowMs = 0 }: ReaderProps) {
  const chat = useChatStream({
    ...options,
    ...(label && {
      onEvent: ({ type }) => seen.heard.push(`${label}: ${type}`),
      onFinish: ({ isError }) => seen.heard.push(`${label}: ${isError ? 'failed' : 'finished'}`),
    }),
  });
  const { messages, status, error, runStatus } = chat;
  useLayoutEffect(() => {
    seen.chats[name] = chat;
    seen.commits[name] = (seen.commits[name] ?? 0) + 1;
  });
  if (isSuspended) use(never);
  return (
    <main data-reader={name} data-status={status} data-label={label}>
      {Array.from({ length: slowMs }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <Slow key={i} ms={1} />
      ))}
      {error && <p role="alert">{error.message}</p>}
      {runStatus && <p role="status">{runStatus.message}</p>}
      <ol>
        {messages.map((message) => (
          <Row key={message.id} message={message} />
        ))}
      </ol>
      {isDeferred && <Deferred messages={messages} />}
      {says && <Says text={says} chat={chat} />}
    </main>
  );
}

export function Stage({ isStrict, readers }: Scene) {
  const all = readers.map((reader) => (
    <Suspense key={reader.name}>
      <Activity mode={reader.isHidden ? 'hidden' : 'visible'}>
        <Reader {...reader} />
      </Activity>
    </Suspense>
  ));
  return isStrict ? <StrictMode>{all}</StrictMode> : all;
}
