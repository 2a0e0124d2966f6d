// @ts-check
import { ChatStream } from 'sabir/client';

/** @template {Element} T @param {string} selector @param {new () => T} type */
function find(selector, type) {
  const found = document.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`There is no ${selector}.`);
  return found;
}

const main = find('main', HTMLElement);
const form = find('form', HTMLFormElement);
const stop = find('#stop', HTMLButtonElement);
const alert = find('[role="alert"]', HTMLElement);

// The chat's name is in the address: a reload comes back to it, and takes up what runs.
const known = location.hash.slice(1);
const chat = new ChatStream({ api: '/api/chat', ...(known && { id: known }) });
location.hash = chat.id;

/** @type {Map<string, HTMLElement>} */
const rows = new Map();

chat.subscribe(() => {
  const { messages, status, error } = chat.getSnapshot();
  for (const { id, role, parts } of messages) {
    const row = rows.get(id) ?? document.createElement('p');
    if (!rows.has(id)) main.append(row);
    rows.set(id, row);
    row.dataset.role = role;
    row.textContent = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  }
  stop.hidden = status !== 'streaming';
  alert.hidden = !error;
  alert.textContent = error?.message ?? '';
});

form.addEventListener('submit', (event) => {
  event.preventDefault();
  void chat.sendMessage(String(new FormData(form).get('text')));
  form.reset();
});
stop.addEventListener('click', () => void chat.abort());
void chat.resume();
