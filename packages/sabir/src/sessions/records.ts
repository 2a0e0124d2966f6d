import { TURN_LOST } from '../core/errors.ts';
import type { UIMessage, UIMessagePart } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Channel } from '../core/translator.ts';
import type { PromptInfo, StoredMessage, StoredPrompt } from './storage.ts';

/** What the log knows a session as. Ids that look like the keys of other routes are told apart from them. */
export function sessionKeyOf(sessionId: string): string {
  return sessionId.startsWith('[') ? JSON.stringify(['sessions', sessionId]) : sessionId;
}

/** In a session the channel is the conversation: its turns are kept under it. */
export function channelKeyOf({ channelType, channelId }: Channel): string {
  return JSON.stringify([channelType, channelId]);
}

export function isSameChannel(one: Channel, other: Channel): boolean {
  return one.channelType === other.channelType && one.channelId === other.channelId;
}

/** The id of the user's message. */
export function userMessageIdOf({ promptId, userMessageId = promptId }: PromptInfo): string {
  return userMessageId;
}

/** Of a message that an earlier version stored, the id is the prompt's. */
export function promptIdOf({ id, promptId = id }: StoredMessage): string {
  return promptId;
}

export function toUserMessage(prompt: StoredPrompt, createdAt: number): StoredMessage {
  const { promptId, text, attachments, channelType, channelId } = prompt;
  const { id: authorId, name: authorName } = writerOf(prompt);
  const words: UIMessagePart[] = text === '' ? [] : [{ type: 'text', text }];
  return {
    id: userMessageIdOf(prompt),
    role: 'user',
    parts: [...words, ...attachments.map((file) => ({ type: 'file' as const, ...file }))],
    createdAt,
    authorId,
    ...(authorName !== undefined && { authorName }),
    channelType,
    channelId,
    promptId,
  };
}

function writerOf({ authorId, authorName, writtenBy }: PromptInfo): { id: string; name?: string } {
  return writtenBy ?? { id: authorId, ...(authorName !== undefined && { name: authorName }) };
}

/** A message tells why its turn failed: the `error` chunk reaches only those who watch. */
export function toStoredAnswer(
  message: UIMessage,
  prompt: PromptInfo,
  outcome: TurnOutcome,
): StoredMessage {
  const { promptId, messageId, channelType, channelId, startedAt, askedAt } = prompt;
  const reason = reasonOf(outcome);
  const metadata = { ...(message.metadata as object | undefined), ...(reason && { reason }) };
  return {
    ...message,
    id: messageId,
    role: 'assistant',
    ...(Object.keys(metadata).length > 0 && { metadata }),
    createdAt: startedAt ?? askedAt,
    channelType,
    channelId,
    promptId,
  };
}

function reasonOf(outcome: TurnOutcome): string | undefined {
  if (outcome.status === 'lost') return TURN_LOST.userMessage;
  return outcome.status === 'failed' ? outcome.message : undefined;
}

export function toUIMessage(stored: StoredMessage): UIMessage {
  const { id, role, parts, metadata } = stored;
  return { id, role, parts, ...(metadata !== undefined && { metadata }) };
}
