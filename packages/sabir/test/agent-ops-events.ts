/** Agent Ops events, in short, and what a translator makes of them. */
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { AgentOpsOptions, AgentOpsUIMessage } from '../src/sources/agent-ops/index.ts';
import { createAgentOpsTranslator } from '../src/sources/agent-ops/index.ts';
import { readJsonl } from './jsonl.ts';

export const AGENT_OPS_FIXTURES = new URL('fixtures/agent-ops/', import.meta.url);

export const WEB = { channelType: 'web', channelId: 'default' };

export const create = (turnId = 't', more: object = {}) => ({
  type: 'message.create',
  turnId,
  ...more,
});
export const delta = (text: string, turnId: string | null = 't') => ({
  type: 'message.part.text-delta',
  turnId,
  delta: text,
});
export const tool = (status: string, more: object = {}) => ({
  type: 'message.part.tool-update',
  turnId: 't',
  callId: 'c',
  toolName: 'bash',
  status,
  ...more,
});
export const finalize = (reason = 'end_turn', more: object = {}) => ({
  type: 'message.finalize',
  turnId: 't',
  reason,
  ...more,
});
export const agentStatus = (status: string, more: object = {}) => ({
  type: 'agentStatus',
  status,
  ...more,
});
export const sessionStatus = (data: object) => ({ type: 'status', data });
export const message = (id = 't', more: object = {}) => ({
  type: 'message',
  data: { id, role: 'assistant', content: '', parts: [], ...more },
});
export const userMessage = (id: string) => ({
  type: 'message',
  data: { id, role: 'user', content: 'hi' },
});
export const chunk = (content: string, messageId = 't') => ({ type: 'chunk', content, messageId });
export const updated = (parts: unknown, id = 't') => ({
  type: 'message.updated',
  data: { id, role: 'assistant', content: '', parts },
});
export const text = (words: string) => ({ type: 'text', text: words, streaming: false });
export const call = (status: string, more: object = {}) => ({
  type: 'tool-call',
  callId: 'c',
  toolName: 'bash',
  status,
  ...more,
});
export const FINISH = { type: 'finish', reason: 'end_turn' };
export const question = (more: object = {}) => ({
  type: 'question',
  questionId: 'q',
  text: 'Deploy?',
  ...more,
});

export function translate(events: unknown[], options: AgentOpsOptions = {}) {
  const translator = createAgentOpsTranslator(options);
  const chunks = events.flatMap((event) => translator.push(event));
  return { translator, chunks };
}

export function fold(events: unknown[], options?: AgentOpsOptions): AgentOpsUIMessage {
  const { chunks, translator } = translate(events, options);
  return foldChunks([...chunks, ...translator.end()]) as AgentOpsUIMessage;
}

export const types = (chunks: Chunk[]) => chunks.map(({ type }) => type);
export const recorded = (name: string) =>
  readJsonl(new URL(`recorded-${name}.events.jsonl`, AGENT_OPS_FIXTURES));
