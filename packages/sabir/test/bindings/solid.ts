/** Without Solid's compiler: this is what it would make of JSX. */
import { createComponent, createEffect, createRoot, createSignal, For } from 'solid-js';
import { insert } from 'solid-js/web';
import { createChatStream } from '../../src/clients/solid/index.ts';
import type { UIMessage } from '../../src/core/message.ts';
import { CHAT, OTHER_CHAT, textOf } from './page-parts.ts';

const [id, setId] = createSignal(CHAT);
const [isShown, setIsShown] = createSignal(true);

function button(name: string, onClick: () => void): HTMLButtonElement {
  const made = document.createElement('button');
  made.textContent = name;
  made.onclick = onClick;
  return made;
}

function showChat(place: Element, chatId: string, initialMessages?: UIMessage[]): void {
  const [state, chat] = createChatStream({ api: '/api/chat', id: chatId, initialMessages });
  void chat.resume();
  const list = document.createElement('div');
  const status = document.createElement('output');
  place.replaceChildren(
    list,
    status,
    button('Send', () => void chat.sendMessage('ahoy')),
    button('Stop', () => void chat.abort()),
    button('Remove question', () =>
      chat.setMessages(state.messages.filter(({ role }) => role !== 'user')),
    ),
    button('Reverse', () => chat.setMessages(() => state.messages.toReversed())),
    button('Quote', () => void chat.sendMessage({ parts: state.messages[0]?.parts })),
    button('Copy', () => createRoot(() => showChat(place, OTHER_CHAT, state.messages.slice()))),
  );
  insert(
    list,
    createComponent(For, {
      get each() {
        return state.messages;
      },
      children(message: UIMessage) {
        const line = document.createElement('p');
        createEffect(() => {
          line.textContent = textOf(message);
        });
        return line;
      },
    }),
  );
  createEffect(() => {
    status.textContent = state.status;
  });
}

const root = document.getElementById('root');
if (root) {
  createRoot(() => {
    const place = document.createElement('div');
    root.append(
      place,
      button('Close', () => setIsShown(false)),
      button('Open', () => setIsShown(true)),
      button('Other chat', () => setId(OTHER_CHAT)),
    );
    createEffect(() => {
      if (isShown()) showChat(place, id());
      else place.textContent = 'closed';
    });
  });
}
