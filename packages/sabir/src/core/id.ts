/**
 * An id that is not met twice, and that nobody can guess. `crypto.randomUUID` would be missing on a
 * page that is served over plain HTTP from another machine.
 */
export function createId(): string {
  return crypto.getRandomValues(new Uint32Array(5)).join('');
}
