import type { UIMessage } from '../core/message.ts';
import type { Channel } from '../core/translator.ts';
import type { QueuedPrompt } from './prompt-queue.ts';
import { isSameChannel, toUIMessage, toUserMessage, userMessageIdOf } from './records.ts';
import type { Session } from './session.ts';

export type WaitingMessage = { prompt: QueuedPrompt; message: UIMessage; isExcerpt: boolean };

/** The messages of a channel that wait in the queue: whole while they fit into `maxBytes`, and an excerpt of each that does not. */
export function waitingMessagesOf(
  { storage, queue }: Session,
  channel: Channel,
  maxBytes: number,
): WaitingMessage[] {
  let bytes = 0;
  return queue
    .list()
    .filter((prompt) => isSameChannel(prompt, channel))
    .map((prompt) => {
      const { promptId, askedAt, excerpt: text } = prompt;
      const fits = bytes + prompt.bytes <= maxBytes;
      const stored = fits ? storage.prompt(promptId) : undefined;
      if (stored) {
        bytes += prompt.bytes;
        return { prompt, message: toUIMessage(toUserMessage(stored, askedAt)), isExcerpt: false };
      }
      const id = userMessageIdOf(prompt);
      const message: UIMessage = { id, role: 'user', parts: [{ type: 'text', text }] };
      return { prompt, message, isExcerpt: true };
    });
}
