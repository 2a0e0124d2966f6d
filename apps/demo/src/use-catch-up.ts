import { useEffect, useEffectEvent, useState } from 'react';
import type { ChatMessage } from './chat-message.ts';
import type { SharedConversation } from './shared-conversation.ts';

type Options = {
  conversation: SharedConversation;
  messages: ChatMessage[];
  setMessages(messages: ChatMessage[]): void;
  clearError(): void;
  /** Shows the answer that is being written, to its end. */
  resume(): Promise<void>;
  /** The last answer of this conversation was the gateway's: it may have gone on without us. */
  isExpected: boolean;
  isBusy: boolean;
  /** Runs before an answer of the gateway's is shown. */
  onCaughtUp?(): void;
};

/**
 * Puts a conversation behind the gateway back on the screen, when the page is opened and when
 * another tab has asked something: first what was said, then the answer that is being written,
 * from its first word and on as it comes. True from beginning to end.
 */
export function useCatchUp(options: Options): boolean {
  const { conversation, isExpected } = options;
  const [isCatchingUp, setIsCatchingUp] = useState(isExpected);

  const show = useEffectEvent(async (history: ChatMessage[]) => {
    // Somebody was quicker: what they asked here is newer than this.
    if (options.isBusy) return;
    const asked = options.messages.findLast(({ role }) => role === 'user');
    // A server that has forgotten, or was never reached, knows less than this page.
    if (asked && !history.some(({ id }) => id === asked.id)) return;
    options.clearError();
    options.setMessages(history);
    options.onCaughtUp?.();
    if (history.at(-1)?.role === 'user') await options.resume();
  });

  const catchUp = useEffectEvent(async (leaving: AbortSignal) => {
    setIsCatchingUp(true);
    try {
      await show(await conversation.history(leaving));
    } catch {
      // No server, no gateway: the page's own copy is what there is.
    }
    if (!leaving.aborted) setIsCatchingUp(false);
  });

  const isFree = useEffectEvent(() => !options.isBusy && !isCatchingUp);
  const isReturning = useEffectEvent(() => isExpected);

  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    if (isReturning()) void catchUp(signal);
    conversation.onAskedElsewhere(() => isFree() && void catchUp(signal), signal);
    return () => leaving.abort();
  }, [conversation]);

  return isCatchingUp;
}
