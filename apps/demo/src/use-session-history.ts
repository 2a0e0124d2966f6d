import { useEffect, useRef, useState } from 'react';
import { loadChat, type StoredChat } from './chat-storage.ts';
import type { SessionRequests } from './session-requests.ts';

/** Without its socket, a window still can ask what was said. */
const SOCKET_MS = 1_000;

/** What a window begins with, and at which of its visits to the session that was asked for. */
export type SessionStart = { stored: StoredChat; visit: number };

/** What was said before, asked for when the socket listens: nothing falls in between. */
export function useSessionHistory(
  chatId: string,
  { history }: SessionRequests,
  visits: number,
): SessionStart | undefined {
  const [start, setStart] = useState<SessionStart>();
  const [isLate, setIsLate] = useState(false);
  const isAsked = useRef(false);

  useEffect(() => {
    const timer = setTimeout(() => setIsLate(true), SOCKET_MS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    if (isAsked.current || (visits === 0 && !isLate)) return;
    isAsked.current = true;
    const stored = loadChat(chatId);
    history().then(
      (messages) => setStart({ stored: { ...stored, messages }, visit: visits }),
      // The page's own copy is what there is.
      () => setStart({ stored, visit: visits }),
    );
  }, [chatId, history, isLate, visits]);
  return start;
}
