import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { closingsOf } from './closings.ts';
import type { TurnLog, TurnWriter } from './log.ts';
import { nothingIfLost } from './log-errors.ts';
import { readWritten } from './read-written.ts';
import type { TurnHooks } from './turn-hooks.ts';
import type { Unwritten } from './unwritten.ts';

type TurnClosingOptions = {
  log: TurnLog;
  writer: TurnWriter;
  unwritten: Unwritten;
  hooks: TurnHooks;
  messageId(): string;
};

/** What the log has of a turn's end. */
export type Closed = { outcome: TurnOutcome; message: UIMessage };

/** Writes the end of a turn, with closings that follow from what is stored where the translator has none. */
export function createTurnClosing({
  log,
  writer,
  unwritten,
  hooks,
  messageId,
}: TurnClosingOptions) {
  const { turnId } = writer;

  async function close(outcome: TurnOutcome): Promise<Closed> {
    // Read before it is closed: a log that retains nothing has forgotten it afterwards.
    const message = await hooks.readToStore(unwritten.lastSeq, messageId());
    await writer.close(outcome, hooks.toStore(outcome, message));
    return { outcome, message };
  }

  return {
    close,
    async closeFromLog(outcome: TurnOutcome): Promise<Closed> {
      const chunks = await readWritten(log, turnId, unwritten.lastSeq);
      const closings = closingsOf(chunks, messageId(), outcome);
      if (closings.length > 0) await unwritten.append(closings);
      return close(outcome);
    },
    /** After the log has refused something. `decided` is the outcome that the turn had before, if it had one. */
    async closeAfterError(failed: TurnOutcome, decided: TurnOutcome): Promise<Closed> {
      const written = await readWritten(log, turnId, unwritten.lastSeq).catch(nothingIfLost);
      const closings = closingsOf(written, messageId(), failed);
      if (closings.length > 0) await writer.append(closings);
      // Without closings all of the turn was stored, and only its end was refused.
      return close(closings.length > 0 ? failed : decided);
    },
    /** After that has failed, for the only process that can end the turn: `onFinish` stores what `store` could not. */
    async closeUnstored(failed: TurnOutcome, decided: TurnOutcome): Promise<Closed> {
      const written = await readWritten(log, turnId, unwritten.lastSeq).catch(() => []);
      const isWhole = closingsOf(written, messageId(), failed).length === 0;
      // Where this is not possible, or closings could not be written, the log ends the turn when its lease runs out.
      if (isWhole) await writer.close(decided).catch(() => undefined);
      const message = await hooks.readMessage(unwritten.lastSeq, messageId());
      return { outcome: isWhole ? decided : failed, message };
    },
    /** Whether the log has lost the turn. */
    async isGone(): Promise<boolean> {
      try {
        return (await log.get(turnId)) === undefined;
      } catch {
        return false;
      }
    },
  };
}
