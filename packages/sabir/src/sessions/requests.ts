import type { AuditEvent } from '../core/audit.ts';
import { MAY_ONLY_WATCH, SabirError } from '../core/errors.ts';
import { isAtLeast, type Role } from '../core/roles.ts';
import type { Channel } from '../core/translator.ts';
import type { Attachment, User } from '../turns/upstream.ts';
import type { Naming } from './replacing.ts';

export const DEFAULT_CHANNEL: Channel = { channelType: 'web', channelId: 'default' };

/** A user in a session, with what they may do. */
export type Member = {
  user: User;
  role: Role;
  /** Only this channel is theirs. @default all */
  channel?: Channel;
};

export type PromptRequest = Partial<Channel> &
  Naming & {
    /** The same one sent again is not asked again. @default a new id */
    promptId?: string;
    /** @default a new id */
    turnId?: string;
    /** The id of the answer's message. @default a new id */
    messageId?: string;
    text: string;
    attachments?: Attachment[];
    body?: Record<string, unknown>;
    /** See `PromptInfo`. */
    chatId?: string;
    traceparent?: string;
    /** What the request takes, for the limits. */
    bytes: number;
  };

/** What was done, for an audit: undefined where nothing was. */
export type Done = Pick<AuditEvent, 'turnId' | 'questionId' | 'approved'>;

export function checkMayWrite(role: Role): void {
  if (!isAtLeast(role, 'collaborator')) throw new SabirError(MAY_ONLY_WATCH);
}

export function channelOf({ channelType, channelId }: Partial<Channel>): Channel {
  return {
    channelType: channelType ?? DEFAULT_CHANNEL.channelType,
    channelId: channelId ?? DEFAULT_CHANNEL.channelId,
  };
}
