/** What a session server counts; the kit is in `../../core/metrics.ts`. */
import type { MetricRegistry } from '../../core/metrics.ts';
import type { Session, SessionLimits, SessionStore } from '../../sessions/index.ts';
import type { SocketLimits } from './session-server-options.ts';

type Limits = SessionLimits & SocketLimits;

/** `sessions` gives those in memory: they are counted at each scrape. */
export function createSessionMetrics(
  registry: MetricRegistry,
  sessions: () => Session[],
  clientCount: () => number,
  store: SessionStore,
) {
  function sum(name: string, help: string, of: (session: Session) => number): void {
    registry.gauge(name, help, () => sessions().reduce((total, session) => total + of(session), 0));
  }

  registry.gauge('sabir_sessions', 'Sessions in memory.', () => sessions().length);
  registry.gauge('sabir_session_clients', 'V2 clients on sockets of sessions.', clientCount);
  sum('sabir_session_runners', 'Runners that are connected.', (one) => (one.hasRunner ? 1 : 0));
  sum('sabir_session_queued_prompts', 'Prompts that wait in line.', (one) => one.queue.size);
  sum('sabir_session_running_turns', 'Turns that run in sessions.', (one) => (one.running ? 1 : 0));
  registry.gauge('sabir_session_stored_bytes', 'What the session store holds.', () =>
    store.storedBytes(),
  );
  return {
    turns: registry.counter(
      'sabir_session_turns_total',
      'Turns of sessions that ended, by outcome.',
      [{ outcome: 'finished' }, { outcome: 'stopped' }, { outcome: 'failed' }, { outcome: 'lost' }],
    ),
    storageErrors: registry.counter(
      'sabir_session_storage_errors_total',
      'Reads and writes of the session store that failed.',
    ),
  };
}

/** Those that refuse something. The others only cut what is read. */
const REFUSING = [
  ...['sockets', 'socketsPerUser', 'socketsPerSession', 'pendingUpgrades', 'messagesPerSecond'],
  ...['initBytesPerSecond', 'channels', 'turnQuestions'],
  ...['promptBytes', 'viewerMessageBytes', 'queuedPrompts', 'queuedPromptsPerUser', 'queueBytes'],
  ...['turnBytes', 'eventBytes', 'sessionBytes', 'clientBufferBytes'],
] as (keyof Limits)[];

/**
 * Shows each limit as `sessions.NAME`. Gives the function to call for each refusal.
 */
export function createLimitMetrics(
  registry: MetricRegistry,
  limits: Limits,
  uses: Partial<Record<keyof Limits, () => number>>,
): (limit: keyof Limits) => void {
  const refusals = new Map(
    REFUSING.map((name) => {
      const use = uses[name];
      return [
        name,
        registry.limit(`sessions.${name}`, {
          max: limits[name],
          isGlobal: name === 'sockets',
          ...(use && { use }),
        }),
      ];
    }),
  );
  return (limit) => refusals.get(limit)?.();
}
