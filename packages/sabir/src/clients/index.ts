export {
  ChatSession,
  type ChatSessionOptions,
  type OpenQuestion,
  type SessionState,
} from './chat-session.ts';
export {
  type ChatCall,
  type ChatFinish,
  type ChatState,
  type ChatStatus,
  ChatStream,
  type ChatStreamOptions,
} from './chat-stream.ts';
export { ContractChatTransport } from './contract-chat-transport.ts';
export { type FollowedChat, type FollowSource, followChat } from './follow-chat.ts';
export type { ConnectionStatus } from './follow-connection.ts';
export type { Member, Person, QueuedTurn, TurnOpening } from './follow-feed.ts';
export type { AnswerResult, ChatRequestError } from './http.ts';
export {
  SabirChatTransport,
  type SabirChatTransportOptions,
  type SteerResult,
} from './sabir-chat-transport.ts';
export type { Backoff, ReconnectEvent } from './turn-stream.ts';
export type { UserInput } from './user-message.ts';
