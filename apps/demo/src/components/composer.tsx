import { type KeyboardEvent, type ReactNode, type RefObject, useState } from 'react';
import { ArrowUpIcon, StopIcon } from './icons.tsx';

type ComposerProps = {
  inputRef: RefObject<HTMLTextAreaElement | null>;
  isBusy: boolean;
  /** What the input is for, in a few words. */
  label: string;
  /** What there is to set, beside the button. */
  controls: ReactNode;
  /** What is sent while an answer is being written waits for its turn; else it cannot be sent. */
  canQueue: boolean;
  /** There is nobody to send it to. */
  isCutOff: boolean;
  onSend(text: string): void;
  onStop(): void;
};

export function Composer({
  inputRef,
  isBusy,
  label,
  controls,
  canQueue,
  isCutOff,
  onSend,
  onStop,
}: ComposerProps) {
  const [text, setText] = useState('');
  /** One button for both, where both are never wanted at once. */
  const isStop = isBusy && !canQueue;
  const canSend = text.trim() !== '' && !isStop && !isCutOff;

  const send = () => {
    if (!canSend) return;
    onSend(text.trim());
    setText('');
  };

  const onKeyDown = (event: KeyboardEvent) => {
    // While an input method is composing, Enter picks a character and is not ours.
    const isComposing = event.nativeEvent.isComposing || event.keyCode === 229;
    if (event.key !== 'Enter' || event.shiftKey || isComposing) return;
    event.preventDefault();
    send();
  };

  return (
    <form
      aria-label="Message"
      className="rounded-2xl border border-line-strong/50 bg-raised p-2 shadow-[0_2px_12px_var(--shadow)] focus-within:border-sea"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div className="grow px-2 pt-1.5 pb-2 leading-6" data-text={text}>
        <textarea
          aria-label={label}
          className="bg-transparent outline-none placeholder:text-ink-soft"
          enterKeyHint="send"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          placeholder={`${label}…`}
          ref={inputRef}
          rows={1}
          value={text}
        />
      </div>
      <div className="flex items-center justify-between gap-3 pl-2">
        {controls}
        <div className="ml-auto flex shrink-0 gap-2">
          {isBusy && canQueue ? (
            <button
              className="flex h-9 min-w-9 items-center justify-center gap-1.5 rounded-full border border-line-strong/60 text-xs hover:border-ink-soft disabled:text-ink-soft sm:pr-3.5 sm:pl-2"
              disabled={isCutOff}
              onClick={onStop}
              type="button"
            >
              <StopIcon />
              <span className="max-sm:sr-only">Stop for everybody</span>
            </button>
          ) : null}
          {/* The same button for both, so that the keyboard's focus never falls off the page. */}
          <button
            aria-label={isStop ? 'Stop' : 'Send'}
            className="grid size-9 place-items-center rounded-full bg-sea text-on-sea motion-safe:transition-opacity hover:opacity-90 disabled:bg-pill disabled:text-ink-soft"
            disabled={!isStop && !canSend}
            onClick={(event) => {
              if (!isStop) return;
              event.preventDefault();
              onStop();
            }}
            title={isStop ? 'Stop' : 'Send'}
            type="submit"
          >
            {isStop ? <StopIcon /> : <ArrowUpIcon />}
          </button>
        </div>
      </div>
    </form>
  );
}
