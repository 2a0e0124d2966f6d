/** Nothing of Sabir is in it. */
import type { UIMessage } from 'ai';
import { loadHistory, mount } from './chat-view.ts';
import { ElementsScreen } from './elements-screen.tsx';
import { stockTransport, useChatView } from './use-chat-view.ts';

const transport = stockTransport();

const history = await loadHistory<UIMessage>();

mount(() => <ElementsScreen {...useChatView(transport, { history })} />);
