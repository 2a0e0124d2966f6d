import type { PersonRequest } from './model.ts';

type MessageLike = {
  id: string;
  role: string;
  parts: ReadonlyArray<{ type: string; text?: unknown }>;
};

const MAX_HISTORY = 12;
const MAX_HISTORY_CHARACTERS = 2_000;

/** Turns the chat into what the flow starts with: the question, and a bounded memory of the talk. */
export function toFlowInput(text: string, messages: readonly MessageLike[]): PersonRequest {
  const lastUser = messages.findLastIndex((message) => message.role === 'user');
  const before = lastUser < 0 ? [] : messages.slice(0, lastUser);
  return {
    message: text,
    messageId: messages[lastUser]?.id ?? text,
    history: before.slice(-MAX_HISTORY).flatMap((message) => {
      if (message.role !== 'user' && message.role !== 'assistant') return [];
      return [{ role: message.role, text: toText(message).slice(0, MAX_HISTORY_CHARACTERS) }];
    }),
  };
}

function toText(message: MessageLike): string {
  const texts = message.parts.filter((part) => part.type === 'text').map((part) => part.text);
  return texts.filter((text) => typeof text === 'string').join('\n\n');
}
