import { useEffect, useState } from 'react';
import { randomHex } from '../chat-id.ts';

const NAME = 'session';

/** The session is in the address: a reload stays in it, a second window follows it, and Back returns to the last one. */
export function useSessionId(): {
  sessionId: string;
  open(sessionId: string): void;
  openNew(): void;
} {
  const [sessionId, setSessionId] = useState(() => {
    const given = readAddress();
    if (given) return given;
    const made = randomHex();
    history.replaceState(null, '', toAddress(made));
    return made;
  });

  useEffect(() => {
    const follow = () => setSessionId((before) => readAddress() ?? before);
    window.addEventListener('popstate', follow);
    return () => window.removeEventListener('popstate', follow);
  }, []);

  const open = (next: string) => {
    if (next === sessionId) return;
    history.pushState(null, '', toAddress(next));
    setSessionId(next);
  };
  return { sessionId, open, openNew: () => open(randomHex()) };
}

function readAddress(): string | undefined {
  return new URLSearchParams(location.search).get(NAME) || undefined;
}

function toAddress(sessionId: string): string {
  return `?${new URLSearchParams({ [NAME]: sessionId })}`;
}
