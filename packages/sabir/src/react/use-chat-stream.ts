import { useEffect, useState, useSyncExternalStore } from 'react';
import { type ChatState, ChatStream, type ChatStreamOptions } from '../client/chat-stream.ts';
import type { MessageLike, UIMessage } from '../message.ts';

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
  >;

/** What a component shows. */
type Held = {
  key: string;
  chat: ChatStream;
  /** What a server makes of the same options: others may have gone on since. */
  first: ChatState;
};

/** Those with an id, so that all who show the same chat see the same. */
const shared = new Map<string, ChatStream>();
/** A render that never comes to the screen does not say so: what it made is forgotten after this. */
const ABANDONED_MS = 10_000;

function enter(options: ChatStreamOptions, key: string): Held {
  const made = new ChatStream(options);
  const chat = shared.get(key) ?? made;
  // A server renders for everybody: what one sees there is nobody else's.
  if (options.id && globalThis.window) {
    shared.set(key, chat);
    setTimeout(forget, ABANDONED_MS, key, chat);
  }
  return { key, chat, first: made.getSnapshot() };
}

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
  const key = `${api}\n${id ?? ''}`;
  // State, not a ref: a render that is given up must not change what is on the screen.
  let [held, hold] = useState(() => enter(options as ChatStreamOptions, key));
  if (held.key !== key) {
    held = enter(options as ChatStreamOptions, key);
    hold(held);
  }
  const { first } = held;
  const chat = held.chat as unknown as ChatStream<M>;
  const state = useSyncExternalStore(
    chat.subscribe,
    chat.getSnapshot,
    () => first as ChatState<never> as ChatState<M>,
  );
  useEffect(() => chat.configure(options));
  useEffect(() => {
    const other = shared.get(key);
    // While this one was hidden, another has come.
    if (other?.isWatched() && other !== held.chat) return hold({ key, chat: other, first });
    if (id) shared.set(key, held.chat);
    if (resume) void chat.resume();
    // Strict mode leaves and comes back at once.
    return () => void setTimeout(forget, 0, key, chat);
  }, [chat, held, first, id, key, resume]);
  return { ...chat, ...state };
}
