/** Runs code of the application, such as its logger, whose errors must change nothing: they are dropped. */
export function quietly(run: () => unknown): void {
  try {
    const result = run();
    // What fails later must not become an unhandled rejection.
    if (result instanceof Promise) result.catch(() => undefined);
  } catch {
    // There is nowhere left to report it.
  }
}
