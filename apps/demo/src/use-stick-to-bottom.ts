import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react';

const NEAR_BOTTOM_PX = 32;

type Stick = {
  scrollerRef: RefObject<HTMLDivElement | null>;
  contentRef: RefObject<HTMLDivElement | null>;
  /** False while the reader is somewhere above. */
  isAtBottom: boolean;
  scrollToBottom(): void;
};

/**
 * Follows the newest words until the reader scrolls up, and again once they are back down.
 * Sizes are watched rather than messages, so that it does not matter why the content grew.
 */
export function useStickToBottom(): Stick {
  const scrollerRef = useRef<HTMLDivElement>(null);
  const contentRef = useRef<HTMLDivElement>(null);
  const isStuck = useRef(true);
  const [isAtBottom, setIsAtBottom] = useState(true);

  const scrollToBottom = useCallback(() => {
    isStuck.current = true;
    setIsAtBottom(true);
    const scroller = scrollerRef.current;
    if (scroller) scroller.scrollTop = scroller.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    const scroller = scrollerRef.current;
    const content = contentRef.current;
    if (!scroller || !content) return;
    // Observers run after layout and before paint: the reader never sees the gap.
    const observer = new ResizeObserver(() => {
      if (isStuck.current) scroller.scrollTop = scroller.scrollHeight;
    });
    observer.observe(scroller);
    observer.observe(content);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const scroller = scrollerRef.current;
    if (!scroller) return;
    let lastTop = scroller.scrollTop;
    const setStuck = (stuck: boolean) => {
      isStuck.current = stuck;
      setIsAtBottom(stuck);
    };
    const onScroll = () => {
      const top = scroller.scrollTop;
      const below = scroller.scrollHeight - scroller.clientHeight - top;
      if (top < lastTop && below > 1) setStuck(false);
      else if (below <= NEAR_BOTTOM_PX) setStuck(true);
      lastTop = top;
    };
    // A gentle turn of the wheel moves less than a new line adds: take the intent, not the distance.
    const onWheel = (event: WheelEvent) => {
      if (event.deltaY < 0 && scroller.scrollTop > 0) setStuck(false);
    };
    scroller.addEventListener('scroll', onScroll, { passive: true });
    scroller.addEventListener('wheel', onWheel, { passive: true });
    return () => {
      scroller.removeEventListener('scroll', onScroll);
      scroller.removeEventListener('wheel', onWheel);
    };
  }, []);

  return { scrollerRef, contentRef, isAtBottom, scrollToBottom };
}
