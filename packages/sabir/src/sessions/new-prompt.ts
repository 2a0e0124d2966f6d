import { PROMPT_TAKEN, SabirError } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import type { Channel } from '../core/translator.ts';
import type { User } from '../turns/upstream.ts';
import { userMessageIdOf } from './records.ts';
import type { Replacement } from './replacing.ts';
import type { PromptRequest } from './requests.ts';
import type { SessionStorage, StoredPrompt } from './storage.ts';

type NewPrompt = {
  storage: SessionStorage;
  request: PromptRequest & { promptId: string; turnId: string };
  channel: Channel;
  user: User;
  /** What it regenerates or edits. */
  replacement: Replacement | undefined;
  askedAt: number;
};

/** A client may send an id of any length, which is stored and sent to all. */
const LONGEST_ID = 512;

/** The prompt that a request asks for, with ids that no other message of the session has. */
export function toNewPrompt(given: NewPrompt): StoredPrompt {
  const { storage, request, channel, user, replacement, askedAt } = given;
  const { promptId, turnId, body = {}, chatId, traceparent, trigger } = request;
  const { asked, replaces } = replacement ?? {};
  const replaced = new Set(replacement?.messages.map(({ id }) => id));
  const open = new Set(storage.openPrompts().map(userMessageIdOf));
  const isShown = (id: string) => storage.message(id) !== undefined && !replaced.has(id);
  const isOfAnother = (id: string) =>
    isShown(id) || open.has(id) || storage.promptInfo('messageId', id) !== undefined;

  /** As the client calls it, if no other message is called so. */
  function userMessageIdFor(): string {
    const [question] = replacement?.messages ?? [];
    const id = asked ? question?.id : (request.userMessageId ?? question?.id);
    if (id === undefined || id === '' || id.length > LONGEST_ID) return promptId;
    const isKnown = isOfAnother(id) || storage.promptInfo('promptId', id) !== undefined;
    return id === question?.id || !isKnown ? id : promptId;
  }

  if (isOfAnother(promptId)) throw new SabirError(PROMPT_TAKEN);
  const userMessageId = userMessageIdFor();
  const { messageId = createId() } = request;
  const isTaken =
    [promptId, userMessageId].includes(messageId) ||
    replaced.has(messageId) ||
    isOfAnother(messageId) ||
    storage.promptInfo('promptId', messageId) !== undefined;
  const { text, attachments = [] } = asked ?? request;
  const writtenBy = asked && (asked.writtenBy ?? toAuthor(asked.authorId, asked.authorName));
  return {
    promptId,
    turnId,
    messageId: isTaken ? createId() : messageId,
    ...(userMessageId !== promptId && { userMessageId }),
    status: 'queued',
    ...(trigger === 'regenerate-message' && { trigger }),
    ...(replaces !== undefined && { replaces }),
    text,
    attachments,
    body,
    ...(chatId !== undefined && { chatId }),
    ...(traceparent !== undefined && { traceparent }),
    authorId: user.id,
    ...(typeof user.name === 'string' && { authorName: user.name }),
    ...(writtenBy && writtenBy.id !== user.id && { writtenBy }),
    askedAt,
    ...channel,
  };
}

function toAuthor(id: string, name: string | undefined): { id: string; name?: string } {
  return { id, ...(name !== undefined && { name }) };
}
