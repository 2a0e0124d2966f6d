import { useChatStream, useFollow, useSession } from '../../../src/clients/react/index.ts';
import { session as id, type Message, mount, withQueue } from './chat-view.ts';
import { PlainScreen } from './plain-screen.tsx';

const api = '/api/chat';

function Chat() {
  const { session, fetch, ...room } = useSession({ api, id });
  const chat = useChatStream({ api, id, fetch });
  useFollow(chat, session);
  const { messages, status, error, sendMessage, regenerate, answer } = chat;
  const view = {
    messages: messages as unknown as Message[],
    isBusy: status === 'submitted' || status === 'streaming',
    error,
    send: (text: string) => void sendMessage(text),
    edit: (messageId: string, text: string) => void sendMessage({ text, messageId }),
    regenerate: (messageId: string) => void regenerate({ messageId }),
    stop: () => void room.stop(),
    answer: (questionId: string, approved: boolean) =>
      void answer({ questionId, answer: approved }),
  };
  return <PlainScreen {...withQueue(view, room)} />;
}

mount(Chat);
