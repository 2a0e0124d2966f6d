/**
 * One session on the page. What was said comes from the session's history, what runs from the
 * gateway's stream, and the session's WebSocket only says when there is something new to fetch.
 */
import { ChatStream } from '/sabir/clients/index.js';
import { createPart, make } from './parts.js';

const byId = (id) => document.getElementById(id);
const [log, alert, stop, signIn, composer] = ['log', 'alert', 'stop', 'sign-in', 'composer'].map(
  byId,
);
const rows = new Map();
/** What the socket says: the turn that runs, how many wait for it, what we may do. */
const session = { turnId: null, waiting: 0, role: '' };
/** Others have said or done something. */
let isStale = true;
let isCatchingUp = false;
let isResumed = false;
let fetching = Promise.resolve();
let sends = 0;

takeToken();
const sessionId = chooseSession();
const sessionPath = `/api/sessions/${encodeURIComponent(sessionId)}`;
const chat = new ChatStream({
  ...{ api: '/api/chat', id: sessionId, headers, fetch: ask },
  onError: ({ status }) => status === 401 && askForToken(),
});

function ask(address, { body, ...init }) {
  // The server has what was said before; with all of it a long chat would be too large to send.
  return fetch(address, { ...init, body: body && lastOnly(body) });
}

/** Once, from behind the #, where no server sees it; then it is out of the address. */
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (token === null) return;
  sessionStorage.setItem('token', token);
  history.replaceState(null, '', location.pathname + location.search);
}

/** In the address, so that a reload goes on and a second window follows. */
function chooseSession() {
  const url = new URL(location.href);
  const known = url.searchParams.get('session');
  if (known) return known;
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const made = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  url.searchParams.set('session', made);
  history.replaceState(null, '', url);
  return made;
}

function headers() {
  const token = sessionStorage.getItem('token');
  return token ? { authorization: `Bearer ${token}` } : {};
}

function lastOnly(body) {
  const { messages, ...rest } = JSON.parse(body);
  return JSON.stringify(messages ? { ...rest, messages: messages.slice(-1) } : rest);
}

function askForToken() {
  signIn.hidden = false;
  composer.hidden = true;
}

const isBusy = () => ['submitted', 'streaming'].includes(chat.getSnapshot().status);

function render() {
  const { messages, error, runStatus } = chat.getSnapshot();
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const shown = messages.map(renderMessage);
  for (const [id, { element }] of rows) {
    if (shown.includes(element)) continue;
    element.remove();
    rows.delete(id);
  }
  shown.forEach((element, index) => {
    const there = log.children[index] ?? null;
    if (there !== element) log.insertBefore(element, there);
  });
  // Read out when it is complete, not at every word.
  log.setAttribute('aria-busy', String(isBusy()));
  stop.hidden = !isBusy() || session.role === 'viewer';
  const doing = [runStatus?.state.replace('_', ' ') ?? 'asking', runStatus?.message]
    .filter(Boolean)
    .join(': ');
  const waiting = session.waiting > 0 && `${session.waiting} in the queue`;
  byId('status').textContent = [isBusy() && doing, waiting].filter(Boolean).join(' · ');
  complain(error?.message);
  if (isAtEnd) log.scrollTop = log.scrollHeight;
}

function complain(words = '') {
  alert.textContent = words;
  alert.hidden = words === '';
}

function renderMessage({ id, role, parts, metadata }) {
  const row = rows.get(id) ?? createRow(id, role);
  parts.forEach((part, index) => {
    let known = row.parts[index];
    if (known?.type !== part.type) {
      known?.element.remove();
      known = { type: part.type, ...createPart(part, answer) };
      row.element.insertBefore(known.element, row.parts[index + 1]?.element ?? row.note);
      row.parts[index] = known;
    }
    // What has not changed is the same object.
    if (known.part !== part) known.show(part);
    known.part = part;
  });
  for (const { element } of row.parts.splice(parts.length)) element.remove();
  const { outcome = 'finished' } = metadata ?? {};
  row.note.textContent = outcome === 'finished' ? '' : `(${outcome})`;
  row.note.hidden = outcome === 'finished';
  return row.element;
}

function createRow(id, role) {
  const author = make('span', { className: 'unseen' }, role === 'user' ? 'Question: ' : 'Answer: ');
  const note = make('p', { className: 'note' });
  const element = make('article', {}, author, note);
  element.dataset.role = role;
  rows.set(id, { element, note, parts: [] });
  return rows.get(id);
}

function answer(questionId, words) {
  chat.answer({ questionId, answer: words }).catch(({ message }) => complain(message));
}

/** Brings what others have said and done; not while an answer comes, which would be cut. */
async function catchUp() {
  if (isCatchingUp) return;
  isCatchingUp = true;
  while (isStale && sends === 0) {
    isStale = false;
    fetching = loadHistory();
    await fetching;
    // Not for nothing: it would take the last error from the screen.
    if (session.turnId || !isResumed) await chat.resume();
    isResumed = true;
  }
  isCatchingUp = false;
}

async function loadHistory() {
  try {
    const response = await fetch(`${sessionPath}/messages`, { headers: headers() });
    if (response.status === 401) askForToken();
    else if (response.ok) chat.setMessages(await response.json());
  } catch {
    // No network: the socket says so when there is one again.
  }
}

async function send(text) {
  sends++;
  // What is sent must not be missing from a history that is on its way.
  await fetching;
  await chat.sendMessage(text);
  sends--;
  await catchUp();
}

function listen() {
  const url = new URL(`${sessionPath}/ws?role=client&dialect=v2&messages=0`, location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const token = sessionStorage.getItem('token');
  const socket = new WebSocket(url, token ? ['sabir', `bearer.${token}`] : ['sabir']);
  socket.addEventListener('message', ({ data }) => hear(JSON.parse(data)));
  socket.addEventListener('close', () => setTimeout(listen, 2_000));
}

function hear({ type, data, turnId, connectedUsers = data?.connectedUsers }) {
  if (type === 'init') {
    session.role = data.role;
    session.turnId = data.turn?.turnId ?? null;
    signIn.hidden = true;
    composer.hidden = data.role === 'viewer';
  }
  if (type === 'message.create') session.turnId = turnId;
  if (type === 'message.finalize') session.turnId = null;
  if (['init', 'message.create', 'message.finalize'].includes(type)) isStale = true;
  if (data?.queue) {
    session.waiting = data.queue.length;
    render();
  }
  if (connectedUsers) {
    const names = connectedUsers.map(({ id, name }) => name ?? id).join(', ');
    byId('presence').textContent = session.role === 'viewer' ? `${names} · you may watch` : names;
  }
  void catchUp();
}

chat.subscribe(render);
composer.addEventListener('submit', (event) => {
  event.preventDefault();
  void send(byId('text').value);
  composer.reset();
});
byId('text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
});
stop.addEventListener('click', () => void chat.abort());
signIn.addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', byId('token').value);
  location.reload();
});

// Also where something in between does not let the socket through.
void catchUp();
listen();
