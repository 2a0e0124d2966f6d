/**
 * The chats that this browser has opened, newest first. The server has no list for a person: a session is open to
 * everybody who has its address and may come in.
 */
export type KnownChat = { id: string; title: string };

const KEY = 'sabir:chats';
const MAX_CHATS = 100;
const MAX_TITLE = 80;
const NONE: readonly KnownChat[] = [];

const listeners = new Set<() => void>();
let known = { json: '', chats: NONE };

export function listChats(): readonly KnownChat[] {
  const json = localStorage.getItem(KEY) ?? '';
  // The same list as long as nothing has changed.
  if (json !== known.json) known = { json, chats: parse(json) };
  return known.chats;
}

/** Puts the chat on the list. One that is there keeps its place and its title. */
export function rememberChat(id: string, text: string): void {
  const chats = listChats();
  const title = text.trim().replaceAll(/\s+/g, ' ').slice(0, MAX_TITLE);
  if (!title || chats.some((chat) => chat.id === id)) return;
  save([{ id, title }, ...chats]);
}

export function forgetChat(id: string): void {
  save(listChats().filter((chat) => chat.id !== id));
}

export function subscribeToChats(listener: () => void): () => void {
  listeners.add(listener);
  // From other windows.
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}

function save(chats: readonly KnownChat[]): void {
  localStorage.setItem(KEY, JSON.stringify(chats.slice(0, MAX_CHATS)));
  for (const listener of listeners) listener();
}

function parse(json: string): readonly KnownChat[] {
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) ? value.filter(isChat) : NONE;
  } catch {
    // A damaged list is an empty one.
    return NONE;
  }
}

function isChat(value: unknown): value is KnownChat {
  const { id, title } = (value ?? {}) as Partial<KnownChat>;
  return typeof id === 'string' && typeof title === 'string';
}
