/** Runs clean-up code of the application or an agent, and drops its errors: the work it belongs to is over. */
export async function forget(run: () => unknown): Promise<void> {
  try {
    await run();
  } catch {
    // See above.
  }
}
