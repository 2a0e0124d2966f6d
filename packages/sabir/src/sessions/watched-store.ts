import type { SessionStorage, SessionStore } from './storage.ts';

/** How long a failed write speaks against a store. After that the next write decides. */
const FAILING_MS = 10_000;

type Watcher = { onError(): void; now(): number };
type Call = (...args: unknown[]) => unknown;

/** A session store whose failures are counted, for metrics and for `/readyz`. */
export function watchStore(store: SessionStore, { onError, now }: Watcher) {
  /** An error passes every transaction around the call that failed, and is counted once. */
  const seen = new WeakSet<object>();
  let failedAt: number | undefined;

  function watchCall(name: string, call: Call): Call {
    return (...args) => {
      try {
        const result = call(...args);
        if (name === 'transaction') failedAt = undefined;
        return name === 'open' ? watch(result as SessionStorage) : result;
      } catch (error) {
        failedAt = now();
        const isNew = !(error instanceof Error && seen.has(error));
        if (error instanceof Error) seen.add(error);
        if (isNew) onError();
        throw error;
      }
    };
  }

  /** A proxy, because an application's store may be an instance of a class. */
  function watch<Watched extends SessionStore | SessionStorage>(watched: Watched): Watched {
    const calls = new Map<string, unknown>();
    return new Proxy(watched, {
      get(target, name: string) {
        if (!calls.has(name)) {
          const member: unknown = Reflect.get(target, name);
          const isCall = typeof member === 'function';
          calls.set(name, isCall ? watchCall(name, member.bind(target) as Call) : member);
        }
        return calls.get(name);
      },
    });
  }

  return {
    store: watch(store),
    /** A write failed a moment ago, and none has succeeded since. */
    get isFailing() {
      return failedAt !== undefined && now() - failedAt < FAILING_MS;
    },
  };
}
