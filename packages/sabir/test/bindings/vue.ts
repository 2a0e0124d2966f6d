import { createApp, h, ref } from 'vue';
import { useChatStream } from '../../src/clients/vue/index.ts';
import { CHAT, OTHER_CHAT, textOf } from './page-parts.ts';

const id = ref(CHAT);

const Chat = {
  setup() {
    // biome-ignore lint/correctness/useHookAtTopLevel: Vue calls composables in `setup`
    const { messages, status, chat } = useChatStream(() => ({
      api: '/api/chat',
      id: id.value,
      resume: true,
    }));
    return () => [
      messages.value.map((message) =>
        h('p', { key: message.id, 'data-role': message.role }, textOf(message)),
      ),
      h('output', status.value),
      h('button', { onClick: () => chat.value.sendMessage('ahoy') }, 'Send'),
      h('button', { onClick: () => chat.value.abort() }, 'Stop'),
    ];
  },
};

const isShown = ref(true);
createApp({
  setup: () => () => [
    isShown.value ? h(Chat) : 'closed',
    h('button', { onClick: () => (isShown.value = false) }, 'Close'),
    h('button', { onClick: () => (isShown.value = true) }, 'Open'),
    h('button', { onClick: () => (id.value = OTHER_CHAT) }, 'Other chat'),
  ],
}).mount('#root');
