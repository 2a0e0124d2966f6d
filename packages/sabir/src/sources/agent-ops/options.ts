import type { Channel, Logger } from '../../core/translator.ts';

export interface AgentOpsOptions {
  /** The message's id. Default: the turn's. */
  messageId?: string;
  /** Which events count. Default `auto`: both dialects, whatever arrives first. */
  dialect?: 'auto' | 'v2' | 'snapshot';
  /** Only a turn of this channel, or of none, is taken. Default: the next turn of any. */
  channel?: Channel;
  /** The turn to translate, where it is known: for one that already runs. */
  turnId?: string;
  /**
   * The prompt whose turn to translate, for a server that says which prompt a turn answers: then
   * nothing is guessed. Where `messageId` is given too, the prompt's place in the queue is shown.
   */
  promptId?: string;
  /**
   * Another translator may have shown that the prompt waits, in the same message: that it waits no
   * more is said in any case. Default false.
   */
  mayHaveWaited?: boolean;
  /** A question is also a `tool-approval-request`, for AI SDK 6 and 7. Default false. */
  approvals?: boolean;
  /** For a message whose turn never began. */
  generateMessageId?: () => string;
  /** What a person is shown of an error. Default: its own message, without stack and paths. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
}
