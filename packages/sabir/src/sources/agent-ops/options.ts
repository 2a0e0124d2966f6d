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
  /** A question is also a `tool-approval-request`, for AI SDK 6 and 7. Default false. */
  approvals?: boolean;
  /** For a message whose turn never began. */
  generateMessageId?: () => string;
  /** What a person is shown of an error. Default: its own message, without stack and paths. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
}
