import { useChat } from '@ai-sdk/react';
import type { FileUIPart } from 'ai';
import { type ReactNode, useEffect, useEffectEvent, useState } from 'react';
import { type ChatRequestError, SabirChatTransport, type SessionState } from 'sabir/client';
import { type UseSession, useFollow, useSession } from 'sabir/react';
import { type ChatMessage, toText } from './chat-message.ts';
import type { StoredChat } from './chat-storage.ts';
import { ChatView } from './chat-view.tsx';
import { WaitingList } from './components/waiting-list.tsx';
import type { Intro } from './intros.ts';

/** Renders at most once a frame, however fast the words come. */
const FRAME_MS = 16;

type SessionChatProps = {
  chatId: string;
  /** With every request; a token is one of them. */
  headers: Record<string, string>;
  /** Names the person, whose windows share one connection. */
  shareAs?: string;
  /** In place of the browser's own. */
  fetch?: typeof fetch;
  /** This window has been cut off on purpose. */
  isCut?: boolean;
  intro: Intro;
  /** How this window is connected, in one line. */
  note(session: SessionState<ChatMessage>): string;
  /** What there is to set beside the input; the note has this id. */
  controls?(noteId: string): ReactNode;
  /** The copy of the conversation in this browser, where one is kept. */
  stored?: StoredChat;
  /** Runs when the first message of the chat is known. */
  onTitle?(title: string): void;
  /** The server does not let this person in. */
  onRefused?(error: ChatRequestError): void;
};

const NOTHING_STORED: StoredChat = { messages: [], thoughts: {} };

/** A session with an agent, on a stock `useChat`, in as many windows as there are. */
export function SessionChat(props: SessionChatProps) {
  const { chatId, headers, fetch, isCut = false, stored = NOTHING_STORED } = props;
  const api = `/api/sessions/${encodeURIComponent(chatId)}/chat`;
  const session = useSession<ChatMessage>({
    api,
    id: chatId,
    headers,
    ...(props.shareAs !== undefined && { shareAs: props.shareAs }),
    maxWaitMs: 5_000,
    ...(fetch && { fetch }),
  });
  const [transport] = useState(
    () => new SabirChatTransport<ChatMessage>({ api, fetch: session.fetch }),
  );
  const chat = useChat<ChatMessage>({
    id: chatId,
    messages: stored.messages,
    transport,
    throttle: FRAME_MS,
  });
  const { messages, status, error } = chat;
  const isLoaded = useFollow(chat, session.session);
  /** What could not be put in the queue. */
  const [refused, setRefused] = useState<{ text: string; files: FileUIPart[] }>();

  const isIdle = status === 'ready' || status === 'error';
  const isReadOnly = session.me?.role === 'viewer';
  const isAway = session.connection !== 'open';
  useEvents(props, { session, title: toTitle(messages) });

  /** The answer broke off under way: it is still being written, and goes on here in a moment. */
  const isHealing = isLost(error) && isAway && messages.at(-1)?.role === 'assistant';

  const send = (text: string, files: FileUIPart[]) => {
    setRefused(undefined);
    const isFree = isIdle && !session.running && session.queue.length === 0;
    if (isFree) void chat.sendMessage({ text, files });
    else session.enqueue({ text, files }).catch(() => setRefused({ text, files }));
  };

  if (!isLoaded && messages.length === 0) {
    return (
      <main className="grid place-items-center px-4 text-center text-sm text-ink-soft">
        <p role="status">{isCut || !isAway ? 'Opening the chat…' : props.note(session)}</p>
      </main>
    );
  }
  return (
    <ChatView
      below={(focusInput) => (
        <WaitingList
          isCutOff={isCut}
          me={session.me?.id}
          onRetry={() => {
            if (refused !== undefined) send(refused.text, refused.files);
            focusInput();
          }}
          onTakeBack={
            isReadOnly
              ? undefined
              : (turnId) => {
                  session.withdraw(turnId).catch(() => undefined);
                  focusInput();
                }
          }
          queue={session.queue.filter(
            ({ message }) => !messages.some(({ id }) => id === message.id),
          )}
          refused={refused?.text}
        />
      )}
      chat={{
        messages,
        isCatchingUp: session.running !== undefined,
        // The note says it.
        isReconnecting: false,
        place: 'gateway',
        isShared: true,
        isReadOnly,
        canAttach: true,
        isCutOff: isCut,
        answer: isReadOnly ? undefined : session.answer,
        send,
        edit: (messageId, text) => void chat.sendMessage({ text, messageId }),
        retry: () => void chat.regenerate(),
        status: isHealing ? 'streaming' : status,
        error: isHealing ? undefined : error,
        // Where the server cannot be told, the answer goes on.
        stop: () => void session.stop().catch(() => undefined),
      }}
      chatId={chatId}
      controls={props.controls}
      intro={props.intro}
      isCopied={props.stored !== undefined}
      note={<span role="status">{props.note(session)}</span>}
      stored={stored}
    />
  );
}

/** Tells the page around the chat what it learns here. */
function useEvents(
  props: SessionChatProps,
  { session, title }: { session: UseSession<ChatMessage>; title: string },
): void {
  const onTitle = useEffectEvent(() => props.onTitle?.(title));
  useEffect(() => {
    if (title) onTitle();
  }, [title]);
  const { connection, error } = session;
  const onRefused = useEffectEvent(() => props.onRefused?.(error as ChatRequestError));
  useEffect(() => {
    if (connection === 'refused') onRefused();
  }, [connection]);
}

function toTitle(messages: ChatMessage[]): string {
  const first = messages.find(({ role }) => role === 'user');
  if (!first) return '';
  return (
    toText(first) ||
    first.parts.flatMap((part) => (part.type === 'file' ? part.filename : []))[0] ||
    'Files'
  );
}

/** The network went away, as opposed to an agent that failed. */
function isLost(error: Error | undefined): boolean {
  return error instanceof TypeError && /fetch|network|load failed/i.test(error.message);
}
