export {
  type ChatCall,
  type ChatFinish,
  type ChatState,
  type ChatStatus,
  ChatStream,
  type ChatStreamOptions,
} from './chat-stream.ts';
export { ContractChatTransport } from './contract-chat-transport.ts';
export type { AnswerResult, ChatRequestError } from './http.ts';
export {
  SabirChatTransport,
  type SabirChatTransportOptions,
} from './sabir-chat-transport.ts';
export type { Backoff, ReconnectEvent } from './turn-stream.ts';
export type { UserInput } from './user-message.ts';
