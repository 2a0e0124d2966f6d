/** What a chat runs on. There is a tab for each, and a chat's id says in which one it is. */
export type Tab = 'useChat' | 'useChatStream' | 'Session';

/** What the contract's route takes for a chat of its own, without a session around it. */
const CONTRACT_ID = /^chat_[0-9a-z]{32,64}$/;

/** What the server takes for a session with an agent of its own. */
const SESSION_ID = /^session_[0-9a-z]{32}$/;

export function tabOf(chatId: string): Tab {
  if (SESSION_ID.test(chatId)) return 'Session';
  return CONTRACT_ID.test(chatId) ? 'useChatStream' : 'useChat';
}

export function createChatId(tab: Tab): string {
  if (tab === 'Session') return `session_${randomHex()}`;
  if (tab === 'useChatStream') return `chat_${randomHex()}`;
  return crypto.getRandomValues(new Uint32Array(2)).reduce((id, n) => id + n.toString(36), '');
}

/** 32 digits that nobody can guess. */
export function randomHex(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
