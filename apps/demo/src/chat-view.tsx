import { useChat } from '@ai-sdk/react';
import { useCallback, useEffect, useId, useRef, useState } from 'react';
import { type ChatMessage, isOpenEnded, type Outcome, settleLast } from './chat-message.ts';
import { loadChat } from './chat-storage.ts';
import { Composer } from './components/composer.tsx';
import { Conversation } from './components/conversation.tsx';
import { EmptyState } from './components/empty-state.tsx';
import { AssistantMessage, UserMessage } from './components/message.tsx';
import { TurnNoticeBanner } from './components/turn-notice-banner.tsx';
import { GatewayTransport } from './gateway-transport.ts';
import { toPlaceNote } from './place-note.ts';
import { toAnnouncement } from './to-announcement.ts';
import { toTransport } from './transports.ts';
import { toTurnNotice } from './turn-notice.ts';
import { useCatchUp } from './use-catch-up.ts';
import { usePlace } from './use-place.ts';
import { useSavedChat } from './use-saved-chat.ts';
import { useServerReport } from './use-server-report.ts';
import { useThoughts } from './use-thoughts.ts';

/** Renders at most once a frame, however fast the words come. */
const FRAME_MS = 16;

/** One conversation, from its stored beginning to whatever is being written right now. */
export function Chat({ chatId }: { chatId: string }) {
  const [stored] = useState(() => loadChat(chatId));
  const [place, setPlace] = usePlace();
  /** Where the last answer was asked for; the switch is about the next one. */
  const [turnPlace, setTurnPlace] = useState(stored.place ?? place);
  const [isReconnecting, setIsReconnecting] = useState(false);
  const [gateway] = useState(() => new GatewayTransport(chatId, setIsReconnecting));
  const report = useServerReport();
  const [turn, setTurn] = useState(0);
  const inputRef = useRef<HTMLTextAreaElement>(null);
  const placeNoteId = useId();

  const chat = useChat<ChatMessage>({
    id: chatId,
    messages: stored.messages,
    transport: toTransport(place, gateway),
    throttle: FRAME_MS,
    onFinish: ({ isAbort }) => {
      setIsReconnecting(false);
      // Whoever leaves an answer of the gateway's only leaves.
      if (isAbort && turnPlace === 'gateway') return;
      // A stream that was cut off carries no outcome, and a client takes silence for success.
      settle(isAbort ? 'stopped' : 'lost');
    },
  });
  const { messages, sendMessage, regenerate, status, error } = chat;
  const settle = (outcome: Outcome) => chat.setMessages((current) => settleLast(current, outcome));

  const isRunning = status === 'submitted' || status === 'streaming';
  const isCatchingUp = useCatchUp({
    ...chat,
    gateway,
    isExpected: turnPlace === 'gateway',
    isBusy: isRunning,
    onCaughtUp: () => setTurnPlace('gateway'),
  });
  const last = messages.at(-1);
  const isBusy = isRunning || (isCatchingUp && isOpenEnded(last));
  const notice = isBusy ? undefined : toTurnNotice(status, error, messages);
  const thoughts = useThoughts(last, isBusy, stored.thoughts);
  useSavedChat(chatId, { messages, thoughts, place: turnPlace });

  // On a touch screen, focus would bring up the keyboard over what the person came to read.
  const focusInput = useCallback(() => {
    if (window.matchMedia('(pointer: fine)').matches) inputRef.current?.focus();
  }, []);
  useEffect(focusInput, [focusInput]);

  const begin = (request: Promise<void>) => {
    void request;
    setTurnPlace(place);
    setTurn((count) => count + 1);
    focusInput();
  };
  const ask = (text: string) => begin(sendMessage({ text }));
  const stop = async () => {
    if (turnPlace !== 'gateway') return chat.stop();
    // Its answer ends for all tabs, in the stream. Where nobody can be told, at least it ends here.
    await gateway.stop(chatId).catch(async () => {
      await chat.stop();
      settle('stopped');
    });
  };

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
          placeNoteId={placeNoteId}
        />
        <p className="mt-2 text-center text-xs text-ink-soft" id={placeNoteId}>
          {isBusy && isReconnecting ? 'Reconnecting…' : toPlaceNote(place, report)}
          <span className="max-sm:hidden"> · Enter sends, Shift + Enter starts a new line</span>
        </p>
      </footer>
      <p className="sr-only" role="status">
        {isBusy && !isRunning ? '' : toAnnouncement(status, notice, last)}
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
