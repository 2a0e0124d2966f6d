export { createChatStream } from './create-chat-stream.ts';
