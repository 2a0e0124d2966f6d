import type { SessionLimits } from './options.ts';
import type { RunningTurn } from './running-turn.ts';
import type { SessionStorage, StoredMessage } from './storage.ts';

/** What was said in its channel before this turn. */
export function historyBefore(
  { channel, turn }: RunningTurn,
  storage: SessionStorage,
  { historyMessages, historyBytes }: SessionLimits,
): StoredMessage[] {
  const { promptId: before } = turn;
  return storage.messages({ channel, before, limit: historyMessages, maxBytes: historyBytes });
}
