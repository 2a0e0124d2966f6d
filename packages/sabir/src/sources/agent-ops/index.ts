export type {
  AgentOpsDataTypes,
  AgentOpsEvent,
  AgentOpsQuestion,
  AgentOpsUIMessage,
  AgentStatus,
  MessagePart,
  SessionMessage,
  SessionStatus,
  ToolCallState,
} from './events.ts';
export type { AgentOpsOptions } from './options.ts';
export { type AgentOpsTranslator, createAgentOpsTranslator } from './translate.ts';
export { type AgentOpsUpstreamOptions, agentOpsUpstream } from './upstream.ts';
