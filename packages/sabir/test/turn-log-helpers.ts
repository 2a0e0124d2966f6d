/** What the parts of `turn-log-conformance.ts` share. */
import type { Chunk } from '../src/core/chunks.ts';
import type { TurnOutcome } from '../src/core/outcome.ts';
import type { BeginTurn, LoggedChunk, TurnLog, TurnWriter } from '../src/turns/log.ts';

export type TurnLogOptions = {
  maxTurnBytes?: number;
  retentionMs?: number;
  retainedBytes?: number;
  dedupeMs?: number;
  leaseMs?: number;
};
export type CreateTurnLog = (options: TurnLogOptions) => TurnLog | Promise<TurnLog>;
export type Suite = {
  /** A log that is closed when the test is over. */
  open(options?: TurnLogOptions): Promise<TurnLog>;
  /** A short time for leases and retention, long enough for one round trip to the store. */
  shortMs: number;
};

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
export const NEVER = new AbortController().signal;
export const delta = (text: string): Chunk => ({ type: 'text-delta', id: 't', delta: text });
export const OPENING: Chunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'text-start', id: 't' },
];
export const CLOSING: Chunk[] = [
  { type: 'text-end', id: 't' },
  { type: 'finish', finishReason: 'stop' },
];
export const FINISHED: TurnOutcome = { status: 'finished' };
export const WHOLE_TURN = [...OPENING, delta('a'), ...CLOSING];

let requests = 0;
export function request(given: Partial<BeginTurn> = {}): BeginTurn {
  const requestId = `request ${++requests}`;
  return { sessionId: 's', chatId: 'c', messageId: 'm', requestId, ...given };
}

export async function beginTurn(log: TurnLog, given?: Partial<BeginTurn>): Promise<TurnWriter> {
  const begun = await log.begin(request(given));
  if (!('writer' in begun)) throw new Error('there is such a turn already');
  return begun.writer;
}

export async function readAll(
  log: TurnLog,
  turnId: string,
  after = 0,
  signal = NEVER,
): Promise<LoggedChunk[]> {
  const read: LoggedChunk[] = [];
  for await (const batch of log.read(turnId, after, signal)) read.push(...batch);
  return read;
}

export const chunksOf = (logged: LoggedChunk[]) => logged.map(({ chunk }) => chunk);
export const numbersOf = (logged: LoggedChunk[]) => logged.map(({ seq }) => seq);
