import { type RefObject, useLayoutEffect, useRef } from 'react';

/**
 * While an answer is being written, folding away its reasoning would make the page shorter and
 * everything above jump down. The outer box keeps the greatest height the inner one ever had;
 * the words that follow fill the space. Whatever is left stays until the next turn releases it,
 * at a moment when the page moves anyway.
 */
export function useHeldHeight(phase: 'growing' | 'settled' | 'past'): {
  outerRef: RefObject<HTMLDivElement | null>;
  innerRef: RefObject<HTMLDivElement | null>;
} {
  const outerRef = useRef<HTMLDivElement>(null);
  const innerRef = useRef<HTMLDivElement>(null);

  useLayoutEffect(() => {
    const outer = outerRef.current;
    const inner = innerRef.current;
    if (!outer || !inner || phase === 'settled') return;
    if (phase === 'past') {
      outer.style.minHeight = '';
      return;
    }
    let width = inner.offsetWidth;
    let greatest = 0;
    const observer = new ResizeObserver(() => {
      // Another width means other line breaks: what was held says nothing any more.
      if (inner.offsetWidth !== width) greatest = 0;
      width = inner.offsetWidth;
      greatest = Math.max(greatest, inner.offsetHeight);
      outer.style.minHeight = `${greatest}px`;
    });
    observer.observe(inner);
    return () => observer.disconnect();
  }, [phase]);

  return { outerRef, innerRef };
}
