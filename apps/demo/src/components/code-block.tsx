import { type ReactNode, useState } from 'react';
import { highlightCode } from '../highlight-code.ts';
import { CheckIcon, CopyIcon } from './icons.tsx';
import { ScrollBox } from './scroll-box.tsx';

const COPIED_MS = 1_600;

/** A fenced block of code, with its language and a way to take it along. */
export function CodeBlock({ children, className }: { children?: ReactNode; className?: string }) {
  const code = toText(children).replace(/\n$/, '');
  const language = /language-(\S+)/.exec(className ?? '')?.[1] ?? 'text';
  return (
    <figure className="overflow-hidden rounded-xl border border-line bg-sunken">
      <figcaption className="flex h-9 items-center justify-between border-b border-line pr-1.5 pl-4 text-xs text-ink-soft">
        <span className="font-mono">{language}</span>
        <CopyButton text={code} />
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

function CopyButton({ text }: { text: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), COPIED_MS);
  };
  return (
    <button
      className="flex items-center gap-1.5 rounded-md px-2 py-1 hover:bg-line/60 hover:text-ink"
      onClick={() => void copy()}
      type="button"
    >
      {isCopied ? <CheckIcon /> : <CopyIcon />}
      {isCopied ? 'Copied' : 'Copy'}
    </button>
  );
}

function toText(node: ReactNode): string {
  if (typeof node === 'string') return node;
  return Array.isArray(node) ? node.map(toText).join('') : '';
}
