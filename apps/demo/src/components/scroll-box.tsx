import type { ReactNode, RefObject } from 'react';

type ScrollBoxProps = {
  label: string;
  className: string;
  children: ReactNode;
  ref?: RefObject<HTMLDivElement | null>;
};

/** Content that scrolls by itself, and can be scrolled with the keyboard too. */
export function ScrollBox({ label, className, children, ref }: ScrollBoxProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for inputs, and a section would be one landmark more for each table
    <div
      aria-label={label}
      className={className}
      ref={ref}
      role="group"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, some browsers give keyboard users no way to scroll
      tabIndex={0}
    >
      {children}
    </div>
  );
}
