import { BODY_TOO_LARGE, type ErrorKind, SESSION_FULL } from '../core/errors.ts';
import type { Channel } from '../core/translator.ts';
import type { User } from '../turns/upstream.ts';
import type { SessionLimits } from './options.ts';
import { isSameChannel } from './records.ts';
import type { Session } from './session.ts';

/** How a prompt is refused by limits of other things than the queue. */
export const REFUSALS: Partial<Record<keyof SessionLimits, ErrorKind>> = {
  promptBytes: BODY_TOO_LARGE,
  sessionBytes: SESSION_FULL,
  channels: SESSION_FULL,
};

/** The limit that one more prompt of so many bytes would exceed. */
export function exceededBy(
  { queue, limits, storage }: Pick<Session, 'queue' | 'limits' | 'storage'>,
  { user, channel, bytes }: { user: User; channel: Channel; bytes: number },
): keyof SessionLimits | undefined {
  if (bytes > limits.promptBytes) return 'promptBytes';
  if (queue.size >= limits.queuedPrompts) return 'queuedPrompts';
  if (queue.countOf(user.id) >= limits.queuedPromptsPerUser) return 'queuedPromptsPerUser';
  if (queue.bytes + bytes > limits.queueBytes) return 'queueBytes';
  const channels = storage.channels();
  const isKnown = channels.some((known) => isSameChannel(channel, known));
  if (!isKnown && channels.length >= limits.channels) return 'channels';
  // A prompt is stored twice: as it was asked, and as a message when it is taken up.
  const stored = storage.bytes() + queue.bytes + 2 * bytes;
  return stored > limits.sessionBytes ? 'sessionBytes' : undefined;
}
