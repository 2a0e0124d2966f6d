import { useEffect, useState } from 'react';
import { latestChatId } from './chat-storage.ts';

/** The chat is part of the address, so that Back returns to the last one and a reload to this one. */
export function useChatId(): { chatId: string; startNewChat(): void } {
  const [chatId, setChatId] = useState(() => {
    const id = readHash() ?? latestChatId() ?? createChatId();
    history.replaceState(null, '', `#${id}`);
    return id;
  });

  useEffect(() => {
    const follow = () => setChatId((current) => readHash() ?? current);
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, []);

  return {
    chatId,
    startNewChat() {
      location.hash = createChatId();
    },
  };
}

function readHash(): string | undefined {
  const id = location.hash.slice(1);
  return /^[\w-]{4,40}$/.test(id) ? id : undefined;
}

function createChatId(): string {
  return crypto.getRandomValues(new Uint32Array(2)).reduce((id, n) => id + n.toString(36), '');
}
