import type { FileUIPart } from 'ai';
import { type ReactNode, useCallback, useEffect, useId, useRef, useState } from 'react';
import type { Chat } from './chat.ts';
import { type ChatMessage, isOpenEnded } from './chat-message.ts';
import type { StoredChat } from './chat-storage.ts';
import { Composer } from './components/composer.tsx';
import { Conversation } from './components/conversation.tsx';
import { EmptyState } from './components/empty-state.tsx';
import { AssistantMessage } from './components/message.tsx';
import { TurnNoticeBanner } from './components/turn-notice-banner.tsx';
import { UserMessage } from './components/user-message.tsx';
import type { Intro } from './intros.ts';
import { toAnnouncement } from './to-announcement.ts';
import { toTurnNotice } from './turn-notice.ts';
import { useSavedChat } from './use-saved-chat.ts';
import { useThoughts } from './use-thoughts.ts';

type ChatViewProps = {
  chatId: string;
  /** Who answers here. */
  intro: Intro;
  /** What the chat began with. */
  stored: StoredChat;
  chat: Chat;
  /** What there is to know about where the next answer is made. */
  note: ReactNode;
  /** What there is to set there; the note has this id. */
  controls?(noteId: string): ReactNode;
  /** Another place can be chosen. */
  canMove?: boolean;
  /** Keeps a copy of the conversation in this browser. */
  isCopied?: boolean | undefined;
  /** What comes after the conversation; whatever of it goes away leaves the focus to the input. */
  below?(focusInput: () => void): ReactNode;
};

const NONE: ChatMessage[] = [];

/** Draws a conversation, and keeps the stored copy of it. Cannot tell which hook it comes from. */
export function ChatView(props: ChatViewProps) {
  const {
    chatId,
    intro,
    stored,
    chat,
    note,
    controls,
    canMove = false,
    isCopied = true,
    below,
  } = props;
  const { isReadOnly = false } = chat;
  const { messages, status, isCatchingUp } = chat;
  const [turn, setTurn] = useState(0);
  const inputRef = useRef<HTMLTextAreaElement>(null);
  const noteId = useId();

  const isRunning = status === 'submitted' || status === 'streaming';
  const last = messages.at(-1);
  const isBusy = isRunning || (isCatchingUp && isOpenEnded(last));
  const notice = isBusy ? undefined : toTurnNotice(chat, canMove);
  const thoughts = useThoughts(last, isBusy, stored.thoughts);
  useSavedChat(chatId, { messages: isCopied ? messages : NONE, thoughts, place: chat.place });

  const canChange = !isBusy && !isReadOnly && !chat.isCutOff;
  const canEdit = canChange && chat.edit !== undefined;
  // What went wrong says so below, with a button of its own.
  const canRetry = canChange && !notice && last?.role === 'assistant';

  // On a touch screen, focus would bring up the keyboard over what the person came to read.
  const focusInput = useCallback(() => {
    if (window.matchMedia('(pointer: fine)').matches) inputRef.current?.focus();
  }, []);
  useEffect(() => {
    // Whoever walks along the tabs with the keyboard is still walking.
    if (!document.activeElement?.matches('[role=tab]')) focusInput();
  }, [focusInput]);

  const begin = () => {
    setTurn((count) => count + 1);
    focusInput();
  };
  const ask = (text: string, files: FileUIPart[] = []) => {
    chat.send(text, files);
    begin();
  };
  const edit = (messageId: string, text: string) => {
    chat.edit?.(messageId, text);
    begin();
  };
  const stop = () => {
    chat.stop();
    // There the button goes away with the answer.
    if (chat.isShared) focusInput();
  };
  const retry = () => {
    chat.retry();
    begin();
  };

  return (
    <>
      <main className="relative min-h-0">
        {messages.length === 0 ? (
          <EmptyState intro={intro} onAsk={isReadOnly ? undefined : (text) => ask(text)} />
        ) : (
          <Conversation onJump={focusInput} turn={turn}>
            {toRows(messages, isBusy).map(({ key, message }) =>
              message?.role === 'user' ? (
                <UserMessage key={key} message={message} onEdit={canEdit ? edit : undefined} />
              ) : (
                <AssistantMessage
                  isChoice={chat.isShared ?? false}
                  isLast={!message || message === last}
                  isLive={isBusy && (!message || message === last)}
                  key={key}
                  message={message}
                  onAnswer={chat.answer}
                  onRetry={canRetry && message === last ? retry : undefined}
                  thoughts={thoughts}
                />
              ),
            )}
            {notice ? (
              <TurnNoticeBanner notice={notice} onRetry={isReadOnly ? undefined : retry} />
            ) : null}
            {below?.(focusInput)}
          </Conversation>
        )}
      </main>
      <footer className="mx-auto w-full max-w-3xl px-3 pb-3 sm:px-6 sm:pb-4">
        {isReadOnly ? null : (
          <Composer
            canAttach={chat.canAttach ?? false}
            canQueue={chat.isShared ?? false}
            controls={controls?.(noteId)}
            inputRef={inputRef}
            isBusy={isBusy}
            isCutOff={chat.isCutOff ?? false}
            label={intro.ask}
            onSend={ask}
            onStop={stop}
          />
        )}
        <p className="mt-2 text-center text-xs text-ink-soft" id={noteId}>
          {isBusy && chat.isReconnecting ? 'Reconnecting…' : note}
          {isReadOnly ? null : (
            <span className="max-sm:hidden"> · Enter sends, Shift + Enter starts a new line</span>
          )}
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
