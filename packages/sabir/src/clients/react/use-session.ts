import { useEffect, useState, useSyncExternalStore } from 'react';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import { ChatSession, type ChatSessionOptions, type SessionState } from '../chat-session.ts';

export type UseSession<M extends MessageLike = UIMessage> = SessionState<M> &
  Pick<
    ChatSession<M>,
    'enqueue' | 'withdraw' | 'stop' | 'answer' | 'history' | 'fetch' | 'reconnect'
  > & {
    /** For `useFollow`. */
    session: ChatSession<M>;
  };

/**
 * A session as it stands: the connection, the people, the queue, the running turn and its questions;
 * and what a person can do in it. Give its `fetch` to the chat's transport.
 *
 * @example
 * const { people, queue, withdraw, fetch } = useSession({ api: '/api/sessions/s1/chat', id: 'c1' });
 */
export function useSession<M extends MessageLike = UIMessage>(
  options: ChatSessionOptions,
): UseSession<M> {
  const { api, id } = options;
  const key = `${api}\n${id}`;
  const enter = () => ({ key, session: new ChatSession<M>(options) });
  // State, not a ref: a render that is given up must not change what is on the screen.
  let [held, hold] = useState(enter);
  if (held.key !== key) {
    held = enter();
    hold(held);
  }
  const { session } = held;
  useEffect(() => session.configure(options));
  useEffect(() => session.open(), [session]);
  const state = useSyncExternalStore(session.subscribe, session.getSnapshot, session.getSnapshot);
  const { enqueue, withdraw, stop, answer, history, fetch, reconnect } = session;
  return { ...state, enqueue, withdraw, stop, answer, history, fetch, reconnect, session };
}
