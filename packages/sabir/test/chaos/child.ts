/** What every child process of a run does: tells its parent, answers for its log, and ends with its parent. */
import type { Chunk } from '../../src/core/chunks.ts';
import type { TurnLog } from '../../src/turns/log.ts';
import { readWritten } from '../../src/turns/read-written.ts';

export type SourceReport =
  | { type: 'ready'; port: number }
  | { type: 'prompted'; turn: number }
  /** `done`: from 0 to 1, of the script's steps. */
  | { type: 'progress'; turn: number; done: number }
  | { type: 'asked'; turn: number; questionId: string }
  | { type: 'answered'; turn: number; answer: unknown }
  | { type: 'said'; turn: number; isAborted: boolean }
  | LogReport
  | UnhandledReport;

export type GatewayReport =
  | { type: 'ready'; port: number }
  | { type: 'finish'; sessionId: string; turnId: string; outcome: unknown; message: unknown }
  /** Something worth a line in a turn's story. */
  | { type: 'log'; level: string; text: string; turnId?: string }
  | LogReport
  | UnhandledReport;

/** All chunks that the child's log has of an ended turn; undefined for one that it does not have. */
export type LogReport =
  | { type: 'chunks'; turnId: string; chunks: Chunk[] | undefined }
  | { type: 'no-chunks'; turnId: string };

/** What the parent asks for. */
export type LogRequest = { type: 'read-log'; turnId: string };

/** What nobody caught. */
type UnhandledReport = { type: 'unhandled'; what: string };

export function tellParent(report: SourceReport | GatewayReport): void {
  if (process.connected) process.send?.(report);
}

export function answerForLog(log: TurnLog): void {
  process.on('message', async ({ turnId }: LogRequest) => {
    try {
      const turn = await log.get(turnId);
      const chunks = turn?.outcome && (await readWritten(log, turnId, turn.lastSeq));
      tellParent({ type: 'chunks', turnId, chunks });
    } catch {
      // Redis is away.
      tellParent({ type: 'no-chunks', turnId });
    }
  });
}

export function reportFailures(): void {
  process.on('disconnect', () => process.exit());
  const report = (kind: string) => (error: unknown) => {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    tellParent({ type: 'unhandled', what: `${kind}: ${what}` });
  };
  process.on('unhandledRejection', report('unhandled rejection'));
  process.on('uncaughtException', report('uncaught exception'));
}
