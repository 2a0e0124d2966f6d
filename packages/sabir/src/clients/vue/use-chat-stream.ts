import {
  type ComputedRef,
  computed,
  type MaybeRefOrGetter,
  onScopeDispose,
  type ShallowRef,
  shallowRef,
  toValue,
  watch,
} from 'vue';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import { type ChatState, ChatStream, type ChatStreamOptions } from '../chat-stream.ts';

export type UseChatStreamOptions<M extends MessageLike = UIMessage> = ChatStreamOptions<M> & {
  /** Resumes a running answer when the component is set up in a page; a server that renders skips it. @default false */
  resume?: boolean;
};

/** The state as refs, and the chat for what can be done in it. */
export type UseChatStream<M extends MessageLike = UIMessage> = {
  [Key in keyof ChatState<M>]: ComputedRef<ChatState<M>[Key]>;
} & {
  /** `chat.value.sendMessage`, `abort`, `regenerate`, `answer` and the other actions. */
  chat: Readonly<ShallowRef<ChatStream<M>>>;
};

/**
 * A chat on a server that speaks the contract, for Vue 3. Options may be a ref or a getter: another `api` or `id`
 * opens another chat, other options take effect in the chat that is open. A scope that ends stops watching;
 * `abort` stops the answer.
 *
 * @example
 * const { messages, status, chat } = useChatStream({ api: '/api/chat' });
 * const send = (text: string) => chat.value.sendMessage(text);
 */
export function useChatStream<M extends MessageLike = UIMessage>(
  options: MaybeRefOrGetter<UseChatStreamOptions<M>>,
): UseChatStream<M> {
  const chat = shallowRef() as ShallowRef<ChatStream<M>>;
  const state = shallowRef() as ShallowRef<ChatState<M>>;
  let leave: (() => void) | undefined;

  function open(given: UseChatStreamOptions<M>): void {
    leave?.();
    const opened = new ChatStream<M>(given);
    const show = () => {
      state.value = opened.getSnapshot();
    };
    const unsubscribe = opened.subscribe(show);
    leave = () => {
      unsubscribe();
      opened.detach();
    };
    chat.value = opened;
    show();
    // A server that renders has no cookies of the user, and does not dispose the scope, which ends the request.
    if (given.resume && globalThis.window) void opened.resume();
  }

  watch(
    () => toValue(options),
    (given, before) => {
      const isSame = before?.api === given.api && before.id === given.id;
      if (isSame) chat.value.configure(given);
      else open(given);
    },
    { immediate: true, flush: 'sync' },
  );
  onScopeDispose(() => leave?.());
  return {
    chat,
    messages: computed(() => state.value.messages),
    status: computed(() => state.value.status),
    runStatus: computed(() => state.value.runStatus),
    meta: computed(() => state.value.meta),
    error: computed(() => state.value.error),
  };
}
