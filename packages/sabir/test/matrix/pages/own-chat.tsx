/** Nothing of Sabir is in it. The page makes the `Chat`, so that `useChat` does not wrap its transport. */
import type { UIMessage } from 'ai';
import { loadHistory, mount } from './chat-view.ts';
import { PlainScreen } from './plain-screen.tsx';
import { stockTransport, useChatView } from './use-chat-view.ts';

const transport = stockTransport();

const history = await loadHistory<UIMessage>();

mount(() => <PlainScreen {...useChatView(transport, { history, hasOwnChat: true })} />);
