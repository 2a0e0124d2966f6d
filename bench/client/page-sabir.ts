import { useChatStream } from 'sabir/react';
import { startPage } from './page.ts';

startPage(() => {
  const { messages, status, sendMessage } = useChatStream({ api: '/contract' });
  return { messages, status, ask: () => sendMessage('go') };
});
