import { type ChatTransport, DefaultChatTransport } from 'ai';
import { OpenHarnessChatTransport } from 'sabir/open-harness';
import { createDemoFlow } from '../flow/demo-flow.ts';
import { toFlowInput } from '../flow/flow-input.ts';
import { createScriptedModel } from '../flow/scripted-model.ts';
import type { ChatMessage } from './chat-message.ts';
import type { GatewayTransport } from './gateway-transport.ts';

export type Place = 'server' | 'tab' | 'gateway';

/** `?speed=8` plays the script faster in this tab; the server has its own setting. */
const speed = Math.min(
  Math.max(Number(new URLSearchParams(location.search).get('speed')) || 1, 0.1),
  100,
);
const model = createScriptedModel({ speed });

const server = new DefaultChatTransport<ChatMessage>({ api: '/api/flow' });
const tab = new OpenHarnessChatTransport<ChatMessage>(() => createDemoFlow({ model, speed }), {
  sendFlowMetadata: true,
  toInput: toFlowInput,
});

/**
 * The same flow in three places: behind a route, right here, and behind the gateway. `useChat`
 * cannot tell them apart. Only the gateway has anything to come back to.
 */
export function toTransport(place: Place, gateway: GatewayTransport): ChatTransport<ChatMessage> {
  const chosen = { server, tab, gateway }[place];
  return {
    resumeStreamIsReplay: gateway.resumeStreamIsReplay,
    sendMessages: (options) => chosen.sendMessages(options),
    reconnectToStream: (options) => gateway.reconnectToStream(options),
  };
}
