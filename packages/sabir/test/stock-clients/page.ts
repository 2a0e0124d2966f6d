/**
 * A chat page with nothing of ours in it: the unmodified `useChat` and a transport (`transport.ts`) of
 * whichever release it is bundled with. What it shows is plain, so that a test can read it.
 */
import { useChat } from '@ai-sdk/react';
import type { UIMessage } from 'ai';
import { createElement as h, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { transport } from './transport.ts';

const params = new URLSearchParams(location.search);
const session = `/api/sessions/${params.get('session')}`;
const headers = { authorization: `Bearer ${params.get('token')}` };

function Part({ part }: { part: UIMessage['parts'][number] }) {
  const { state, text, output, errorText, data } = part as Record<string, unknown>;
  return h(
    'li',
    { 'data-part': part.type, 'data-state': state },
    String(text ?? errorText ?? JSON.stringify(output ?? data ?? null)),
  );
}

function Chat({ history }: { history: UIMessage[] }) {
  const { messages, status, error, sendMessage, stop } = useChat({
    id: params.get('chat') ?? 'chat',
    messages: history,
    transport,
    resume: true,
  });
  const [text, setText] = useState('');
  Object.assign(window, { chat: { messages, status } });
  const submit = (event: { preventDefault(): void }) => {
    event.preventDefault();
    void sendMessage({ text });
    setText('');
  };
  return h(
    'main',
    { 'data-status': status },
    error && h('p', { role: 'alert' }, error.message),
    messages.map(({ id, role, parts }) =>
      h(
        'ol',
        { key: id, 'data-role': role },
        parts.map((part, i) => h(Part, { key: i, part })),
      ),
    ),
    h(
      'form',
      { onSubmit: submit },
      h('input', {
        value: text,
        onChange: (event: { target: { value: string } }) => setText(event.target.value),
      }),
      h('button', { type: 'submit' }, 'Send'),
      h('button', { type: 'button', onClick: () => stop() }, 'Stop'),
    ),
  );
}

const response = await fetch(`${session}/messages`, { headers });
const history: UIMessage[] = await response.json();
createRoot(document.getElementById('root') as HTMLElement).render(h(Chat, { history }));
