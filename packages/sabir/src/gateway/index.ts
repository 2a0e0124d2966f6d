export { type Decision, toDecision } from '../core/decision.ts';
export { createMetricRegistry, type LimitUse, type MetricRegistry } from '../core/metrics.ts';
export type { AnswerBy, Role } from '../core/roles.ts';
export { type AgentUpstreamOptions, asUpstream } from '../sources/ai-sdk/upstream.ts';
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
  SteeringMessage,
} from '../turns/agent.ts';
export type {
  Answer,
  BeginTurn,
  LoggedChunk,
  Steer,
  Stop,
  TurnCommand,
  TurnInfo,
  TurnLog,
  TurnWriter,
} from '../turns/log.ts';
export { type MemoryTurnLogOptions, memoryTurnLog } from '../turns/memory.ts';
export type {
  Attachment,
  Prompt,
  TurnSink,
  Upstream,
  UpstreamSession,
  UpstreamTurn,
  User,
  WaitingChat,
  WaitingTurn,
} from '../turns/upstream.ts';
export { type SessionRecord, sessionAccess } from './access.ts';
export type { ChatSocket, ChatSocketEvents } from './chat-socket.ts';
export type { ChatUpgrade } from './chat-sockets.ts';
export { type ContractChat, contractChatOf } from './contract-chat.ts';
export type { Cors } from './cors.ts';
export { type ChatGateway, createChatGateway } from './gateway.ts';
export { type JwtAuthOptions, jwtAuth } from './jwt-auth.ts';
export type {
  ChatBody,
  ChatGatewayOptions,
  ContractRoute,
  FinishedTurn,
  GatewayLimits,
  GatewayRoutes,
  GatewayTiming,
  OnboardingBody,
  RouteMeta,
} from './options.ts';
export type {
  Telemetry,
  TurnAttributes,
  TurnEnd,
  TurnEventName,
  TurnSpan,
  TurnStart,
} from './telemetry.ts';
export { type ClientInfo, V2Sockets, type V2SocketsOptions } from './v2/sockets.ts';
