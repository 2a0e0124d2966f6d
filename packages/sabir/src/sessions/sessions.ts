import { isObject } from '../core/loose.ts';
import { toSafeLogger } from '../core/safe-logger.ts';
import { startTimeout, type Timer } from '../core/timers.ts';
import type { Logger } from '../core/translator.ts';
import { withText } from '../core/without-content.ts';
import type { Agent, AgentFunction } from '../turns/agent.ts';
import type { OrphanedTurn, TurnLog } from '../turns/log.ts';
import { nameOf } from './guard.ts';
import {
  type Clock,
  DEFAULT_LIMITS,
  type SessionLimits,
  type SessionNotice,
  type SessionTiming,
} from './options.ts';
import { Session } from './session.ts';
import type { PromptInfo, SessionStore } from './storage.ts';
import type { SessionOrigin } from './stored-turns.ts';
import { watchStore } from './watched-store.ts';

export type SessionsOptions = {
  /** Where sessions are kept: `sqliteSessionStore({ file })`, or `memorySessionStore()`. */
  store: SessionStore;
  /** Where their turns are kept. @default the store's own log */
  log?: TurnLog;
  /** Makes the agent of a session in this process, when there is something to do. @default runners answer */
  agent?: (sessionId: string) => Agent | AgentFunction;
  clock?: Clock;
  timing?: Partial<SessionTiming & { lingerMs: number }>;
  limits?: Partial<SessionLimits>;
  /** A session has something to do, and neither an agent nor a runner. */
  onRunnerWanted?(sessionId: string): void;
  /** A session left the memory: no connection uses it, and nothing runs. */
  onSessionClosed?(sessionId: string): void;
  onNotice?(notice: SessionNotice, session: Session): void;
  onLimit?(limit: keyof SessionLimits): void;
  onStorageError?(): void;
  errorText?: (error: unknown) => string;
  logger?: Logger;
};

type Ended = Extract<SessionNotice, { type: 'ended' }>;
type EndListener = (ended: Ended, session: Session) => void;

/** A session in memory, and how many use it. */
type Entry = {
  readonly session: Session;
  users: number;
  linger?: Timer;
  /** The ids of prompts that an earlier process accepted, whose turns have not ended here. */
  readonly recovered: Set<string>;
};

export type SessionHold = { readonly session: Session; release(): void };

const LINGER_MS = 60_000;

export type Sessions = ReturnType<typeof createSessions>;

/**
 * The sessions of one process, each in memory for as long as it is used or has something to do.
 *
 * @example
 * const sessions = createSessions({ store: sqliteSessionStore({ file: 'sabir.db' }), agent: () => myAgent });
 * createChatGateway({ sessions, authenticate, access });
 */
