/** Pages of stock clients in session `s1` of a gateway: opened again, such a page is reloaded. */
import type { UIMessage } from '../src/core/message.ts';
import type { ChatGateway } from '../src/gateway/index.ts';
import { ORIGIN } from './gateway-client.ts';
import { type ClientName, createClient, httpTransport } from './real-clients.ts';

export { CLIENTS } from './real-clients.ts';

/** The text of each message. */
export const saysOf = (messages: UIMessage[]) =>
  messages.map(({ parts }) =>
    parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
  );

/** The page has loaded the history, and has not resumed yet. */
export async function openPage(
  name: ClientName,
  gateway: ChatGateway,
  { as = 'carl', ...init }: { as?: string; onFinish?: () => void } = {},
) {
  const headers = { authorization: `Bearer ${as}` };
  const session = `${ORIGIN}/api/sessions/s1`;
  const transport = await httpTransport(name, (url, init) => {
    const path = url.replace('http://test.invalid/api/chat', `${session}/chat`);
    const given = { ...(init.headers as Record<string, string>), ...headers };
    return gateway.fetch(new Request(path, { ...init, headers: given }));
  });
  const history = async (): Promise<UIMessage[]> =>
    (await gateway.fetch(new Request(`${session}/messages`, { headers }))).json();
  const { chat } = await createClient(name, transport, {
    generateId: () => crypto.randomUUID(),
    ...init,
  });
  chat.messages = await history();
  return {
    chat,
    history,
    shown: () => saysOf(chat.messages),
    ids: () => chat.messages.map(({ id }) => id),
  };
}
