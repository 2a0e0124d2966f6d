/**
 * Conversations in localStorage, one entry per chat. Bounded in every direction: the newest
 * chats, the newest messages of a chat, and a size below what browsers allow.
 */
import { type ChatMessage, settleLast } from './chat-message.ts';

/** How long each reasoning part took, by `messageId:partIndex`; the parts themselves do not say. */
export type Thoughts = Record<string, number>;
export type StoredChat = { messages: ChatMessage[]; thoughts: Thoughts };

const PREFIX = 'sabir-demo:chat:';
const LATEST = 'sabir-demo:latest';
const MAX_CHATS = 12;
const MAX_MESSAGES = 60;
const MAX_CHARACTERS = 400_000;

export function loadChat(id: string): StoredChat {
  const stored = parse(read(PREFIX + id));
  if (!stored) return { messages: [], thoughts: {} };
  return { messages: settleLast(stored.messages, 'lost'), thoughts: stored.thoughts };
}

export function saveChat(id: string, { messages, thoughts }: StoredChat): void {
  if (messages.length === 0) return;
  let kept = messages.slice(-MAX_MESSAGES);
  let json = serialize(kept, thoughts);
  while (json.length > MAX_CHARACTERS && kept.length > 2) {
    kept = kept.slice(Math.ceil(kept.length / 2));
    json = serialize(kept, thoughts);
  }
  write(PREFIX + id, json);
  write(LATEST, id);
  prune();
}

export function latestChatId(): string | undefined {
  return read(LATEST) ?? undefined;
}

function serialize(messages: ChatMessage[], thoughts: Thoughts): string {
  const ids = new Set(messages.map(({ id }) => id));
  const known = Object.entries(thoughts).filter(([key]) => ids.has(key.split(':')[0] ?? ''));
  return JSON.stringify({ savedAt: Date.now(), messages, thoughts: Object.fromEntries(known) });
}

function prune(): void {
  const chats = Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => ({ key, savedAt: parse(read(key))?.savedAt ?? 0 }))
    .sort((a, b) => b.savedAt - a.savedAt);
  for (const { key } of chats.slice(MAX_CHATS)) localStorage.removeItem(key);
}

function parse(json: string | null): (StoredChat & { savedAt: number }) | undefined {
  try {
    const value = JSON.parse(json ?? 'null');
    if (Array.isArray(value?.messages)) return { thoughts: {}, savedAt: 0, ...value };
  } catch {
    // An entry that was damaged is an entry that is not there.
  }
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    // Storage may be forbidden; the chat then lives as long as the page.
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Full or forbidden: losing the copy must not cost the person the chat on the screen.
  }
}
