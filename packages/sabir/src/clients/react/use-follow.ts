import { useEffect, useRef, useState } from 'react';
import type { MessageLike } from '../../core/message.ts';
import { type FollowSource, followChat } from '../follow-chat.ts';

/** As much as is needed of what `useChat` of AI SDK 5, 6 and 7 returns, or `useChatStream`. */
export type FollowingChat<M> = {
  messages: M[];
  setMessages(messages: M[]): void;
  status: string;
} & (
  | { resumeStream(): Promise<unknown>; stop(): unknown }
  | { resume(): Promise<unknown>; detach(): unknown }
);

/**
 * Shows turns that another tab, person or device began, as they come. The chat's transport has the
 * session's `fetch`; `resume: true` is not needed beside this. True once the history is on the screen.
 *
 * @example
 * const { session, fetch } = useSession({ api, id });
 * const chat = useChat({ id, transport: new SabirChatTransport({ api, fetch }) });
 * useFollow(chat, session);
 */
export function useFollow<M extends MessageLike>(
  chat: FollowingChat<M>,
  session: FollowSource,
): boolean {
  const [loaded, setLoaded] = useState<FollowSource>();
  const latest = useRef(chat);
  const listeners = useRef(new Set<() => void>());
  const { status, messages } = chat;
  useEffect(() => {
    latest.current = chat;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: both changes wake the follower
  useEffect(() => {
    for (const listener of listeners.current) listener();
  }, [status, messages]);
  useEffect(
    () =>
      followChat<M>(
        session,
        {
          getSnapshot: () => latest.current,
          setMessages(list) {
            latest.current.setMessages(list);
            // Until the next render.
            latest.current = { ...latest.current, messages: list };
          },
          resume() {
            const { current } = latest;
            return 'resumeStream' in current ? current.resumeStream() : current.resume();
          },
          detach() {
            const { current } = latest;
            return 'resumeStream' in current ? current.stop() : current.detach();
          },
          subscribe(listener) {
            listeners.current.add(listener);
            return () => listeners.current.delete(listener);
          },
        },
        () => setLoaded(session),
      ),
    [session],
  );
  return loaded === session;
}
