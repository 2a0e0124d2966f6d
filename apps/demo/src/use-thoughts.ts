import { useEffect, useRef, useState } from 'react';
import type { ChatMessage } from './chat-message.ts';
import type { Thoughts } from './chat-storage.ts';

/** Times the reasoning parts of the answer that is being written. */
export function useThoughts(
  last: ChatMessage | undefined,
  isBusy: boolean,
  stored: Thoughts,
): Thoughts {
  const [thoughts, setThoughts] = useState(stored);
  const startedAt = useRef(new Map<string, number>());

  useEffect(() => {
    if (last?.role !== 'assistant') return;
    for (const [index, part] of last.parts.entries()) {
      if (part.type !== 'reasoning') continue;
      const key = `${last.id}:${index}`;
      const begun = startedAt.current.get(key);
      const isOpen = isBusy && part.state === 'streaming';
      if (isOpen && begun === undefined) startedAt.current.set(key, Date.now());
      if (!isOpen && begun !== undefined) {
        startedAt.current.delete(key);
        setThoughts((before) => ({ ...before, [key]: Date.now() - begun }));
      }
    }
  }, [last, isBusy]);

  return thoughts;
}
