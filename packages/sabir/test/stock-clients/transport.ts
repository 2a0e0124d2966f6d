import { DefaultChatTransport } from 'ai';

const params = new URLSearchParams(location.search);

export const transport = new DefaultChatTransport({
  api: `/api/sessions/${params.get('session')}/chat`,
  headers: { authorization: `Bearer ${params.get('token')}` },
});
