/** A gateway behind a real socket, and AG-UI's own client in front of it. */
import type { Chunk } from '../src/core/chunks.ts';
import { asUpstream, type ChatGatewayOptions, type Upstream } from '../src/gateway/index.ts';
import { createHttpAgent } from './ag-ui-client.ts';
import { listen } from './approval-agent.ts';
import { createTestGateway, createUser } from './gateway-client.ts';

export const talker = asUpstream(async function* ({ text }): AsyncGenerator<Chunk> {
  yield { type: 'start-step' };
  yield { type: 'reasoning-start', id: 'r' };
  yield { type: 'reasoning-delta', id: 'r', delta: 'Let me look.' };
  yield { type: 'reasoning-end', id: 'r' };
  yield { type: 'text-start', id: '1' };
  yield { type: 'text-delta', id: '1', delta: `Looking for ${text}. ` };
  yield { type: 'text-end', id: '1' };
  const call = { toolCallId: 'c', toolName: 'search' };
  yield { type: 'tool-input-start', ...call };
  yield { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q":' };
  yield { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '"ships"}' };
  yield { type: 'tool-input-available', ...call, input: { q: 'ships' } };
  yield { type: 'tool-output-available', toolCallId: 'c', output: { found: 3 } };
  yield { type: 'source-url', sourceId: 's', url: 'https://a.example', title: 'A' };
  yield { type: 'finish-step' };
  yield { type: 'start-step' };
  yield { type: 'text-start', id: '2' };
  yield { type: 'text-delta', id: '2', delta: 'There are three.' };
});

/** An unmodified `HttpAgent` of carl's, on a gateway behind a real socket. */
export async function connectAgUi(
  upstream: Upstream | undefined,
  options: Partial<ChatGatewayOptions> = {},
) {
  const gateway = createTestGateway(upstream, options);
  const url = await listen(gateway);
  const as = (
    user: string,
    initialMessages = [{ id: 'u1', role: 'user' as const, content: 'hi' }],
  ) =>
    createHttpAgent({
      url: `${url}/api/sessions/s1/ag-ui`,
      headers: { authorization: `Bearer ${user}` },
      threadId: 'c1',
      initialMessages,
    });
  return { gateway, url, as, ...as('carl'), carl: createUser(gateway, 'carl') };
}

export const runInput = (over: object = {}) => ({
  threadId: 'c1',
  runId: 'r1',
  protocolVersion: '1.0',
  messages: [{ id: 'u1', role: 'user', content: 'hi' }],
  ...over,
});
