export { ChatRequestError } from './http.ts';
export {
  type AnswerResult,
  SabirChatTransport,
  type SabirChatTransportOptions,
} from './sabir-chat-transport.ts';
export type { Backoff, ReconnectEvent } from './turn-stream.ts';
