/** A random id. `crypto.randomUUID` exists only in secure contexts: not on http://192.168.… */
export function createId(): string {
  return crypto.randomUUID?.() ?? Math.random().toString(36).slice(2) + Date.now().toString(36);
}
