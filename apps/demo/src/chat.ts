import type { ChatStatus, FileUIPart } from 'ai';
import type { AnswerResult } from 'sabir/client';
import type { ChatMessage } from './chat-message.ts';
import type { Place } from './transports.ts';

/** The first answer wins; the result tells whose it was. Rejects where nobody could be told. */
export type AnswerQuestion = (answer: {
  questionId: string;
  answer: unknown;
}) => Promise<AnswerResult>;

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
  /** Others are in it too: what is asked while an answer runs waits, and Stop is for everybody. */
  isShared?: boolean;
  /** This person may watch, and do nothing else. */
  isReadOnly?: boolean;
  /** This window has been cut off from the server, and knows it. */
  isCutOff?: boolean;
  /** Messages may have files. */
  canAttach?: boolean;
  send(text: string, files: FileUIPart[]): void;
  /** Asks a message anew, in other words; absent where that cannot be kept. */
  edit?: ((messageId: string, text: string) => void) | undefined;
  /** Asks for the last answer once more. */
  retry(): void;
  stop(): void;
  /** Answers a question of the agent's; absent where none is ever asked. Always the same function. */
  answer?: AnswerQuestion | undefined;
};
