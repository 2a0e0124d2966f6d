export { type UseChatStream, type UseChatStreamOptions, useChatStream } from './use-chat-stream.ts';
