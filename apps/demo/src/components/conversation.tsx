import { type ReactNode, useLayoutEffect } from 'react';
import { useStickToBottom } from '../use-stick-to-bottom.ts';
import { ArrowDownIcon } from './icons.tsx';
import { ScrollBox } from './scroll-box.tsx';

type ConversationProps = {
  children: ReactNode;
  /** Grows when the person asks something: they want to see what comes of it. */
  turn: number;
  onJump(): void;
};

/** The scrolling part of the page. Follows the newest words unless the reader is elsewhere. */
export function Conversation({ children, turn, onJump }: ConversationProps) {
  const { scrollerRef, contentRef, isAtBottom, scrollToBottom } = useStickToBottom();

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new turn is the reason, not an ingredient
  useLayoutEffect(scrollToBottom, [turn, scrollToBottom]);

  return (
    <>
      <ScrollBox
        label="Conversation"
        className="scroller h-full outline-offset-[-2px]"
        ref={scrollerRef}
      >
        <div
          className="mx-auto grid max-w-3xl gap-8 px-4 pt-8 pb-10 *:min-w-0 sm:px-6"
          ref={contentRef}
        >
          {children}
        </div>
      </ScrollBox>
      <div
        aria-hidden="true"
        className="pointer-events-none absolute inset-x-0 bottom-0 h-8 bg-linear-to-b from-transparent to-paper"
      />
      {isAtBottom ? null : (
        <button
          className="absolute bottom-3 left-1/2 flex -translate-x-1/2 animate-arrive items-center gap-2 rounded-full border border-line-strong/50 bg-raised px-3.5 py-2 text-sm shadow-[0_2px_12px_var(--shadow)] hover:border-sea"
          onClick={() => {
            scrollToBottom();
            onJump();
          }}
          type="button"
        >
          <ArrowDownIcon />
          Jump to latest
        </button>
      )}
    </>
  );
}
