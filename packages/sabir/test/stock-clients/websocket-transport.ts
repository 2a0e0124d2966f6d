import { WebSocketChatTransport } from 'ai-v7';

const params = new URLSearchParams(location.search);

export const transport = new WebSocketChatTransport({
  url: `/api/sessions/${params.get('session')}/chat`,
  protocols: ['sabir', `bearer.${params.get('token')}`],
});
