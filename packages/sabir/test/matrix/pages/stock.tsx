/** Nothing of Sabir is in it. */
import type { UIMessage } from 'ai';
import { loadHistory, mount } from './chat-view.ts';
import { PlainScreen } from './plain-screen.tsx';
import { stockTransport, useChatView } from './use-chat-view.ts';

const transport = stockTransport();

const history = await loadHistory<UIMessage>();

mount(() => <PlainScreen {...useChatView(transport, { history })} />);
