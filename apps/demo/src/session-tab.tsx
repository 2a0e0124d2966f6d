import { useState } from 'react';
import { randomHex } from './chat-id.ts';
import { loadChat, type StoredChat } from './chat-storage.ts';
import { DropSwitch } from './components/drop-switch.tsx';
import { SESSION_INTRO } from './intros.ts';
import { SessionChat } from './session-chat.tsx';
import { toSessionNote } from './session-note.ts';
import { useConnection } from './use-connection.ts';
import { useServerReport } from './use-server-report.ts';

/** Without an answer that broke off here: the session has the rest of it. */
function loadWhole(chatId: string): StoredChat {
  const chat = loadChat(chatId);
  return {
    ...chat,
    messages: chat.messages.filter(({ metadata }) => metadata?.outcome !== 'lost'),
  };
}

/** The demo's session: the same chat as on the page of `sabir serve`, and a switch that cuts its connection. */
export function SessionTab({ chatId }: { chatId: string }) {
  const connection = useConnection();
  const report = useServerReport();
  // There are no accounts in the demo: each window is a person of its own.
  const [headers] = useState(() => ({ 'x-window': `window-${randomHex()}` }));
  const [stored] = useState(() => loadWhole(chatId));
  const { isCut } = connection;
  return (
    <SessionChat
      chatId={chatId}
      controls={(noteId) => (
        <DropSwitch
          describedBy={noteId}
          isOn={isCut}
          onChange={(isOn) => (isOn ? connection.cut() : connection.mend())}
        />
      )}
      fetch={connection.fetch}
      headers={headers}
      intro={SESSION_INTRO}
      isCut={isCut}
      note={(session) => toSessionNote({ session, isCut, report })}
      stored={stored}
    />
  );
}
