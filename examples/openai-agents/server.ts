/**
 * An agent of the OpenAI Agents SDK behind the gateway, on both wires: `useChat` at
 * /api/sessions/:id/chat, `useChatStream` at /api/chat. Deleting a file asks first.
 *
 *     node openai-agents/server.ts
 */
import { Agent, RunState, run, tool } from '@openai/agents';
import { asUpstream, createChatGateway } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { agentsSdkAgent } from 'sabir/openai-agents';
import { z } from 'zod';
import { chooseModel } from './choose-model.ts';

const deleteFile = tool({
  name: 'delete_file',
  description: 'Deletes a file for good.',
  parameters: z.object({ path: z.string() }),
  needsApproval: true,
  execute: async ({ path }) => `${path} is gone.`, // it only says so
});
const agent = new Agent({ name: 'Clerk', tools: [deleteFile], ...chooseModel() });

const gateway = createChatGateway({
  upstream: asUpstream(agentsSdkAgent({ agent, run, RunState })),
  authenticate: () => ({ id: 'anybody' }), // jwtAuth({ secret }) lets in whoever has a token
  access: () => 'owner',
  routes: { chat: {} },
});

const server = await serve({ fetch: gateway.fetch, port: Number(process.env.PORT ?? 3005) });
console.log(`Listening on http://localhost:${server.port}`);
