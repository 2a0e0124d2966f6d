import { type FormEvent, type KeyboardEvent, memo, useEffect, useRef, useState } from 'react';
import { type ChatMessage, toText } from '../chat-message.ts';
import { CopyButton } from './copy-button.tsx';
import { FileList } from './file-list.tsx';
import { PencilIcon } from './icons.tsx';
import { ACTION, MessageActions } from './message-actions.tsx';

type UserMessageProps = {
  message: ChatMessage;
  /** Absent where the message cannot be changed. */
  onEdit?: ((messageId: string, text: string) => void) | undefined;
};

export const UserMessage = memo(function UserMessage({ message, onEdit }: UserMessageProps) {
  const [isEditing, setIsEditing] = useState(false);
  const editRef = useRef<HTMLButtonElement>(null);
  const text = toText(message);
  const files = message.parts.filter((part) => part.type === 'file');
  const close = () => {
    setIsEditing(false);
    requestAnimationFrame(() => editRef.current?.focus());
  };
  return (
    <article aria-label="Question" className="group grid justify-items-end gap-1" data-role="user">
      <FileList files={files} />
      {isEditing ? (
        <EditForm
          onCancel={close}
          onSave={(next) => {
            close();
            onEdit?.(message.id, next);
          }}
          text={text}
        />
      ) : (
        <>
          {text ? (
            <p
              className="max-w-[85%] rounded-2xl rounded-br-md bg-sea-wash px-4 py-2.5 whitespace-pre-wrap wrap-anywhere"
              data-part="text"
            >
              {text}
            </p>
          ) : null}
          <MessageActions>
            {text ? <CopyButton className={ACTION} label="Copy message" text={text} /> : null}
            {onEdit ? (
              <button
                aria-label="Edit message"
                className={ACTION}
                onClick={() => setIsEditing(true)}
                ref={editRef}
                type="button"
              >
                <PencilIcon />
                Edit
              </button>
            ) : null}
          </MessageActions>
        </>
      )}
    </article>
  );
});

type EditFormProps = { text: string; onSave(text: string): void; onCancel(): void };

function EditForm({ text: before, onSave, onCancel }: EditFormProps) {
  const [text, setText] = useState(before);
  const inputRef = useRef<HTMLTextAreaElement>(null);
  useEffect(() => inputRef.current?.focus(), []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) onSave(text.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onCancel();
  };
  return (
    <form
      aria-label="Edit message"
      className="w-full max-w-[85%] rounded-2xl border border-line-strong/50 bg-raised p-3 focus-within:border-sea"
      onSubmit={submit}
    >
      <div className="grow leading-6" data-text={text}>
        <textarea
          aria-label="Your message"
          className="bg-transparent outline-none"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          ref={inputRef}
          value={text}
        />
      </div>
      <div className="mt-2 flex flex-wrap items-center justify-end gap-2 text-sm">
        <p className="mr-auto text-xs text-ink-soft">Replaces what follows it</p>
        <button
          className="rounded-full border border-line-strong/60 px-3.5 py-1.5 hover:border-ink-soft"
          onClick={onCancel}
          type="button"
        >
          Cancel
        </button>
        <button
          className="rounded-full bg-sea px-3.5 py-1.5 text-on-sea hover:opacity-90 disabled:bg-pill disabled:text-ink-soft"
          disabled={text.trim() === ''}
          type="submit"
        >
          Send
        </button>
      </div>
    </form>
  );
}
