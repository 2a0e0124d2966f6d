/** What a browser says when the network goes away under a request. */
const LOST = 'network error: this window was cut off';

/** The way from this window to the server, which can be cut like that of a phone in a tunnel. */
export type Connection = {
  readonly isCut: boolean;
  /** The browser's own, while the way is open; what is under way when it is cut breaks off. */
  fetch: typeof fetch;
  cut(): void;
  mend(): void;
  subscribe(listener: () => void): () => void;
};

export function createConnection(): Connection {
  const listeners = new Set<() => void>();
  let way = new AbortController();
  const tell = () => {
    for (const listener of listeners) listener();
  };
  return {
    get isCut() {
      return way.signal.aborted;
    },
    fetch(address, init) {
      const signals = [way.signal, init?.signal].filter((signal) => signal != null);
      return fetch(address, { ...init, signal: AbortSignal.any(signals) });
    },
    cut() {
      way.abort(new TypeError(LOST));
      tell();
    },
    mend() {
      if (way.signal.aborted) way = new AbortController();
      tell();
      // As a browser does, so that clients need not wait for their next attempt.
      window.dispatchEvent(new Event('online'));
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
