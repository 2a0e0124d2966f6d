import type { RunningTurn } from './running-turn.ts';
import type { StoredMessage, StoredTurn } from './storage.ts';

export function toUserMessage(turn: StoredTurn, at: number): StoredMessage {
  const { promptId, content, attachments, authorId, authorName, channelType, channelId } = turn;
  return {
    id: promptId,
    role: 'user',
    content,
    createdAt: Math.floor(at / 1_000),
    ...(attachments.length > 0 && { parts: attachments as never }),
    authorId,
    ...(authorName !== undefined && { authorName }),
    channelType,
    channelId,
  };
}

export function toIds({ turn: { turnId, promptId }, channel }: RunningTurn) {
  return { turnId, promptId, ...channel };
}

/** Whatever it says of its ids and its place, the session knows better. */
export function withoutIds<Event extends object>(event: Event): Event {
  const {
    turnId: _____,
    promptId: _,
    seq: __,
    channelType: ___,
    channelId: ____,
    ...rest
  } = event as Record<string, unknown>;
  return rest as Event;
}

/** What failed, without what was said. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
