import { useRef, useState, useSyncExternalStore } from 'react';
import { Header } from '../components/header.tsx';
import { SessionChat } from '../session-chat.tsx';
import { ChatList } from './chat-list.tsx';
import { forgetChat, listChats, rememberChat, subscribeToChats } from './known-chats.ts';
import { SERVE_INTRO } from './serve-intro.ts';
import { toServeNote } from './serve-note.ts';
import { SignIn } from './sign-in.tsx';
import { useSessionId } from './use-session-id.ts';
import { useToken } from './use-token.ts';

const NO_HEADERS = {};

/** The page of `sabir serve`: the chats of this browser, and the one that is open. */
export function ServePage() {
  const [token, saveToken] = useToken();
  const [isSignedOut, setIsSignedOut] = useState(false);
  const { sessionId, open, openNew } = useSessionId();
  const chats = useSyncExternalStore(subscribeToChats, listChats);
  const menuRef = useRef<HTMLDialogElement>(null);

  const closeMenu = () => menuRef.current?.close();
  const list = (
    <ChatList
      chats={chats}
      current={sessionId}
      onForget={forgetChat}
      onNew={() => {
        openNew();
        closeMenu();
      }}
      onOpen={(id) => {
        open(id);
        closeMenu();
      }}
    />
  );

  return (
    <div className="grid h-dvh grid-cols-1 grid-rows-[auto_minmax(0,1fr)] *:min-w-0 lg:grid-cols-[17rem_minmax(0,1fr)]">
      <div className="lg:col-span-2">
        <Header onMenu={() => menuRef.current?.showModal()} onNewChat={openNew} />
      </div>
      <div className="border-r border-line bg-sunken/60 max-lg:hidden">{list}</div>
      <dialog
        aria-label="Chats"
        className="m-0 h-dvh max-h-none w-[min(20rem,85vw)] max-w-none border-r border-line bg-paper text-ink backdrop:bg-black/40 lg:hidden"
        ref={menuRef}
      >
        {list}
      </dialog>
      <div className="grid min-h-0 grid-rows-[minmax(0,1fr)_auto] *:min-w-0">
        {isSignedOut ? (
          <SignIn
            isRefused={token !== undefined}
            onToken={(next) => {
              saveToken(next);
              setIsSignedOut(false);
            }}
          />
        ) : (
          <SessionChat
            chatId={sessionId}
            headers={token === undefined ? NO_HEADERS : { authorization: `Bearer ${token}` }}
            intro={SERVE_INTRO}
            key={`${sessionId} ${token}`}
            note={toServeNote}
            onRefused={({ status }) => setIsSignedOut(status === 401)}
            onTitle={(title) => rememberChat(sessionId, title)}
            // Without a token everybody is the same person.
            shareAs={token ?? 'everybody'}
          />
        )}
      </div>
    </div>
  );
}
