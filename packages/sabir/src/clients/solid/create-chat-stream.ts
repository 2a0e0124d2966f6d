import { batch, onCleanup } from 'solid-js';
import { createStore, reconcile, unwrap } from 'solid-js/store';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import { type ChatState, ChatStream, type ChatStreamOptions } from '../chat-stream.ts';
import { resolve } from '../http.ts';

/** A copy without the store's proxies: they cannot be cloned, and the store changes what is behind them. */
const toPlain = <T>(value: T): T => structuredClone(unwrap(value));

/**
 * A chat on a server that speaks the contract, for Solid. The state is a store: a new word of an answer updates
 * the text node that shows it, and nothing else. A component that leaves stops watching; `abort` stops the answer.
 *
 * @example
 * const [state, chat] = createChatStream({ api: '/api/chat' });
 * // <For each={state.messages}>{(message) => …}</For>
 * // <button onClick={() => chat.sendMessage(text())}>Send</button>
 */
export function createChatStream<M extends MessageLike = UIMessage>(
  options: ChatStreamOptions<M>,
): [state: ChatState<M>, chat: ChatStream<M>] {
  const chat = new ChatStream<M>(options);
  const { sendMessage, setMessages } = chat;
  Object.assign(chat, {
    // Not the files of an input: an iterator cannot be cloned.
    sendMessage: (input, sent) =>
      sendMessage(
        typeof input === 'string'
          ? input
          : { ...input, ...toPlain({ parts: input.parts, metadata: input.metadata }) },
        sent,
      ),
    setMessages: (messages) => setMessages((list) => toPlain(resolve(messages, list))),
  } satisfies Pick<ChatStream<M>, 'sendMessage' | 'setMessages'>);
  // The initial messages.
  setMessages(toPlain);
  const [state, setState] = createStore({ ...chat.getSnapshot(), messages: [] as MessageLike[] });
  let shown: M[] = [];

  function show(): void {
    const { messages, ...rest } = chat.getSnapshot();
    batch(() => {
      setState(rest);
      setState('messages', (list) => list.slice(0, messages.length));
      for (const [i, message] of messages.entries()) {
        // A message that has not changed is the same object. The store changes its own in place, so it gets a copy.
        if (message !== shown[i])
          setState('messages', i, reconcile(structuredClone<MessageLike>(message)));
      }
    });
    shown = messages;
  }

  show();
  const unsubscribe = chat.subscribe(show);
  onCleanup(() => {
    unsubscribe();
    chat.detach();
  });
  return [state as ChatState<M>, chat];
}
