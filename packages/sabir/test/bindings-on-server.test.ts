/** The Vue, Svelte and Solid bindings while a server renders the page: Node resolves each framework's server build. */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { createSSRApp, h } from 'vue';
import { renderToString } from 'vue/server-renderer';
import { createChatStream as createSolidChat } from '../src/clients/solid/index.ts';
import { createChatStream as createSvelteChat } from '../src/clients/svelte/index.ts';
import { useChatStream } from '../src/clients/vue/index.ts';
import type { UIMessage } from '../src/core/message.ts';

const QUESTION: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'ahoy' }] };

function makeOptions() {
  const fetch = vi.fn(() => new Promise<Response>(() => undefined));
  return { api: 'https://chat.test/api/chat', id: 'c1', initialMessages: [QUESTION], fetch };
}

describe('a binding on a server that renders the page', () => {
  it('vue: shows the history and sends no request, with `resume` too', async () => {
    const options = makeOptions();
    const app = createSSRApp({
      setup() {
        // biome-ignore lint/correctness/useHookAtTopLevel: Vue calls composables in `setup`
        const { messages } = useChatStream({ ...options, resume: true });
        return () => messages.value.map(({ id }) => h('p', id));
      },
    });
    expect(await renderToString(app)).toContain('<p>u1</p>');
    expect(options.fetch).not.toHaveBeenCalled();
  });

  it('svelte: shows the history and sends no request', async () => {
    const options = makeOptions();
    const chat = createSvelteChat(options);
    expect(chat.messages).toEqual([QUESTION]);
    await setImmediate();
    expect(options.fetch).not.toHaveBeenCalled();
  });

  it('solid: shows the history and sends no request', async () => {
    const options = makeOptions();
    const [state] = createSolidChat(options);
    expect(state.messages).toEqual([QUESTION]);
    await setImmediate();
    expect(options.fetch).not.toHaveBeenCalled();
  });
});
