import type { UIMessage } from 'ai';
import { createRoot } from 'react-dom/client';
import { Chat } from './chat.tsx';
import './style.css';

// The chat is part of the address: a reload and a second window open the same one.
const address = new URL(location.href);
const chatId = address.searchParams.get('chat') ?? crypto.randomUUID();
address.searchParams.set('chat', chatId);
history.replaceState(null, '', address);

/** Undefined if the server did not answer with the history. */
async function loadMessages(): Promise<UIMessage[] | undefined> {
  const response = await fetch(`/api/sessions/${chatId}/messages`).catch(() => undefined);
  return response?.ok ? response.json() : undefined;
}

const messages = await loadMessages();
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    messages ? (
      <Chat chatId={chatId} messages={messages} />
    ) : (
      <p role="alert">The history could not be loaded. Check the server, then reload this page.</p>
    ),
  );
}
