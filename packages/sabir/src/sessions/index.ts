export { type Decision, toDecision } from '../core/decision.ts';
export type {
  Agent,
  AgentAnswer,
  AgentChunks,
  AgentFunction,
  AgentPrompt,
  AgentQuestion,
  AgentStart,
  SessionEvent,
  SteeringMessage,
} from '../turns/agent.ts';
export { systemClock } from './clock.ts';
export { nameOf } from './guard.ts';
export { type GatewayInfo, historyOf, SessionLinks } from './link/session-links.ts';
export { type SessionServerUpstreamOptions, sessionServerUpstream } from './link/upstream.ts';
export { memorySessionStore } from './memory-store.ts';
export {
  type Clock,
  DEFAULT_LIMITS,
  type SessionLimits,
  type SessionNotice,
  type SessionOptions,
  type SessionRole,
  type SessionSocket,
  type SessionTiming,
  type SocketEvents,
} from './options.ts';
export { toConnectedUser } from './people.ts';
export type { QueuedPrompt } from './prompt-queue.ts';
export {
  channelKeyOf,
  isSameChannel,
  promptIdOf,
  sessionKeyOf,
  toUIMessage,
  toUserMessage,
  userMessageIdOf,
} from './records.ts';
export { isReplacing } from './replacing.ts';
export {
  checkMayWrite,
  DEFAULT_CHANNEL,
  type Done,
  type Member,
  type PromptRequest,
} from './requests.ts';
export { Runner, type RunnerOptions } from './runner.ts';
export type { RunnerCommand, RunnerFrame } from './runner-protocol.ts';
export { type ScriptedAgentOptions, scriptedAgent } from './scripted-agent.ts';
export { SETTLE_MS, Session } from './session.ts';
export {
  createSessions,
  type SessionHold,
  type Sessions,
  type SessionsOptions,
} from './sessions.ts';
export type {
  Participant,
  PromptInfo,
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredPrompt,
} from './storage.ts';
export { waitingMessagesOf } from './waiting-messages.ts';
