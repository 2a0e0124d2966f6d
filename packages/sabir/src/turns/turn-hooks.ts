import type { UIMessage } from '../message.ts';
import type { TurnOutcome } from '../outcome.ts';
import type { TranslatorStats } from '../translator.ts';
import type { AnyTurnLog } from './log.ts';
import type { TurnOptions } from './turn-options.ts';
import { readWritten, toMessage } from './turn-reading.ts';
import { withoutContent } from './without-content.ts';

type Ids = { sessionId: string; chatId: string; turnId: string };

/** Who is told that a turn has ended, and with which message. What throws is logged, and no more. */
export function createTurnHooks(options: TurnOptions<AnyTurnLog>, ids: Ids) {
  const { log, logger } = options;

  async function run(hook: string, call: () => unknown): Promise<void> {
    try {
      await call();
    } catch (error) {
      logger?.error?.(`${hook} threw`, { ...ids, error: withoutContent(error) });
    }
  }

  return {
    async end(final: TurnOutcome, message: UIMessage, stats: TranslatorStats): Promise<void> {
      const usage = final.status === 'finished' ? final.usage : undefined;
      await run('onEnd', () => options.onEnd?.(final, stats));
      await run('onFinish', () =>
        options.onFinish?.({ message, outcome: final, ...(usage && { usage }), ...ids }),
      );
    },
    /** For `onFinish`, which runs also when the log cannot be read: then nothing of it is known. */
    async readMessage(lastSeq: number, messageId: string): Promise<UIMessage> {
      if (!options.onFinish) return toMessage([], messageId);
      try {
        return toMessage(await readWritten(log, ids.turnId, lastSeq), messageId);
      } catch (error) {
        logger?.error?.('the turn could not be read', { ...ids, error: withoutContent(error) });
        return toMessage([], messageId);
      }
    },
  };
}
