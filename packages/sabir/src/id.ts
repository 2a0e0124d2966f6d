/**
 * An id that is not met twice. Not a secret: `crypto.randomUUID` would be missing on a page that
 * is served over plain HTTP from another machine.
 */
export function createId(): string {
  return Math.random().toString(36).slice(2) + Date.now().toString(36);
}
