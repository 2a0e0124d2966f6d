import { createSubscriber } from 'svelte/reactivity';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import { type ChatState, ChatStream, type ChatStreamOptions } from '../chat-stream.ts';

/**
 * A chat on a server that speaks the contract, for Svelte 5. Its state is reactive where it is read: in markup, in
 * `$derived` and in `$effect`. It follows an answer to its end, also while nothing reads it: `detach` stops watching, `abort` stops
 * the answer.
 *
 * @example
 * const chat = createChatStream({ api: '/api/chat' });
 * // {#each chat.messages as message (message.id)} … {/each}
 * // <button onclick={() => chat.sendMessage(text)}>Send</button>
 */
export function createChatStream<M extends MessageLike = UIMessage>(
  options: ChatStreamOptions<M>,
): ChatStream<M> & ChatState<M> {
  const chat = new ChatStream<M>(options);
  const track = createSubscriber((update) => chat.subscribe(update));
  const read = <Key extends keyof ChatState<M>>(key: Key) => ({
    enumerable: true,
    get(): ChatState<M>[Key] {
      track();
      return chat.getSnapshot()[key];
    },
  });
  return Object.defineProperties(chat, {
    messages: read('messages'),
    status: read('status'),
    runStatus: read('runStatus'),
    meta: read('meta'),
    error: read('error'),
  }) as ChatStream<M> & ChatState<M>;
}
