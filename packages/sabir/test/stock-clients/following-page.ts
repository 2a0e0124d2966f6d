/** Chats that follow: a stock `useChat`, of which nothing but its transport's `fetch` is ours, or `useChatStream`. */
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { createElement as h, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import {
  type UseSession,
  useChatStream,
  useFollow,
  useSession,
} from '../../src/clients/react/index.ts';

const params = new URLSearchParams(location.search);
const isOurs = params.get('hook') === 'useChatStream';
const api = `/api/sessions/s1/chat${isOurs ? '?wire=contract' : ''}`;
const id = params.get('id') ?? 'c1';
const headers = { authorization: `Bearer ${params.get('user')}` };

type ViewProps = {
  isLoaded: boolean;
  session: UseSession<UIMessage>;
  chat: { messages: UIMessage[]; status: string; sendMessage(input: { text: string }): unknown };
};

function View({ session, chat, isLoaded }: ViewProps) {
  const { connection, people } = session;
  const { messages, status, sendMessage } = chat;
  Object.assign(window, { send: (text: string) => void sendMessage({ text }) });
  return h(
    'main',
    {
      'data-status': status,
      'data-connection': connection,
      'data-people': people.length,
      'data-loaded': isLoaded,
    },
    h('h1', null, connection),
    messages.map(({ id, role, parts }) =>
      h(
        'p',
        { key: id },
        `${role}: ${parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}`,
      ),
    ),
  );
}

const useThisSession = () => useSession<UIMessage>({ api, id, headers, maxWaitMs: 100 });

function StockChat() {
  const session = useThisSession();
  const [transport] = useState(() => new DefaultChatTransport({ api, fetch: session.fetch }));
  const chat = useChat({ id, transport });
  const isLoaded = useFollow(chat, session.session);
  return h(View, { session, chat, isLoaded });
}

function OurChat() {
  const session = useThisSession();
  const chat = useChatStream<UIMessage>({ api, id, fetch: session.fetch });
  const isLoaded = useFollow(chat, session.session);
  return h(View, { session, chat, isLoaded });
}

createRoot(document.getElementById('root') as HTMLElement).render(
  h(StrictMode, null, h(isOurs ? OurChat : StockChat)),
);
