import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { ChatMessage } from './chat-message.ts';
import type { SessionState } from './session-state.ts';

type Options = {
  session: SessionState;
  messages: ChatMessage[];
  setMessages(messages: ChatMessage[]): void;
  /** Nothing is being sent or received. */
  isIdle: boolean;
  history(): Promise<ChatMessage[]>;
  /** Shows the answer that is being written, to its end. */
  resume(): Promise<void>;
  /** The visit whose history the chat began with. */
  firstVisit: number;
};

const MAX_TRIES = 6;
const RETRY_MS = 150;

/**
 * Brings the screen up to what the session has, whenever this window stands idle behind it: another
 * window has asked, something that waited has begun, or the connection was gone for a while. True
 * as long as there is something to catch up with.
 */
export function useSessionSync(options: Options): boolean {
  const { session, messages, isIdle } = options;
  const [isSyncing, setIsSyncing] = useState(false);
  const [seenVisit, setSeenVisit] = useState(options.firstVisit);
  const missing = findMissing(session, messages, seenVisit);
  // What is being written when the page opens is `useChat`'s own to resume: that has a moment.
  const tries = useRef({ missing, count: 1 });

  const show = useEffectEvent((history: ChatMessage[], visit: number) => {
    // Somebody was quicker: what they asked here is newer than this.
    if (!options.isIdle) return false;
    setSeenVisit(visit);
    options.setMessages(withKnownIds(history, options.messages));
    return true;
  });

  const sync = useEffectEvent(async () => {
    const { running, visits } = session;
    setIsSyncing(true);
    try {
      // Of an answer that broke off in the middle, only the rest is missing.
      const isHere = running !== undefined && messages.at(-1)?.id === running;
      if (isHere) setSeenVisit(visits);
      if (isHere || show(await options.history(), visits)) await options.resume();
    } catch {
      // The connection is gone again; it is tried again when it is back.
    }
    setIsSyncing(false);
  });

  useEffect(() => {
    if (!isIdle || isSyncing || !missing) return;
    const count = tries.current.missing === missing ? tries.current.count : 0;
    if (count === MAX_TRIES) return;
    // The gateway may hear of an end a moment later than this window.
    const timer = setTimeout(
      () => {
        tries.current = { missing, count: count + 1 };
        void sync();
      },
      count === 0 ? 0 : RETRY_MS * 2 ** count,
    );
    return () => clearTimeout(timer);
  }, [isIdle, isSyncing, missing]);

  return isSyncing || missing !== undefined;
}

/** What the session has and the screen has not, by a name for it. */
function findMissing(
  { isOpen, running, ended, visits }: SessionState,
  messages: ChatMessage[],
  seenVisit: number,
): string | undefined {
  if (!isOpen) return undefined;
  if (visits > seenVisit) return `visit ${visits}`;
  const isWhole = (turnId: string) =>
    messages.some(({ id, metadata }) => id === turnId && metadata?.outcome);
  // An end comes on two ways, and may be on the screen before the session tells of it.
  if (running !== undefined && !isWhole(running)) return `running ${running}`;
  const missed = ended.find((turnId) => !isWhole(turnId));
  return missed === undefined ? undefined : `ended ${missed}`;
}

/** The session has its own ids for what was asked here: with ours, what is on the screen stays. */
function withKnownIds(history: ChatMessage[], before: ChatMessage[]): ChatMessage[] {
  return history.map((message, index) => {
    const known = before[index];
    const isSame = known?.role === 'user' && message.role === 'user';
    return isSame ? { ...message, id: known.id } : message;
  });
}
