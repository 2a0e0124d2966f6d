import { type KeyboardEvent, type RefObject, useState } from 'react';
import type { Place } from '../transports.ts';
import { ArrowUpIcon, StopIcon } from './icons.tsx';
import { PlaceSwitch } from './place-switch.tsx';

type ComposerProps = {
  inputRef: RefObject<HTMLTextAreaElement | null>;
  isBusy: boolean;
  /** What the input is for, in a few words. */
  label: string;
  place: Place;
  placeNoteId: string;
  onPlaceChange(place: Place): void;
  onSend(text: string): void;
  onStop(): void;
};

export function Composer({
  inputRef,
  isBusy,
  label,
  place,
  placeNoteId,
  onPlaceChange,
  onSend,
  onStop,
}: ComposerProps) {
  const [text, setText] = useState('');
  const canSend = text.trim() !== '' && !isBusy;

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
        <PlaceSwitch describedBy={placeNoteId} onChange={onPlaceChange} value={place} />
        {/* One button for both, so that the keyboard's focus never falls off the page. */}
        <button
          aria-label={isBusy ? 'Stop' : 'Send'}
          className="grid size-9 shrink-0 place-items-center rounded-full bg-sea text-on-sea motion-safe:transition-opacity hover:opacity-90 disabled:bg-pill disabled:text-ink-soft"
          disabled={!isBusy && !canSend}
          onClick={(event) => {
            if (!isBusy) return;
            event.preventDefault();
            onStop();
          }}
          title={isBusy ? 'Stop' : 'Send'}
          type="submit"
        >
          {isBusy ? <StopIcon /> : <ArrowUpIcon />}
        </button>
      </div>
    </form>
  );
}
