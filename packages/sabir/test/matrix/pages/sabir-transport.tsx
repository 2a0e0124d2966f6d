/** As docs/SESSIONS.md shows it. */
import type { UIMessage } from 'ai';
import { useState } from 'react';
import { SabirChatTransport } from '../../../src/clients/index.ts';
import { useFollow, useSession } from '../../../src/clients/react/index.ts';
import { api, chatId, mount, sdk, withQueue } from './chat-view.ts';
import { PlainScreen } from './plain-screen.tsx';
import { useChatView } from './use-chat-view.ts';

const aiSdk = Number.parseInt(sdk, 10) as 5 | 6 | 7;

function Chat() {
  const { session, fetch, ...room } = useSession<UIMessage>({ api, id: chatId, aiSdk });
  const [transport] = useState(() => new SabirChatTransport<UIMessage>({ api, aiSdk, fetch }));
  const { chat, ...view } = useChatView(transport, { stop: room.stop });
  useFollow(chat, session);
  return <PlainScreen {...withQueue(view, room)} />;
}

mount(Chat);
