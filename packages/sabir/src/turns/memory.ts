import { createLocalTurnLog, type LocalTurnLogOptions } from './local-log.ts';
import type { TurnLog } from './log.ts';

export type MemoryTurnLogOptions = LocalTurnLogOptions;

/** Turns in the memory of this process: what was acknowledged is kept until it ends. */
export function memoryTurnLog(options: MemoryTurnLogOptions = {}): TurnLog {
  return createLocalTurnLog(options);
}
