export type {
  Agent,
  AgentAnswer,
  AgentChunks,
  AgentFunction,
  AgentPrompt,
  AgentQuestion,
  AgentStart,
  QuestionOption,
  SessionEvent,
} from '../turns/agent.ts';
export type { ClientInfo } from './clients.ts';
export { memorySessionStore } from './memory-store.ts';
export {
  type Clock,
  DEFAULT_LIMITS,
  type SessionAgentOptions,
  type SessionLimits,
  type SessionRole,
  type SessionSocket,
  type SessionTiming,
  type SocketEvents,
} from './options.ts';
export type {
  ClientInit,
  ClientMessage,
  RunnerCommand,
  RunnerHello,
  TurnEvent,
} from './protocol.ts';
export { Runner, type RunnerOptions } from './runner.ts';
export { type ScriptedAgentOptions, scriptedAgent } from './scripted-agent.ts';
export { SessionAgent } from './session-agent.ts';
export type {
  Participant,
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredQuestion,
  StoredTurn,
} from './storage.ts';
