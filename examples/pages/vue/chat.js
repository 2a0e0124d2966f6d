// @ts-check
import { ChatStream } from 'sabir/client';
import { createApp, onScopeDispose, ref, shallowRef } from 'vue';

/**
 * A chat as Vue likes it: messages that did not change are the same objects, so that nothing needs
 * to be watched deeply.
 *
 * @param {ConstructorParameters<typeof ChatStream>[0]} options
 */
export function openChat(options) {
  const chat = new ChatStream(options);
  const state = shallowRef(chat.getSnapshot());
  const unsubscribe = chat.subscribe(() => {
    state.value = chat.getSnapshot();
  });
  onScopeDispose(() => {
    unsubscribe();
    chat.detach();
  });
  return { chat, state };
}

const template = `
  <main aria-live="polite">
    <p v-for="message in state.messages" :key="message.id" :data-role="message.role">
      {{ textOf(message) }}
    </p>
  </main>
  <form @submit.prevent="send">
    <input v-model="text" aria-label="Message" autocomplete="off" required />
    <button type="submit">Send</button>
    <button v-if="state.status === 'streaming'" type="button" @click="chat.abort">Stop</button>
  </form>
  <p v-if="state.error" role="alert">{{ state.error.message }}</p>
`;

createApp({
  template,
  setup() {
    const { chat, state } = openChat({ api: '/api/chat' });
    const text = ref('');
    /** @param {{ parts: ReadonlyArray<{ type: string }> }} message */
    const textOf = ({ parts }) =>
      parts.map((part) => ('text' in part && part.type === 'text' ? part.text : '')).join('');
    const send = () => {
      void chat.sendMessage(text.value);
      text.value = '';
    };
    return { chat, state, text, textOf, send };
  },
}).mount('#app');
