import type { ChatMessage } from './chat-message.ts';

export function toText({ parts }: ChatMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** The history, with what was asked last if that never arrived: it may have, and only its echo was lost. */
export function withUnsent(history: ChatMessage[], last: ChatMessage | undefined): ChatMessage[] {
  const asked = history.findLast(({ role }) => role === 'user');
  const isThere = asked && last && toText(asked) === toText(last);
  return last?.role !== 'user' || isThere ? history : [...history, last];
}
