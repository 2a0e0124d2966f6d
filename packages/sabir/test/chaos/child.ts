/** What every child process of a run does: tells its parent, and ends with it. */

export type SourceReport =
  | { type: 'ready'; port: number }
  | { type: 'prompted'; turn: number }
  /** `done`: from 0 to 1, of the script's steps. */
  | { type: 'progress'; turn: number; done: number }
  | { type: 'asked'; turn: number; questionId: string }
  | { type: 'answered'; turn: number; answer: unknown }
  | { type: 'said'; turn: number; isAborted: boolean }
  | UnhandledReport;

export type GatewayReport =
  | { type: 'ready'; port: number }
  | { type: 'finish'; sessionId: string; turnId: string; outcome: unknown; message: unknown }
  /** Something worth a line in a turn's story. */
  | { type: 'log'; level: string; text: string; turnId?: string }
  | UnhandledReport;

/** What nobody caught. */
type UnhandledReport = { type: 'unhandled'; what: string };

export function tellParent(report: SourceReport | GatewayReport): void {
  if (process.connected) process.send?.(report);
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
