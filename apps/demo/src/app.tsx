import { Chat } from './chat.tsx';
import { Header } from './components/header.tsx';
import { useChatId } from './use-chat-id.ts';

export function App() {
  const { chatId, startNewChat } = useChatId();
  return (
    <div className="grid h-dvh grid-rows-[auto_minmax(0,1fr)_auto] *:min-w-0">
      <Header onNewChat={startNewChat} />
      <Chat chatId={chatId} key={chatId} />
    </div>
  );
}
