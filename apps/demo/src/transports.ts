import { DefaultChatTransport } from 'ai';
import { OpenHarnessChatTransport } from 'sabir/open-harness';
import { createDemoFlow } from '../flow/demo-flow.ts';
import { toFlowInput } from '../flow/flow-input.ts';
import { createScriptedModel } from '../flow/scripted-model.ts';
import type { ChatMessage } from './chat-message.ts';

export type Place = 'server' | 'tab';

/** `?speed=8` plays the script faster in this tab; the server has its own setting. */
const speed = Math.min(
  Math.max(Number(new URLSearchParams(location.search).get('speed')) || 1, 0.1),
  100,
);
const model = createScriptedModel({ speed });

/** The same flow in two places: behind a route, and right here. `useChat` cannot tell them apart. */
export const TRANSPORTS = {
  server: new DefaultChatTransport<ChatMessage>({ api: '/api/flow' }),
  tab: new OpenHarnessChatTransport<ChatMessage>(() => createDemoFlow({ model, speed }), {
    sendFlowMetadata: true,
    toInput: toFlowInput,
  }),
};
