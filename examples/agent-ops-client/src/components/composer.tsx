import { useState } from 'react';

type ComposerProps = { isBusy: boolean; onSend(text: string): void; onStop(): void };

export function Composer({ isBusy, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isBusy || text.trim() === '') return;
        onSend(text);
        setText('');
      }}
    >
      <input
        aria-label="Message"
        onChange={({ target }) => setText(target.value)}
        placeholder="Send a message…"
        value={text}
      />
      <button disabled={isBusy} type="submit">
        Send
      </button>
      <button disabled={!isBusy} onClick={onStop} type="button">
        Stop
      </button>
    </form>
  );
}
