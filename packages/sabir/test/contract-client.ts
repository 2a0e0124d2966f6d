/** Small clients of the routes that speak the contract: real requests, events as they arrive. */

import { asUpstream, type ChatGateway, type ChatGatewayOptions } from '../src/gateway/index.ts';
import type { ContractEvent } from '../src/wires/contract/events.ts';
import {
  createAgent,
  createTestGateway,
  createUser,
  openSse,
  type SendInit,
  type SseReader,
} from './gateway-client.ts';

/** One as a client mints it. */
export const CHAT_ID = `chat_${'0123456789abcdef'.repeat(2)}`;

/** One person's way to a route of the contract; nobody's where there is no token. */
export function createContractUser(
  gateway: ChatGateway,
  token: string | undefined,
  route: 'chat' | 'onboarding' = 'chat',
) {
  const { send } = createUser(gateway, token);
  const chat = (chatId: string) => `/api/${route}/${encodeURIComponent(chatId)}`;
  return {
    send,
    post: (body: unknown, init?: SendInit) => send('POST', `/api/${route}`, init, body),
    resume: (chatId = CHAT_ID, init?: SendInit) => send('GET', `${chat(chatId)}/stream`, init),
    resumeAt: (cursor: string, chatId = CHAT_ID, init: SendInit = {}) =>
      send('GET', `${chat(chatId)}/stream`, {
        ...init,
        headers: { ...init.headers, 'last-event-id': cursor },
      }),
    messages: (chatId = CHAT_ID) => send('GET', `${chat(chatId)}/messages`),
    stop: (chatId = CHAT_ID) => send('POST', `${chat(chatId)}/stop`),
    answer: (questionId: string, answer: unknown, chatId = CHAT_ID) =>
      send('POST', `${chat(chatId)}/answer`, {}, { questionId, answer }),
  };
}

/** What an application posts: one message, in a chat of its own making. */
export function contractBody(text: string, more: object = {}) {
  return {
    messages: [{ id: `u-${text}`, role: 'user', parts: [{ type: 'text', text }] }],
    sessionId: CHAT_ID,
    ...more,
  };
}

/** An event, and the cursor it came with. */
export type ReadEvent = ContractEvent & { id?: string };
export type EventReader = SseReader & { events(): ReadEvent[]; types(): string[]; said(): string };

export function openEvents(response: Response): EventReader {
  const sse = openSse(response);
  const events = () =>
    sse.frames.map(
      ({ event, data, id }) =>
        ({ type: event, data: JSON.parse(data), ...(id !== undefined && { id }) }) as ReadEvent,
    );
  return {
    ...sse,
    events,
    types: () => events().map(({ type }) => type),
    said: () =>
      events().reduce((all, e) => all + (e.type === 'message.delta' ? e.data.delta : ''), ''),
  };
}

/** All events of a response that ends by itself. */
export async function readEvents(response: Response): Promise<ReadEvent[]> {
  const reader = openEvents(response);
  await reader.ended;
  return reader.events();
}

/** Says words, uses a tool that answers, and says words again. */
export const talker = asUpstream(async function* () {
  yield { type: 'start-step' };
  yield { type: 'text-start', id: 'a' };
  yield { type: 'text-delta', id: 'a', delta: 'Let me ' };
  yield { type: 'text-delta', id: 'a', delta: 'look.' };
  yield { type: 'text-end', id: 'a' };
  const call = { toolCallId: 't', toolName: 'search' };
  yield { type: 'tool-input-available', ...call, input: { q: 'brick' } };
  yield { type: 'tool-output-available', toolCallId: 't', output: ['one'] };
  yield { type: 'source-url', sourceId: 's', url: 'https://example.com' };
  yield { type: 'finish-step' };
  yield { type: 'start-step' };
  yield { type: 'text-start', id: 'b' };
  yield { type: 'text-delta', id: 'b', delta: 'Found one.' };
  yield { type: 'text-end', id: 'b' };
  yield { type: 'finish-step' };
});

/** A chat in which an answer is being written; `carl` reads it. */
export async function startContractTurn(options: Partial<ChatGatewayOptions> = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, options);
  const carl = createContractUser(gateway, 'carl');
  const first = openEvents(await carl.post(contractBody('hi')));
  const run = await agent.run();
  return { agent, gateway, carl, first, run };
}
