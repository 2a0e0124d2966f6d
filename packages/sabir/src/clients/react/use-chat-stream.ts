import { useEffect, useState, useSyncExternalStore } from 'react';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import { type ChatState, ChatStream, type ChatStreamOptions } from '../chat-stream.ts';

export type UseChatStreamOptions<M extends MessageLike = UIMessage> = ChatStreamOptions<M> & {
  /** Takes up a running answer when the page comes up. */
  resume?: boolean;
};

export type UseChatStream<M extends MessageLike = UIMessage> = ChatState<M> &
  Pick<
    ChatStream<M>,
    | 'id'
    | 'sendMessage'
    | 'setMessages'
    | 'abort'
    | 'regenerate'
    | 'resume'
    | 'answer'
    | 'clearError'
    | 'detach'
  >;

/** What a component shows. */
type Held = [
  key: string,
  chat: ChatStream,
  /** What a server makes of the same options: others may have gone on since. */
  first: ChatState,
];

/** Those with an id, so that all who show the same chat see the same. */
const shared = new Map<string, ChatStream>();

function forget(key: string, chat: ChatStream): void {
  if (chat.isWatched()) return;
  if (shared.get(key) === chat) shared.delete(key);
  chat.detach();
}

/**
 * A chat on a server that speaks the contract. Two components with the same `api` and `id` share
 * it; where both give an option, the last to render has its way. One that leaves in mid-answer only
 * stops watching; `abort` stops the answer.
 *
 * @example
 * const { messages, status, sendMessage, abort } = useChatStream({ api: '/api/chat' });
 */
export function useChatStream<M extends MessageLike = UIMessage>(
  options: UseChatStreamOptions<M>,
): UseChatStream<M> {
  const { api, id, resume } = options;
  const key = `${api}\n${id}`;
  const enter = (): Held => {
    const made = new ChatStream(options as ChatStreamOptions);
    const chat = shared.get(key) ?? made;
    // A server renders for everybody: what one sees there is nobody else's.
    if (id && globalThis.window) {
      shared.set(key, chat);
      // A render that never comes to the screen does not say so: what it made is forgotten at last.
      setTimeout(forget, 10_000, key, chat);
    }
    return [key, chat, made.getSnapshot()];
  };
  // State, not a ref: a render that is given up must not change what is on the screen.
  let [held, hold] = useState(enter);
  if (held[0] !== key) {
    held = enter();
    hold(held);
  }
  const [, chat, first] = held;
  const state = useSyncExternalStore(chat.subscribe, chat.getSnapshot, () => first);
  useEffect(() => chat.configure(options as ChatStreamOptions));
  useEffect(() => {
    const other = shared.get(key);
    // While this one was hidden, another has come.
    if (other?.isWatched() && other !== chat) return hold([key, other, first]);
    if (id) shared.set(key, chat);
    if (resume) void chat.resume();
    // Strict mode leaves and comes back at once.
    return () => void setTimeout(forget, 0, key, chat);
  }, [chat, first, id, key, resume]);
  return { ...chat, ...state } as unknown as UseChatStream<M>;
}
