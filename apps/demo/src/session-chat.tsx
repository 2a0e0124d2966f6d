import { useChat } from '@ai-sdk/react';
import { useEffect, useState } from 'react';
import type { ChatMessage } from './chat-message.ts';
import { ChatView } from './chat-view.tsx';
import { DropSwitch } from './components/drop-switch.tsx';
import { WaitingList } from './components/waiting-list.tsx';
import type { Connection } from './connection.ts';
import { SESSION_INTRO } from './intros.ts';
import { toSessionNote } from './session-note.ts';
import { createSessionRequests, type SessionRequests } from './session-requests.ts';
import type { QueuedPrompt } from './session-state.ts';
import { toText, withUnsent } from './unsent-message.ts';
import { useConnection } from './use-connection.ts';
import { useServerReport } from './use-server-report.ts';
import { useSessionEvents } from './use-session-events.ts';
import { type SessionStart, useSessionHistory } from './use-session-history.ts';
import { useSessionSync } from './use-session-sync.ts';
import { useSessionTransport } from './use-session-transport.ts';

/** Renders at most once a frame, however fast the words come. */
const FRAME_MS = 16;

/** A session with an agent, on a stock `useChat`, in as many windows as there are. */
export function SessionChat({ chatId }: { chatId: string }) {
  const address = `/api/sessions/${chatId}`;
  const connection = useConnection();
  const [requests] = useState(() => createSessionRequests(address, chatId, connection));
  const session = useSessionEvents(address, connection);
  const start = useSessionHistory(chatId, requests, session.visits);
  if (start) return <OpenSession {...{ chatId, connection, requests, session, start }} />;
  return (
    <main className="grid place-items-center">
      <p className="text-sm text-ink-soft">Opening the session…</p>
    </main>
  );
}

type OpenSessionProps = {
  chatId: string;
  connection: Connection;
  requests: SessionRequests;
  session: ReturnType<typeof useSessionEvents>;
  start: SessionStart;
};

function OpenSession({ chatId, connection, requests, session, start }: OpenSessionProps) {
  const { isCut } = connection;
  const { running } = session;
  const report = useServerReport();
  /** What could not be put in the queue. */
  const [refused, setRefused] = useState<string>();
  const { transport, isUnsent, promptId: sent } = useSessionTransport(requests.api, connection);
  const chat = useChat<ChatMessage>({
    id: chatId,
    messages: start.stored.messages,
    transport,
    resume: true,
    throttle: FRAME_MS,
  });
  const { messages, status, error } = chat;
  const isIdle = status === 'ready' || status === 'error';
  const last = messages.at(-1);

  const isCatchingUp = useSessionSync({
    session,
    messages,
    setMessages: chat.setMessages,
    isIdle,
    firstVisit: start.visit,
    async history() {
      const said = await requests.history();
      return isUnsent ? withUnsent(said, last) : said;
    },
    resume: () => chat.resumeStream(),
  });
  /** The answer broke off under way: it is still being written, and goes on here in a moment. */
  const isHealing = isLost(error) && !isUnsent && (isCut || !session.isOpen || isCatchingUp);

  /** Two windows asked at the same moment, and the other was faster: ours waits, and is let go. */
  const isOvertaken =
    !isIdle && running !== undefined && session.queue.some(({ promptId }) => promptId === sent);
  const { stop: leave } = chat;
  useEffect(() => {
    if (isOvertaken) void leave();
  }, [isOvertaken, leave]);

  /** What this window watches waits only until the agent is awake, and is on the screen already. */
  const isShown = ({ promptId, content }: QueuedPrompt) =>
    !isIdle &&
    (promptId === sent || (isUnsent && last?.role === 'user' && content === toText(last)));

  const send = (text: string) => {
    setRefused(undefined);
    const isFree = isIdle && !isCatchingUp && session.queue.length === 0;
    if (isFree) void chat.sendMessage({ text });
    else requests.enqueue(text).catch(() => setRefused(text));
  };
  const retry = () => {
    const asked = messages.findLast(({ role }) => role === 'user');
    // A session only grows: to ask again is to ask once more, for all to see.
    if (!isUnsent && asked) send(toText(asked));
    else void chat.regenerate();
  };

  return (
    <ChatView
      below={(focusInput) => (
        <WaitingList
          isCutOff={isCut}
          onRetry={() => {
            if (refused !== undefined) send(refused);
            focusInput();
          }}
          onTakeBack={(promptId) => {
            session.withdraw(promptId);
            focusInput();
          }}
          queue={session.queue.filter((prompt) => !isShown(prompt))}
          refused={refused}
        />
      )}
      chat={{
        messages,
        isCatchingUp,
        isReconnecting: false,
        place: 'gateway',
        isShared: true,
        isCutOff: isCut,
        answer: requests.answer,
        send,
        retry,
        status: isHealing ? 'streaming' : status,
        error: isHealing ? undefined : error,
        // Where nobody can be told, it goes on.
        stop: () => void requests.stop().catch(() => undefined),
      }}
      chatId={chatId}
      controls={(noteId) => (
        <DropSwitch
          describedBy={noteId}
          isOn={isCut}
          onChange={(isOn) => (isOn ? connection.cut() : connection.mend())}
        />
      )}
      intro={SESSION_INTRO}
      note={<span role="status">{toSessionNote({ session, isCut, report })}</span>}
      stored={start.stored}
    />
  );
}

/** The network went away, as opposed to an agent that failed. */
function isLost(error: Error | undefined): boolean {
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message);
}
