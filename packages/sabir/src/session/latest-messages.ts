import type { SessionLimits } from './options.ts';
import type { RunningTurn } from './running-turn.ts';
import type { SessionStorage, StoredMessage } from './storage.ts';

/** The latest of them that fit, in their order: what one frame holds has to be taken by somebody. */
export function latestWithin(messages: StoredMessage[], maxBytes: number): StoredMessage[] {
  let bytes = 0;
  let from = messages.length;
  while (from > 0) {
    bytes += JSON.stringify(messages[from - 1]).length;
    if (bytes > maxBytes) break;
    from--;
  }
  return messages.slice(from);
}

/** What was said in its channel before this turn. */
export function historyBefore(
  { channel, turn }: RunningTurn,
  storage: SessionStorage,
  { historyMessages, historyBytes }: SessionLimits,
): StoredMessage[] {
  const messages = storage.messages({ channel, limit: historyMessages + 1 });
  const before = messages.filter(({ id }) => id !== turn.promptId);
  return latestWithin(before.slice(-historyMessages), historyBytes);
}
