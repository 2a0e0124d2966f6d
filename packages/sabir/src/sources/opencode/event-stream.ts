import { createSseDecoder } from '../../core/sse.ts';
import type { Logger } from '../../core/translator.ts';
import type { OpenCodeApi } from './api.ts';

export type EventStream = {
  /** Resolves when events come; rejects if that is not to be hoped for. */
  readonly ready: Promise<void>;
  close(): void;
};

/** The first try comes at once. */
const MAX_PAUSE_MS = 1_000;

/**
 * The one `/event` stream of a server, opened again whenever it breaks. Half-open connections are
 * noticed by their silence: the server sends a heartbeat every ten seconds.
 */
export function createEventStream(
  api: OpenCodeApi,
  options: {
    /** How long nothing may come, not even a heartbeat. */
    silenceMs: number;
    /** How long it may be tried in vain. */
    reconnectMs: number;
    event(event: unknown): void;
    /** Events come again; some may have been missed. */
    reconnected(): void;
    /** It could not be opened again. */
    lost(error: Error): void;
    logger?: Logger | undefined;
  },
): EventStream {
  const closing = new AbortController();
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
  ready.catch(() => {
    // Whoever waits for it is told; nobody has to.
  });
  let hasConnected = false;

  async function run(): Promise<void> {
    let failingSince: number | undefined;
    let pauseMs = 0;
    while (!closing.signal.aborted) {
      let problem: unknown = new Error('The event stream ended.');
      try {
        await connect(() => {
          failingSince = undefined;
          pauseMs = 0;
        });
      } catch (error) {
        problem = error;
      }
      if (closing.signal.aborted) return;
      failingSince ??= Date.now();
      if (Date.now() - failingSince >= options.reconnectMs) {
        const error = new Error('The connection to OpenCode was lost.', { cause: problem });
        reject(error);
        options.lost(error);
        return;
      }
      options.logger?.warn('the event stream of OpenCode broke', { error: problem });
      await pause(pauseMs, closing.signal);
      pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2 || 50);
    }
  }

  /** Reads one connection to its end. */
  async function connect(onOpen: () => void): Promise<void> {
    const silence = new AbortController();
    const signal = AbortSignal.any([closing.signal, silence.signal]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const hear = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(new Error('OpenCode is silent.')), options.silenceMs);
    };
    hear();
    try {
      const response = await api.events(signal);
      if (!response.ok || !response.body) throw new Error(`OpenCode answered ${response.status}.`);
      const decoder = createSseDecoder({
        bytes: hear,
        frame({ data }) {
          const event = parse(data);
          if ((event as { type?: unknown } | undefined)?.type === 'server.connected') {
            onOpen();
            opened();
          }
          options.event(event);
        },
      });
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        decoder.push(value);
      }
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  function opened(): void {
    if (hasConnected) options.reconnected();
    hasConnected = true;
    resolve();
  }

  // It catches what it meets on the way.
  void run();
  return {
    ready,
    close() {
      closing.abort();
      reject(new Error('The agent was closed.'));
    },
  };
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

/** Ends early when the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}
