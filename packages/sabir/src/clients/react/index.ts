export { type UseChatStream, type UseChatStreamOptions, useChatStream } from './use-chat-stream.ts';
export { type FollowingChat, useFollow } from './use-follow.ts';
export { type UseSession, useSession } from './use-session.ts';
