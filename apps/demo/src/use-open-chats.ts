import { useEffect, useState } from 'react';
import { createChatId, type Tab, tabOf } from './chat-id.ts';
import { latestChatId } from './chat-storage.ts';

type OpenChats = {
  /** The tab in front. */
  tab: Tab;
  /** The chat in each tab that was ever in front: it goes on while another one is. */
  chatIds: Partial<Record<Tab, string>>;
};

/**
 * The chat is part of the address, so that Back returns to the last one and a reload to this one,
 * in whichever tab it is.
 */
export function useOpenChats(): OpenChats & { openTab(tab: Tab): void; startNewChat(): void } {
  const [open, setOpen] = useState(() => {
    const chatId = readHash() ?? findChatId('useChat');
    history.replaceState(null, '', `#${chatId}`);
    return show(chatId);
  });

  useEffect(() => {
    const follow = () => {
      const chatId = readHash();
      if (chatId) setOpen((before) => show(chatId, before));
    };
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);

  const { tab, chatIds } = open;
  const go = (chatId: string) => {
    location.hash = chatId;
    // The event comes later than the next key.
    setOpen((before) => show(chatId, before));
  };
  return {
    ...open,
    openTab(next) {
      if (next !== tab) go(chatIds[next] ?? findChatId(next));
    },
    startNewChat: () => go(createChatId(tab)),
  };
}

function show(chatId: string, before?: OpenChats): OpenChats {
  const tab = tabOf(chatId);
  return { tab, chatIds: { ...before?.chatIds, [tab]: chatId } };
}

function readHash(): string | undefined {
  const id = location.hash.slice(1);
  return /^[\w-]{4,40}$/.test(id) ? id : undefined;
}

function findChatId(tab: Tab): string {
  return latestChatId(tab) ?? createChatId(tab);
}
