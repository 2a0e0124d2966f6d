import type { Trigger } from '../core/chat-request.ts';
import {
  CONVERSATION_CHANGED,
  REPLACES_OTHERS,
  SabirError,
  STILL_ANSWERED,
} from '../core/errors.ts';
import type { Role } from '../core/roles.ts';
import type { Channel } from '../core/translator.ts';
import type { User } from '../turns/upstream.ts';
import { isSameChannel, promptIdOf, userMessageIdOf } from './records.ts';
import type { PromptInfo, SessionStorage, StoredMessage, StoredPrompt } from './storage.ts';

/** What a request names of the conversation, as a stock client sends it. */
export type Naming = {
  /** @default 'submit-message' */
  trigger?: Trigger;
  /**
   * The message to regenerate, an answer or the message that it answers; without it the last answer of the channel. Of a
   * `submit-message`: the user's message to edit.
   */
  replaces?: string;
  /** The id that the user's message has at the client. */
  userMessageId?: string;
};

/** What a prompt replaces. */
export type Replacement = {
  /** The user's message that is asked again or edited, and all that stands behind it in its channel. */
  messages: StoredMessage[];
  /** The id of the message that is regenerated or edited. */
  replaces: string;
  /** Of a regenerate: what is asked again, as it was asked. */
  asked?: StoredPrompt;
};

/** Whether a request, or a stored prompt, regenerates or edits. Of an edit only `findReplacement` knows whether it replaces anything. */
export function isReplacing({ trigger, replaces }: Pick<Naming, 'trigger' | 'replaces'>): boolean {
  return trigger === 'regenerate-message' || replaces !== undefined;
}

/** The prompt that a request names to regenerate or edit while that prompt waits: its message is not in the conversation yet. */
export function findWaiting(
  storage: SessionStorage,
  { trigger, replaces, userMessageId }: Naming,
  channel: Channel,
): PromptInfo | undefined {
  const named = [replaces, trigger === 'regenerate-message' ? userMessageId : undefined];
  return storage.openPrompts().find((prompt) => {
    const isNamed = named.includes(userMessageIdOf(prompt)) || named.includes(prompt.messageId);
    return isNamed && prompt.status === 'queued' && isSameChannel(prompt, channel);
  });
}

/**
 * Finds what a request regenerates or edits; undefined where it only adds a message. Only ids decide, never what else the
 * client sent: the list of a page that was open for long lacks messages of other people. Throws a `SabirError` where
 * this member may not replace it.
 */
export function findReplacement(
  storage: SessionStorage,
  naming: Naming,
  channel: Channel,
  { user, role }: { user: User; role: Role },
): Replacement | undefined {
  const { trigger, replaces, userMessageId } = naming;
  const find = (id: string | undefined) => {
    const found = id === undefined ? undefined : storage.message(id);
    return found && isSameChannel(found, channel) ? found : undefined;
  };

  /** The page that names it was open for long: what it shows is not the conversation any more. */
  function wasReplaced(id: string | undefined): boolean {
    return id !== undefined && storage.wasReplaced(id, channel);
  }

  function findToRegenerate(): StoredMessage | undefined {
    const named = find(replaces) ?? questionOfRunning();
    if (named) return named.role === 'user' ? named : questionOf(named);
    // A message that the session has never got, as after a failed request: it is asked for the first time.
    const isNew =
      userMessageId !== undefined && !find(userMessageId) && !wasReplaced(userMessageId);
    if (isNew && (replaces === undefined || replaces === userMessageId)) return undefined;
    if (replaces !== undefined) throw new SabirError(CONVERSATION_CHANGED);
    const [last] = storage.messages({ channel, limit: 1 });
    const question = last?.role === 'assistant' ? questionOf(last) : last;
    // The page does not show the last answer, so that its person cannot have meant it.
    if (question && userMessageId !== undefined && question.id !== userMessageId) {
      throw new SabirError(CONVERSATION_CHANGED);
    }
    return question;
  }

  function questionOf(answer: StoredMessage): StoredMessage {
    const prompt = storage.promptInfo('promptId', promptIdOf(answer));
    const question = prompt && find(userMessageIdOf(prompt));
    if (!question) throw new SabirError(CONVERSATION_CHANGED);
    return question;
  }

  /** An answer that is being written is no message yet. */
  function questionOfRunning(): StoredMessage | undefined {
    const isNamed = ({ status, messageId }: PromptInfo) =>
      status === 'running' && messageId === replaces;
    const running = storage.openPrompts().find(isNamed);
    return running && find(userMessageIdOf(running));
  }

  function findToEdit(): StoredMessage | undefined {
    const named = find(replaces);
    if (!named && wasReplaced(replaces)) throw new SabirError(CONVERSATION_CHANGED);
    return named?.role === 'user' ? named : undefined;
  }

  const isRegenerate = trigger === 'regenerate-message';
  if (findWaiting(storage, naming, channel)) throw new SabirError(STILL_ANSWERED);
  const question = isRegenerate ? findToRegenerate() : findToEdit();
  if (!question) return undefined;
  const messages = storage.messages({ channel, from: question.id });
  const isOthers = ({ role: by, authorId }: StoredMessage) => by === 'user' && authorId !== user.id;
  if (role !== 'owner' && messages.some(isOthers)) throw new SabirError(REPLACES_OTHERS);
  if (!isRegenerate) return { messages, replaces: question.id };
  const asked = storage.prompt(promptIdOf(question));
  if (!asked) throw new SabirError(CONVERSATION_CHANGED);
  const answer = messages.find(({ id }) => id === asked.messageId);
  return { messages, replaces: answer?.id ?? question.id, asked };
}
