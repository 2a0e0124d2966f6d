/**
 * Conversations in localStorage, one entry per chat. Bounded in every direction: the newest
 * chats, the newest messages of a chat, and a size below what browsers allow.
 */
import { randomHex, type Tab, tabOf } from './chat-id.ts';
import { type ChatMessage, settleLast } from './chat-message.ts';
import type { Place } from './transports.ts';

/** How long each reasoning part took, by `messageId:partIndex`; the parts themselves do not say. */
export type Thoughts = Record<string, number>;
export type StoredChat = {
  messages: ChatMessage[];
  thoughts: Thoughts;
  /** Where the last answer was asked for. */
  place?: Place;
};

const PREFIX = 'sabir-demo:chat:';
const LATEST: Record<Tab, string> = {
  useChat: 'sabir-demo:latest',
  useChatStream: 'sabir-demo:latest-contract',
  Session: 'sabir-demo:latest-session',
};
const BROWSER = 'sabir-demo:browser';
const MAX_CHATS = 12;
const MAX_MESSAGES = 60;
const MAX_CHARACTERS = 400_000;

export function loadChat(id: string): StoredChat {
  const stored = parse(read(PREFIX + id));
  if (!stored) return { messages: [], thoughts: {} };
  return { ...stored, messages: settleLast(stored.messages, 'lost') };
}

export function saveChat(id: string, { messages, thoughts, place }: StoredChat): void {
  if (messages.length === 0) return;
  let kept = messages.slice(-MAX_MESSAGES);
  const serialize = () => toJson(kept, thoughts, place);
  let json = serialize();
  while (json.length > MAX_CHARACTERS && kept.length > 2) {
    kept = kept.slice(Math.ceil(kept.length / 2));
    json = serialize();
  }
  write(PREFIX + id, json);
  write(LATEST[tabOf(id)], id);
  prune();
}

export function latestChatId(tab: Tab): string | undefined {
  return read(LATEST[tab]) ?? undefined;
}

/** What the server knows this browser by: long and random, since it opens its conversations. */
export function browserId(): string {
  const known = read(BROWSER);
  if (known) return known;
  const id = randomHex();
  write(BROWSER, id);
  return id;
}

function toJson(messages: ChatMessage[], thoughts: Thoughts, place: Place | undefined): string {
  const ids = new Set(messages.map(({ id }) => id));
  const known = Object.entries(thoughts).filter(([key]) => ids.has(key.split(':')[0] ?? ''));
  const chat: StoredChat = { messages, thoughts: Object.fromEntries(known), place };
  return JSON.stringify({ savedAt: Date.now(), ...chat });
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
