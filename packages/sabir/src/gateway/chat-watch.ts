import type { UIMessage } from '../core/message.ts';
import type { SessionEvent } from '../turns/agent.ts';
import type { TurnInfo } from '../turns/log.ts';

export type Author = { id: string; name?: string };

/** A prompt that waits behind others. */
type QueuedMessage = {
  turnId: string;
  /** The id of the answer's message. */
  messageId: string;
  /** How many prompts have to end before this one, and itself. */
  position: number;
  message: UIMessage;
  /** Of a long prompt, `message` is only the beginning. */
  isExcerpt?: true;
  author?: Author;
  isMine: boolean;
};

/** What a follower of a conversation is shown beside its turns. */
type ChatState = {
  queue: QueuedMessage[];
  people: Author[];
  agent: { isConnected: boolean };
};

/** What a turn answers, as far as this process knows it. */
export type Asked = {
  message?: UIMessage;
  author?: Author;
  /** The message that the prompt replaces, with all behind it. */
  replaces?: string;
};

/** What happens in a conversation beside its turns. */
export type ChatEvents = {
  /** `state` is another one. */
  change(): void;
  event(event: SessionEvent): void;
  /** Its history changed in a way that no turn tells. */
  rewrite(): void;
  /** Its session ends in this process. */
  close(): void;
};

/** A conversation, as its host shows it to those who follow it. */
export interface ChatWatch {
  stateFor(userId: string): ChatState;
  askedIn(turn: TurnInfo): Asked;
  /** Events for followers who come late. */
  events(): SessionEvent[];
  /** Ends the watch. */
  leave(): void;
}
