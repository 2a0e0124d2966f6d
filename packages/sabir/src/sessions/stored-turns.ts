import type { ErrorKind } from '../core/errors.ts';
import type { Channel } from '../core/translator.ts';
import { closingsOf } from '../turns/closings.ts';
import type { BeginTurn } from '../turns/log.ts';
import { toMessage } from '../turns/read-written.ts';
import type { FinishedTurn } from '../turns/turn-options.ts';
import type { Prompt, User } from '../turns/upstream.ts';
import type { Clock, SessionLimits } from './options.ts';
import {
  channelKeyOf,
  sessionKeyOf,
  toStoredAnswer,
  toUIMessage,
  toUserMessage,
  userMessageIdOf,
} from './records.ts';
import type { PromptInfo, SessionStorage, StoredPrompt } from './storage.ts';

/** What the log keeps with a turn, so that its session finds it again. */
export type SessionOrigin = { session: string; promptId: string };

type StoredTurnsOptions = {
  sessionId: string;
  storage: SessionStorage;
  clock: Clock;
  limits: Pick<SessionLimits, 'historyMessages' | 'historyBytes'>;
  errorText: ((error: unknown) => string) | undefined;
};

const PROMPT_ALONE = { historyMessages: 0, historyBytes: 0 };

/** How a stored prompt becomes a turn, and how the end of the turn is stored. */
export function createStoredTurns(options: StoredTurnsOptions) {
  const { sessionId, storage, clock, limits, errorText } = options;

  /** What was said in the channel, the prompt last, as far as it fits. */
  function historyOf(prompt: StoredPrompt, { historyMessages, historyBytes }: typeof PROMPT_ALONE) {
    const { channelType, channelId } = prompt;
    const before = storage.messages({
      channel: { channelType, channelId },
      before: userMessageIdOf(prompt),
      limit: historyMessages,
      maxBytes: historyBytes,
    });
    return [...before, toUserMessage(prompt, prompt.askedAt)].map(toUIMessage);
  }

  const keysOf = (prompt: PromptInfo) => ({
    sessionId: sessionKeyOf(sessionId),
    chatId: channelKeyOf(prompt),
  });

  return {
    toBeginning(prompt: PromptInfo): BeginTurn & { turnId: string } {
      const { promptId, turnId, messageId } = prompt;
      const origin: SessionOrigin = { session: sessionId, promptId };
      return { ...keysOf(prompt), turnId, requestId: promptId, messageId, origin };
    },
    toPrompt(info: PromptInfo, user: User, needsHistory: boolean): Prompt {
      const { promptId, turnId, messageId, channelType, channelId, traceparent } = info;
      const { trigger, replaces } = info;
      const prompt = storage.prompt(promptId) as StoredPrompt;
      const { text, attachments, body } = prompt;
      const channel: Channel = { channelType, channelId };
      const { sessionId: sessionKey, chatId } = keysOf(info);
      return {
        sessionId,
        chatId,
        chatKey: JSON.stringify([sessionKey, chatId]),
        turnId,
        messageId,
        promptId,
        user,
        text,
        attachments,
        body,
        channel,
        messages: historyOf(prompt, needsHistory ? limits : PROMPT_ALONE),
        ...(trigger && { trigger }),
        ...(replaces !== undefined && { replaces }),
        ...(traceparent !== undefined && { traceparent }),
        ...(errorText && { errorText }),
      };
    },
    /** May run again for the same turn. */
    storeEnd(prompt: PromptInfo, { message, outcome }: FinishedTurn): void {
      const endedAt = clock.now();
      const error = outcome.status === 'failed' ? outcome.message : undefined;
      storage.transaction(() => {
        storage.addMessage(toStoredAnswer(message, prompt, outcome));
        const ended = { status: 'ended', endedAt, outcome: outcome.status } as const;
        storage.updatePrompt(prompt.promptId, { ...ended, ...(error !== undefined && { error }) });
      });
    },
    isEnded: ({ promptId }: PromptInfo): boolean =>
      storage.promptInfo('promptId', promptId)?.status === 'ended',
    /** A runner has got the prompt, perhaps. */
    isGiven: ({ promptId }: PromptInfo): boolean =>
      storage.promptInfo('promptId', promptId)?.runnerId !== undefined,
    /** The end of a turn that nothing can go on with: its message says so. */
    toBroken(prompt: PromptInfo, { code, userMessage }: ErrorKind): FinishedTurn {
      const { turnId, messageId } = prompt;
      const outcome = { status: 'failed', code, message: userMessage } as const;
      const message = toMessage(closingsOf([], messageId, outcome), messageId);
      return { message, outcome, ...keysOf(prompt), turnId };
    },
  };
}
