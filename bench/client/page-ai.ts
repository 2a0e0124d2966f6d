import { useChat } from 'ai-sdk-react-v7';
import { params, startPage } from './page.ts';

const throttle = Number(params.get('throttle')) || undefined;

// Its own transport, on the address it asks unless told otherwise.
startPage(() => {
  const { messages, status, sendMessage } = useChat({ ...(throttle && { throttle }) });
  return { messages, status, ask: () => sendMessage({ text: 'go' }) };
});
