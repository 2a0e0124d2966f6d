import { useState } from 'react';
import { useChatStream } from 'sabir/react';
import { type ChatMessage, settleLast } from './chat-message.ts';
import { loadChat } from './chat-storage.ts';
import { ChatView } from './chat-view.tsx';
import { DESK_INTRO } from './intros.ts';
import { toContractNote } from './place-note.ts';
import { SharedConversation } from './shared-conversation.ts';
import { useCatchUp } from './use-catch-up.ts';
import { useServerReport } from './use-server-report.ts';

const API = '/api/chat';

/** A conversation with the desk on `useChatStream`: the contract on the wire, and approvals. */
export function ContractChat({ chatId }: { chatId: string }) {
  const [stored] = useState(() => loadChat(chatId));
  const [conversation] = useState(() => new SharedConversation(`/api/chat/${chatId}`));
  const [isReconnecting, setIsReconnecting] = useState(false);
  const report = useServerReport();

  const chat = useChatStream<ChatMessage>({
    api: API,
    id: chatId,
    initialMessages: stored.messages,
    // The hook reconnects by itself and says nothing of it: what it asks for tells.
    async fetch(address, init) {
      try {
        const response = await fetch(address, init);
        setIsReconnecting(response.status >= 500);
        if (address === API && response.ok) conversation.tellAsked();
        return response;
      } catch (error) {
        setIsReconnecting(true);
        throw error;
      }
    },
    onFinish: ({ isAborted }) => {
      setIsReconnecting(false);
      // A stream that was cut off carries no outcome: nobody was left to send one.
      chat.setMessages((current) => settleLast(current, isAborted ? 'stopped' : 'lost'));
    },
  });
  const { messages, status } = chat;

  // In place of the hook's own `resume`: an answer may also have ended while nobody watched.
  const isCatchingUp = useCatchUp({
    ...chat,
    conversation,
    isExpected: stored.messages.length > 0,
    isBusy: status === 'submitted' || status === 'streaming',
  });

  return (
    <ChatView
      chat={{
        messages,
        status,
        isCatchingUp,
        isReconnecting,
        place: 'gateway',
        // An error that the answer went on after is none of the turn's.
        error: status === 'error' ? chat.error : undefined,
        send: (text) => void chat.sendMessage(text),
        retry: () => void chat.regenerate(),
        stop: () => void chat.abort(),
        answer: chat.answer,
      }}
      chatId={chatId}
      intro={DESK_INTRO}
      note={toContractNote(report)}
      stored={stored}
    />
  );
}
