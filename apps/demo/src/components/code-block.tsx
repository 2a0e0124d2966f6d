import type { ReactNode } from 'react';
import { highlightCode } from '../highlight-code.ts';
import { CopyButton } from './copy-button.tsx';
import { ScrollBox } from './scroll-box.tsx';

/** A fenced block of code, with its language and a way to take it along. */
export function CodeBlock({ children, className }: { children?: ReactNode; className?: string }) {
  const code = toText(children).replace(/\n$/, '');
  const language = /language-(\S+)/.exec(className ?? '')?.[1] ?? 'text';
  return (
    <figure className="overflow-hidden rounded-xl border border-line bg-sunken">
      <figcaption className="flex h-9 items-center justify-between border-b border-line pr-1.5 pl-4 text-xs text-ink-soft">
        <span className="font-mono">{language}</span>
        <CopyButton
          className="flex items-center gap-1.5 rounded-md px-2 py-1 hover:bg-line/60 hover:text-ink"
          label="Copy code"
          text={code}
        />
      </figcaption>
      <ScrollBox
        className="overflow-x-auto px-4 py-3 text-[0.8125rem] leading-relaxed"
        label="Code"
      >
        <pre className="font-mono">
          <code>
            {highlightCode(code).map(({ kind, text, start }) => (
              <span className={TONES[kind]} key={start}>
                {text}
              </span>
            ))}
          </code>
        </pre>
      </ScrollBox>
    </figure>
  );
}

const TONES = {
  plain: undefined,
  comment: 'text-ink-soft italic',
  string: 'text-olive',
  keyword: 'text-terracotta',
  name: 'text-sea',
};

function toText(node: ReactNode): string {
  if (typeof node === 'string') return node;
  return Array.isArray(node) ? node.map(toText).join('') : '';
}
