/** Runs somebody else's clean-up: what it throws or rejects with concerns nobody any more. */
export async function forget(run: () => unknown): Promise<void> {
  try {
    await run();
  } catch {
    // See above.
  }
}
