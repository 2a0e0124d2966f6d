'use client';
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, getToolName, isToolUIPart, type UIMessage } from 'ai';

const transport = new DefaultChatTransport({ api: '/api/chat' });

export default function Page() {
  const { messages, sendMessage, status, stop, error } = useChat({ transport });
  const isBusy = status === 'submitted' || status === 'streaming';
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <article key={id} aria-label={role}>
          {parts.map((part, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: parts are only ever appended
            <div key={index}>{toText(part)}</div>
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void sendMessage({ text: String(form.get('text')) })}>
        <input name="text" aria-label="Message" required />
        <button type="submit" disabled={isBusy}>
          Send
        </button>
        <button type="button" disabled={!isBusy} onClick={stop}>
          Stop
        </button>
      </form>
    </main>
  );
}

function toText(part: UIMessage['parts'][number]): string {
  if (part.type === 'text') return part.text;
  if (part.type === 'reasoning') return `(${part.text})`;
  return isToolUIPart(part) ? `${getToolName(part)} → ${JSON.stringify(part.output)}` : '';
}
