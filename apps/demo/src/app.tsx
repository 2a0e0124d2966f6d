import { AiSdkChat } from './ai-sdk-chat.tsx';
import { Header } from './components/header.tsx';
import { TabList, toPanelId, toTabId } from './components/tab-list.tsx';
import { ContractChat } from './contract-chat.tsx';
import { SessionTab } from './session-tab.tsx';
import { useOpenChats } from './use-open-chats.ts';

const TABS = [
  { tab: 'useChat', note: 'AI SDK', Chat: AiSdkChat },
  { tab: 'useChatStream', note: 'contract', Chat: ContractChat },
  { tab: 'Session', note: 'useChat, many windows', Chat: SessionTab },
] as const;

export function App() {
  const { tab: current, chatIds, openTab, startNewChat } = useOpenChats();
  return (
    <div className="grid h-dvh grid-cols-1 grid-rows-[auto_auto_minmax(0,1fr)] *:min-w-0">
      <div className="col-start-1 row-start-1">
        <Header onNewChat={startNewChat} />
      </div>
      {/* Where there is room, in the middle of the header. */}
      <div className="grid border-b border-line px-3 py-1.5 sm:justify-center lg:col-start-1 lg:row-start-1 lg:self-center lg:justify-self-center lg:border-0">
        <TabList label="Hook" onChange={openTab} tabs={TABS} value={current} />
      </div>
      {TABS.map(({ tab, Chat }) => (
        // Hidden, not gone: an answer goes on while the other tab is in front.
        <div
          aria-labelledby={toTabId(tab)}
          className="row-start-3 grid grid-rows-[minmax(0,1fr)_auto] *:min-w-0"
          hidden={tab !== current}
          id={toPanelId(tab)}
          key={tab}
          role="tabpanel"
        >
          {chatIds[tab] ? <Chat chatId={chatIds[tab]} key={chatIds[tab]} /> : null}
        </div>
      ))}
    </div>
  );
}
