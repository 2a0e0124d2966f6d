import type { ChatStatus } from 'ai';
import type { ChatMessage } from './chat-message.ts';
import type { Place } from './transports.ts';

/** What the page needs of a chat. Each hook is put into these words once, and drawn the same. */
export type Chat = {
  messages: ChatMessage[];
  status: ChatStatus;
  /** What ended the last turn, if that was an error. */
  error: Error | undefined;
  /** The server is asked what happened while nobody watched. */
  isCatchingUp: boolean;
  /** The connection is gone, and is being made again. */
  isReconnecting: boolean;
  /** Where the last answer was asked for. */
  place: Place;
  send(text: string): void;
  /** Asks for the last answer once more. */
  retry(): void;
  stop(): void;
};
