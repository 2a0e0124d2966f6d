import { useChat } from '@ai-sdk/react';
import { useCallback, useEffect, useRef, useState } from 'react';
import { type ChatMessage, settleLast } from './chat-message.ts';
import { loadChat } from './chat-storage.ts';
import { Composer } from './components/composer.tsx';
import { Conversation } from './components/conversation.tsx';
import { EmptyState } from './components/empty-state.tsx';
import { AssistantMessage, UserMessage } from './components/message.tsx';
import { TurnNoticeBanner } from './components/turn-notice-banner.tsx';
import { toAnnouncement } from './to-announcement.ts';
import { TRANSPORTS } from './transports.ts';
import { toTurnNotice } from './turn-notice.ts';
import { usePlace } from './use-place.ts';
import { useSavedChat } from './use-saved-chat.ts';
import { useServerModel } from './use-server-model.ts';
import { useThoughts } from './use-thoughts.ts';

/** Renders at most once a frame, however fast the words come. */
const FRAME_MS = 16;

/** One conversation, from its stored beginning to whatever is being written right now. */
export function Chat({ chatId }: { chatId: string }) {
  const [stored] = useState(() => loadChat(chatId));
  const [place, setPlace] = usePlace();
  const serverModel = useServerModel();
  const [turn, setTurn] = useState(0);
  const inputRef = useRef<HTMLTextAreaElement>(null);

  const { messages, setMessages, sendMessage, regenerate, stop, status, error } =
    useChat<ChatMessage>({
      id: chatId,
      messages: stored.messages,
      transport: TRANSPORTS[place],
      throttle: FRAME_MS,
      // A stream that was cut off carries no outcome, and a client takes silence for success.
      onFinish: ({ isAbort }) =>
        setMessages((current) => settleLast(current, isAbort ? 'stopped' : 'lost')),
    });

  const isBusy = status === 'submitted' || status === 'streaming';
  const last = messages.at(-1);
  const notice = toTurnNotice(status, error, messages);
  const thoughts = useThoughts(last, isBusy, stored.thoughts);
  useSavedChat(chatId, messages, thoughts);

  // On a touch screen, focus would bring up the keyboard over what the person came to read.
  const focusInput = useCallback(() => {
    if (window.matchMedia('(pointer: fine)').matches) inputRef.current?.focus();
  }, []);
  useEffect(focusInput, [focusInput]);

  const begin = (request: Promise<void>) => {
    void request;
    setTurn((count) => count + 1);
    focusInput();
  };
  const ask = (text: string) => begin(sendMessage({ text }));

  return (
    <>
      <main className="relative min-h-0">
        {messages.length === 0 ? (
          <EmptyState onAsk={ask} />
        ) : (
          <Conversation onJump={focusInput} turn={turn}>
            {toRows(messages, isBusy).map(({ key, message }) =>
              message?.role === 'user' ? (
                <UserMessage key={key} message={message} />
              ) : (
                <AssistantMessage
                  isLast={!message || message === last}
                  isLive={isBusy && (!message || message === last)}
                  key={key}
                  message={message}
                  thoughts={thoughts}
                />
              ),
            )}
            {notice ? (
              <TurnNoticeBanner notice={notice} onRetry={() => begin(regenerate())} />
            ) : null}
          </Conversation>
        )}
      </main>
      <footer className="mx-auto w-full max-w-3xl px-3 pb-3 sm:px-6 sm:pb-4">
        <Composer
          inputRef={inputRef}
          isBusy={isBusy}
          onPlaceChange={setPlace}
          onSend={ask}
          onStop={() => void stop()}
          place={place}
        />
        <p className="mt-2 text-center text-xs text-ink-soft">
          {place === 'tab' ? 'Scripted model, in this page' : serverModel}
          <span className="max-sm:hidden"> · Enter sends, Shift + Enter starts a new line</span>
        </p>
      </footer>
      <p className="sr-only" role="status">
        {toAnnouncement(status, notice, last)}
      </p>
    </>
  );
}

/** An answer has its row, and keeps it, from the moment the question is sent. */
function toRows(
  messages: readonly ChatMessage[],
  isBusy: boolean,
): Array<{ key: string; message?: ChatMessage }> {
  const rows = messages.map((message, index) => ({
    key: message.role === 'user' ? message.id : `answer-to-${messages[index - 1]?.id}`,
    message,
  }));
  const last = messages.at(-1);
  return isBusy && last?.role === 'user' ? [...rows, { key: `answer-to-${last.id}` }] : rows;
}