export function createSessions(options: SessionsOptions) {
  const logger = toSafeLogger(options.logger);
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { lingerMs = LINGER_MS, ...timing } = options.timing ?? {};
  const entries = new Map<string, Entry>();
  const watched = watchStore(options.store, {
    onError: () => options.onStorageError?.(),
    now: () => performance.now(),
  });
  const { store } = watched;
  const { log = options.store.log } = options;
  const otherAdopters = new Set<(orphan: OrphanedTurn) => Promise<boolean>>();
  const endListeners = new Set<EndListener>();
  let stopAdopting: (() => void) | undefined;
  let isClosing = false;
  let onQuiet: (() => void) | undefined;

  function entryOf(sessionId: string): Entry {
    const known = entries.get(sessionId);
    if (known) return known;
    const { agent, clock, errorText } = options;
    const storage = store.open(sessionId);
    const recovered = new Set(storage.openPrompts().map(({ promptId }) => promptId));
    const session = new Session({
      sessionId,
      storage,
      log,
      timing,
      limits,
      onRunnerWanted: () => queueMicrotask(() => callRunner(sessionId)),
      ...(agent && { agent: () => agent(sessionId) }),
      ...(clock && { clock }),
      ...(errorText && { errorText }),
      ...(options.onLimit && { onLimit: options.onLimit }),
      ...(logger && { logger }),
    });
    const entry: Entry = { session, users: 0, recovered };
    entries.set(sessionId, entry);
    session.subscribe((notice) => {
      options.onNotice?.(notice, session);
      if (notice.type === 'ended' && recovered.delete(notice.prompt.promptId)) {
        const [listener] = endListeners;
        listener?.(notice, session);
      }
      if (notice.type !== 'idle') return;
      lingerIfUnused(entry);
      if (isClosing && isQuiet()) onQuiet?.();
    });
    return entry;
  }

  function callRunner(sessionId: string): void {
    try {
      options.onRunnerWanted?.(sessionId);
    } catch (error) {
      logger?.error?.('onRunnerWanted failed', { sessionId, error: withText(error) });
    }
  }

  function isQuiet(): boolean {
    return [...entries.values()].every(({ session }) => session.isIdle);
  }

  /** A session that is not used is kept for a moment: a page that reloads comes back at once. */
  function lingerIfUnused(entry: Entry): void {
    const { session } = entry;
    const isUnused = () => entry.users === 0 && session.isIdle;
    if (isClosing || !isUnused()) return;
    entry.linger?.clear();
    entry.linger = startTimeout(lingerMs, () => {
      if (!isUnused() || entries.get(session.sessionId) !== entry) return;
      entries.delete(session.sessionId);
      void session.close();
      options.onSessionClosed?.(session.sessionId);
    });
  }

  /** Offers a turn whose process is gone to its session, or to those who have other turns in the log. */
  async function adopt(orphan: OrphanedTurn): Promise<boolean> {
    const { session: sessionId, promptId } = readOrigin(orphan.origin) ?? {};
    if (sessionId !== undefined && promptId !== undefined) {
      return entryOf(sessionId).session.adopt(orphan, promptId);
    }
    for (const adoptOther of otherAdopters) if (await adoptOther(orphan)) return true;
    return false;
  }

  return {
    log,
    limits,
    /** The sessions in memory. */
    all: (): Session[] => [...entries.values()].map(({ session }) => session),
    get size() {
      return entries.size;
    },
    /** Keeps a session in memory until it is released; a runner's hold only until the last user has left. */
    hold(sessionId: string, holder: 'user' | 'runner' = 'user'): SessionHold {
      const entry = entryOf(sessionId);
      const users = holder === 'user' ? 1 : 0;
      entry.linger?.clear();
      entry.users += users;
      let isReleased = false;
      return {
        session: entry.session,
        release() {
          if (isReleased) return;
          isReleased = true;
          entry.users -= users;
          lingerIfUnused(entry);
        },
      };
    },
    /** Why no more sessions should be sent here; empty while all is well. */
    problems: (): string[] => [
      ...(isClosing ? ['closing'] : []),
      ...(watched.isFailing ? ['storage-failing'] : []),
    ],
    /**
     * Offers turns of the log that are of no session: a turn that is offered and not adopted is lost, so that there is one
     * subscription for all, from `recover` on. Returns a function that ends it.
     */
    adoptOthers(adoptOther: (orphan: OrphanedTurn) => Promise<boolean>): () => void {
      otherAdopters.add(adoptOther);
      return () => void otherAdopters.delete(adoptOther);
    },
    /**
     * Calls `listener` when a turn ends whose prompt an earlier process accepted. Of several listeners only the first is
     * called, since `onFinish` runs once. Returns a function that ends the subscription.
     */
    onRecoveredEnd(listener: EndListener): () => void {
      endListeners.add(listener);
      return () => void endListeners.delete(listener);
    },
    /** The prompts that run or wait and that an earlier process accepted, with their sessions. */
    recovered: (): { session: Session; prompt: PromptInfo }[] =>
      [...entries.values()].flatMap(({ session, recovered }) =>
        [...(session.running ? [session.running] : []), ...session.queue.list()]
          .filter(({ promptId }) => recovered.has(promptId))
          .map((prompt) => ({ session, prompt })),
      ),
    /** Takes up what was under way when the process ended. Call it when agents can be reached. */
    recover(): void {
      stopAdopting ??= log.onOrphan(adopt);
      for (const sessionId of store.unfinished()) {
        try {
          const entry = entryOf(sessionId);
          entry.session.recover().catch((error: unknown) => {
            logger?.error?.('a session could not be recovered', {
              sessionId,
              error: nameOf(error),
            });
          });
          lingerIfUnused(entry);
        } catch (error) {
          // One damaged session must not keep the others from starting.
          logger?.error?.('a session could not be recovered', { sessionId, error: nameOf(error) });
        }
      }
    },
    /** Takes no more prompts, waits for what runs, and leaves the rest to the next process. */
    async close(shutdownMs = 5_000): Promise<void> {
      isClosing = true;
      stopAdopting?.();
      for (const { linger, session } of entries.values()) {
        linger?.clear();
        session.drain();
      }
      if (!isQuiet()) {
        const { promise, resolve } = Promise.withResolvers<void>();
        onQuiet = resolve;
        const timer = startTimeout(shutdownMs, resolve);
        await promise;
        timer.clear();
      }
      await Promise.all([...entries.values()].map(({ session }) => session.close()));
      entries.clear();
    },
  };
}

function readOrigin(origin: unknown): SessionOrigin | undefined {
  if (!isObject(origin)) return undefined;
  const { session, promptId } = origin;
  const isOne = typeof session === 'string' && typeof promptId === 'string';
  return isOne ? { session, promptId } : undefined;
}
