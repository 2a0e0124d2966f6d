import type { ReactNode } from 'react';

export const ACTION =
  'flex items-center gap-1.5 rounded-md px-2 py-1 text-xs text-ink-soft hover:bg-line/60 hover:text-ink';

/** They stand in the gap below the message, so that it is no wider for their sake. */
const ON_DEMAND =
  '-mb-7 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 motion-safe:transition-opacity [@media(hover:none)]:opacity-100';

type MessageActionsProps = {
  /** Not only while the pointer or the keyboard is at the message; on a touch screen they are always shown. */
  isShown?: boolean;
  children: ReactNode;
};

/** What can be done with a message. */
export function MessageActions({ isShown = false, children }: MessageActionsProps) {
  return (
    <div className={`flex gap-0.5 ${isShown ? '' : ON_DEMAND}`} data-actions>
      {children}
    </div>
  );
}
