import { BAD_REQUEST } from '../../core/errors.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { Channel } from '../../core/translator.ts';
import type { Attachment, Prompt } from '../../turns/upstream.ts';

const MOST_FILES = 8;

/** Why the server would not take the prompt: it says so to nobody, or in words for developers. */
export function refusalOf({ attachments }: Prompt): TurnOutcome | undefined {
  const areData = attachments.every(({ url }) => /^data:/i.test(url));
  if (areData && attachments.length <= MOST_FILES) return undefined;
  const message = `The agent takes at most ${MOST_FILES} files, as data URLs.`;
  return { status: 'failed', code: BAD_REQUEST.code, message };
}

/** Files as Agent Ops servers and runners take them. */
export function toFiles(attachments: readonly Attachment[]) {
  return attachments.map(({ mediaType, url, filename }) => ({
    type: 'file' as const,
    mime: mediaType,
    url,
    ...(filename !== undefined && { filename }),
  }));
}

export function toPromptMessage(prompt: Prompt, channel: Channel): object {
  const { text, attachments, body } = prompt;
  const files = toFiles(attachments);
  return {
    type: 'prompt',
    content: text,
    ...(files.length > 0 && { attachments: files }),
    ...(typeof body.model === 'string' && { model: body.model }),
    channelType: channel.channelType,
    channelId: channel.channelId,
  };
}

/** The server knows only words and yes or no; it would make `[object Object]` of the rest. */
export function toAnswer(answer: unknown): string | boolean {
  if (typeof answer === 'string' || typeof answer === 'boolean') return answer;
  return JSON.stringify(answer) ?? '';
}
