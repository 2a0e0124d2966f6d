import { HOOK_TIMEOUT, SabirError } from '../core/errors.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Translator, TranslatorStats } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import { readWritten, toMessage } from './read-written.ts';
import type { FinishedTurn, TurnOptions } from './turn-options.ts';

/** A translator of the application may throw even here. */
export function statsOf(translator: Translator<unknown>): TranslatorStats {
  try {
    const { unknown, malformed } = translator.stats;
    return { unknown: { ...unknown }, malformed: { ...malformed } };
  } catch {
    return { unknown: {}, malformed: {} };
  }
}

type Ids = { sessionId: string; chatId: string; turnId: string };

export type TurnHooks = ReturnType<typeof createTurnHooks>;

/**
 * Tells the application that a turn has ended, and with which message. A hook that throws, or takes
 * longer than `timing.hookMs`, is logged and not waited for.
 */
export function createTurnHooks(options: TurnOptions, ids: Ids) {
  const { log, logger, timing } = options;

  async function run(hook: string, call: () => unknown): Promise<void> {
    try {
      const settling = call();
      if (settling === undefined) return;
      await within(timing.hookMs, Promise.resolve(settling), () => {
        options.onHookTimeout?.(hook);
        throw new SabirError(HOOK_TIMEOUT, `${hook} did not settle within ${timing.hookMs} ms.`);
      });
    } catch (error) {
      logger?.error?.(`${hook} failed`, { ...ids, error: withoutContent(error) });
    }
  }

  function toFinished(outcome: TurnOutcome, message: UIMessage): FinishedTurn {
    const usage = outcome.status === 'finished' ? outcome.usage : undefined;
    return { message, outcome, ...(usage && { usage }), ...ids };
  }

  async function read(lastSeq: number, messageId: string): Promise<UIMessage> {
    return toMessage(await readWritten(log, ids.turnId, lastSeq), messageId);
  }

  /** For `onFinish`, which runs also when the log cannot be read: then nothing of the message is known. */
  async function readMessage(lastSeq: number, messageId: string): Promise<UIMessage> {
    if (!options.onFinish) return toMessage([], messageId);
    try {
      return await read(lastSeq, messageId);
    } catch (error) {
      logger?.error?.('the turn could not be read', { ...ids, error: withoutContent(error) });
      return toMessage([], messageId);
    }
  }

  return {
    /** For the step that ends the turn. */
    toStore(outcome: TurnOutcome, message: UIMessage): (() => void) | undefined {
      const { store } = options;
      return store && (() => store(toFinished(outcome, message)));
    },
    async end(outcome: TurnOutcome, message: UIMessage, stats: TranslatorStats): Promise<void> {
      await run('onEnd', () => options.onEnd?.(outcome, stats));
      await run('onFinish', () => options.onFinish?.(toFinished(outcome, message)));
    },
    /** For the step that ends the turn. Rejects where the log cannot be read: what is stored has to be whole. */
    readToStore: (lastSeq: number, messageId: string): Promise<UIMessage> =>
      options.store ? read(lastSeq, messageId) : readMessage(lastSeq, messageId),
    readMessage,
  };
}
