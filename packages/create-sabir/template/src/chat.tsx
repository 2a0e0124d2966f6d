import { useChat } from '@ai-sdk/react';
import { getToolName, isToolUIPart, type UIMessage } from 'ai';
import { type FormEvent, useState } from 'react';
import { SabirChatTransport } from 'sabir/client';

type ChatProps = { chatId: string; messages: UIMessage[] };

export function Chat({ chatId, messages: history }: ChatProps) {
  const [transport] = useState(
    () => new SabirChatTransport<UIMessage>({ api: `/api/sessions/${chatId}/chat`, aiSdk: 7 }),
  );
  const { messages, sendMessage, status, error } = useChat({
    id: chatId,
    messages: history,
    transport,
    resume: true,
  });
  const [text, setText] = useState('');
  const isBusy = status === 'submitted' || status === 'streaming';

  function send(event: FormEvent): void {
    event.preventDefault();
    if (isBusy || text.trim() === '') return;
    void sendMessage({ text });
    setText('');
  }

  return (
    <main>
      <header>
        <h1>Chat</h1>
        <a href="/">New chat</a>
      </header>
      <div aria-live="polite" className="messages">
        {messages.map((message) => (
          <article className={message.role} key={message.id}>
            {message.parts.map((part, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: parts are only ever added at the end
              <Part key={i} part={part} />
            ))}
          </article>
        ))}
        {error && <p role="alert">{error.message}</p>}
      </div>
      <form onSubmit={send}>
        <input
          aria-label="Message"
          onChange={({ target }) => setText(target.value)}
          placeholder="Say something…"
          value={text}
        />
        {isBusy ? (
          <button onClick={() => void transport.stop(chatId)} type="button">
            Stop
          </button>
        ) : (
          <button type="submit">Send</button>
        )}
      </form>
    </main>
  );
}

const TOOL_STATES: Record<string, string> = {
  'output-available': 'done',
  'output-error': 'failed',
};

function Part({ part }: { part: UIMessage['parts'][number] }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  return (
    <details>
      <summary>
        {getToolName(part)} · {TOOL_STATES[part.state] ?? 'running'}
      </summary>
      <pre>{JSON.stringify(part.output ?? part.errorText ?? part.input, undefined, 2)}</pre>
    </details>
  );
}
