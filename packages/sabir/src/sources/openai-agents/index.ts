export { type Decision, toDecision } from '../../core/decision.ts';
export {
  type AgentsSdkAgent,
  type AgentsSdkAgentOptions,
  agentsSdkAgent,
  type PendingRun,
  type PendingRuns,
} from './agent.ts';
export type {
  ApprovalEvent,
  ApprovalRequest,
  OpenAIAgentsDataTypes,
  OpenAIAgentsOptions,
  OpenAIAgentsUIMessage,
  QuestionTerms,
  RunItem,
  RunStreamEvent,
} from './events.ts';
export { applyDecisions } from './interrupted-state.ts';
export { type AgentInputItem, toAgentInput } from './to-agent-input.ts';
export { type StreamedRun, toChunks } from './to-chunks.ts';
export { createOpenAIAgentsTranslator, type OpenAIAgentsTranslator } from './translate.ts';
