// @ts-check
import { useChatStream } from 'sabir/vue';
import { createApp, ref } from 'vue';

const template = `
  <main aria-live="polite">
    <p v-for="message in messages" :key="message.id" :data-role="message.role">
      {{ textOf(message) }}
    </p>
  </main>
  <form @submit.prevent="send">
    <input v-model="text" aria-label="Message" autocomplete="off" required />
    <button type="submit">Send</button>
    <button v-if="status === 'streaming'" type="button" @click="chat.abort()">Stop</button>
  </form>
  <p v-if="error" role="alert">{{ error.message }}</p>
`;

createApp({
  template,
  setup() {
    // biome-ignore lint/correctness/useHookAtTopLevel: Vue calls composables in `setup`
    const { chat, messages, status, error } = useChatStream({ api: '/api/chat' });
    const text = ref('');
    /** @param {{ parts: ReadonlyArray<{ type: string }> }} message */
    const textOf = ({ parts }) =>
      parts.map((part) => ('text' in part && part.type === 'text' ? part.text : '')).join('');
    const send = () => {
      void chat.value.sendMessage(text.value);
      text.value = '';
    };
    return { chat, messages, status, error, text, textOf, send };
  },
}).mount('#app');
