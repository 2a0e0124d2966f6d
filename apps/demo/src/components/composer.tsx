import type { FileUIPart } from 'ai';
import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useRef,
  useState,
} from 'react';
import { type Attached, attach } from '../attachments.ts';
import { FileList } from './file-list.tsx';
import { ArrowUpIcon, PaperclipIcon, StopIcon } from './icons.tsx';

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
  /** Files can be sent, too. */
  canAttach: boolean;
  onSend(text: string, files: FileUIPart[]): void;
  onStop(): void;
};

export function Composer({
  inputRef,
  isBusy,
  label,
  controls,
  canQueue,
  isCutOff,
  canAttach,
  onSend,
  onStop,
}: ComposerProps) {
  const [text, setText] = useState('');
  const [{ files, problem }, setAttached] = useState<Attached>({ files: [] });
  const pickerRef = useRef<HTMLInputElement>(null);
  /** One button for both, where both are never wanted at once. */
  const isStop = isBusy && !canQueue;
  const canSend = (text.trim() !== '' || files.length > 0) && !isStop && !isCutOff;

  const send = () => {
    if (!canSend) return;
    onSend(text.trim(), files);
    setText('');
    setAttached({ files: [] });
  };
  const add = async (added: Iterable<File>) => setAttached(await attach(files, added));
  const onPaste = (event: ClipboardEvent) => {
    if (!canAttach || event.clipboardData.files.length === 0) return;
    event.preventDefault();
    void add(event.clipboardData.files);
  };
  const onDrop = (event: DragEvent) => {
    if (!canAttach || event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    void add(event.dataTransfer.files);
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
      onDragOver={(event) => {
        if (canAttach) event.preventDefault();
      }}
      onDrop={onDrop}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {files.length > 0 ? (
        <div className="px-2 pt-2">
          <FileList
            files={files}
            onRemove={(file) => {
              setAttached({ files: files.filter((one) => one !== file) });
              inputRef.current?.focus();
            }}
          />
        </div>
      ) : null}
      {problem ? (
        <p className="px-2 pt-1.5 text-sm wrap-anywhere text-terracotta" role="alert">
          {problem}
        </p>
      ) : null}
      <div className="grow px-2 pt-1.5 pb-2 leading-6" data-text={text}>
        <textarea
          aria-label={label}
          className="bg-transparent outline-none placeholder:text-ink-soft"
          enterKeyHint="send"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
          placeholder={`${label}…`}
          ref={inputRef}
          rows={1}
          value={text}
        />
      </div>
      <div className="flex items-center justify-between gap-3 pl-2">
        {canAttach ? (
          <>
            <button
              aria-label="Attach files"
              className="-ml-1.5 grid size-9 place-items-center rounded-full text-ink-soft hover:bg-sunken hover:text-ink"
              onClick={() => pickerRef.current?.click()}
              title="Attach files"
              type="button"
            >
              <PaperclipIcon />
            </button>
            <input
              aria-label="Files to attach"
              hidden
              multiple
              onChange={(event) => {
                void add([...(event.target.files ?? [])]);
                // The same file can be chosen again.
                event.target.value = '';
              }}
              ref={pickerRef}
              type="file"
            />
          </>
        ) : null}
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
