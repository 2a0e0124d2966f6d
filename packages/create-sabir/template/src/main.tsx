import { createRoot } from 'react-dom/client';
import { Chat } from './chat.tsx';
import './style.css';

// The chat is part of the address: a reload and a second window open the same one.
const address = new URL(location.href);
const chatId = address.searchParams.get('chat') ?? crypto.randomUUID();
address.searchParams.set('chat', chatId);
history.replaceState(null, '', address);

const response = await fetch(`/api/sessions/${chatId}/messages`);
const messages = response.ok ? await response.json() : [];
const root = document.getElementById('root');
if (root) createRoot(root).render(<Chat chatId={chatId} messages={messages} />);
