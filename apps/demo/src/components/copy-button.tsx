import { useState } from 'react';
import { CheckIcon, CopyIcon } from './icons.tsx';

const COPIED_MS = 1_600;

type CopyButtonProps = {
  text: string;
  /** What is copied, for a screen reader. */
  label: string;
  className: string;
};

export function CopyButton({ text, label, className }: CopyButtonProps) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), COPIED_MS);
  };
  return (
    <button
      aria-label={isCopied ? 'Copied' : label}
      className={className}
      onClick={() => void copy()}
      type="button"
    >
      {isCopied ? <CheckIcon /> : <CopyIcon />}
      {isCopied ? 'Copied' : 'Copy'}
    </button>
  );
}
