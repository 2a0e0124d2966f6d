import { useEffect, useLayoutEffect, useRef } from 'react';
import { type StoredChat, saveChat } from './chat-storage.ts';

const SAVE_EVERY_MS = 300;

/** Keeps the stored copy close behind the screen, and exact when the page goes away. */
export function useSavedChat(chatId: string, { messages, thoughts, place }: StoredChat): void {
  const pending = useRef<{ chat: StoredChat; timer: number } | undefined>(undefined);

  // In layout: what has been painted must be known here when the page goes away the next moment.
  useLayoutEffect(() => {
    const chat = { messages, thoughts, place };
    if (pending.current) {
      pending.current.chat = chat;
      return;
    }
    const timer = window.setTimeout(() => {
      if (pending.current) saveChat(chatId, pending.current.chat);
      pending.current = undefined;
    }, SAVE_EVERY_MS);
    pending.current = { chat, timer };
  }, [chatId, messages, thoughts, place]);

  useEffect(() => {
    const flush = () => {
      if (!pending.current) return;
      clearTimeout(pending.current.timer);
      saveChat(chatId, pending.current.chat);
      pending.current = undefined;
    };
    window.addEventListener('pagehide', flush);
    return () => {
      window.removeEventListener('pagehide', flush);
      flush();
    };
  }, [chatId]);
}
