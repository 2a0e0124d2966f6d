import { UPSTREAM_UNREACHABLE } from '../core/errors.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Logger, TranslatorStats } from '../core/translator.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { Telemetry } from './telemetry.ts';
import { type TracedTurn, type TurnTrace, traceTurn } from './trace-turn.ts';

type TurnAccountsOptions = {
  metrics: GatewayMetrics;
  telemetry?: Telemetry | undefined;
  logger?: Logger | undefined;
};

export type TurnAccounts = ReturnType<typeof createTurnAccounts>;

/** Metrics, log lines and spans of turns. */
export function createTurnAccounts({ metrics, telemetry, logger }: TurnAccountsOptions) {
  return {
    /** Starts a turn's span, before the log knows the turn. */
    trace: (turn: TracedTurn): TurnTrace | undefined =>
      telemetry && traceTurn(telemetry, turn, logger),
    begin(
      ids: Record<string, unknown> & { turnId: string },
      trace: TurnTrace | undefined,
      isTakenOver: boolean,
    ) {
      const startedAt = Date.now();
      logger?.info?.(isTakenOver ? 'turn taken over' : 'turn began', ids);
      metrics.liveTurns.add(1);
      trace?.begin(ids.turnId, isTakenOver);
      return {
        /** The turn goes on in another process. */
        leave(): void {
          metrics.liveTurns.add(-1);
          metrics.handovers.add();
          trace?.handOver();
          logger?.info?.('turn left to another gateway', ids);
        },
        end(outcome: TurnOutcome, stats: TranslatorStats = { unknown: {}, malformed: {} }): void {
          trace?.end(outcome);
          metrics.liveTurns.add(-1);
          metrics.turns.add({ outcome: outcome.status });
          metrics.turnDuration.observe((Date.now() - startedAt) / 1000);
          for (const [type, count] of Object.entries(stats.unknown)) {
            metrics.unknownEvents.add({ type }, count);
          }
          for (const [type, count] of Object.entries(stats.malformed)) {
            metrics.malformedEvents.add({ type }, count);
          }
          const code = outcome.status === 'failed' ? outcome.code : undefined;
          if (outcome.status === 'failed' || outcome.status === 'lost') {
            metrics.requestErrors.add({ code: code ?? outcome.status });
            metrics.requestFailures.add();
            if (code !== UPSTREAM_UNREACHABLE.code) metrics.aborts.add({ side: 'server' });
          }
          const durationMs = Date.now() - startedAt;
          const how = { outcome: outcome.status, ...(code && { code }), durationMs };
          logger?.info?.('turn ended', { ...ids, ...how });
        },
      };
    },
  };
}
