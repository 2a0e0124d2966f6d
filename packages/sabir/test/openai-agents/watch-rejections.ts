import { afterEach, beforeEach, expect } from 'vitest';

/** Fails each test of the file in which a promise was rejected that nobody looked at. */
export function watchRejections(): void {
  let unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);

  beforeEach(() => {
    unhandled = [];
    process.on('unhandledRejection', onUnhandled);
  });
  afterEach(async () => {
    // Node tells of a rejection only after the tick in which nobody took it.
    await new Promise((resolve) => setTimeout(resolve));
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled).toEqual([]);
  });
}
