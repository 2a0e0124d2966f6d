/** What the transports' requests have in common. */

/** A value, or how to come by it: asked anew for every request, so that tokens are fresh. */
export type Resolvable<T> = T | (() => T | Promise<T>);

export function resolve<T>(value: Resolvable<T>): T | Promise<T> {
  return typeof value === 'function' ? (value as () => T | Promise<T>)() : value;
}

/** `/chat/…` of one chat, before a query. Parsers take dot segments for a way up, even encoded ones. */
export function chatUrl(api: string, chatId: string, verb: string): string {
  if (/^\.{0,2}$/.test(chatId)) throw new TypeError(`"${chatId}" cannot be the id of a chat.`);
  return api.replace(/\/?(?=[?#]|$)/, `/${encodeURIComponent(chatId)}/${verb}`);
}

/** What a server said instead of an answer. `message` is fit for people. */
export class ChatRequestError extends Error {
  override readonly name = 'ChatRequestError';
  readonly status: number;
  readonly code: string | undefined;
  readonly remedy: string | undefined;

  constructor(status: number, said: Record<string, unknown>) {
    super(text(said.message) ?? `The server could not answer (status ${status}).`);
    this.status = status;
    this.code = text(said.code);
    this.remedy = text(said.remedy);
  }
}

const text = (value: unknown) => (typeof value === 'string' && value ? value : undefined);

/** The body as an object, whatever it is; a proxy's page of HTML says nothing. */
export async function readJson(response: Response): Promise<Record<string, unknown>> {
  try {
    return Object(await response.json());
  } catch {
    return {};
  }
}

export async function toRequestError(response: Response): Promise<ChatRequestError> {
  return new ChatRequestError(response.status, await readJson(response));
}

/** How long a server asks to be left alone: seconds, or a date. A minute at most. */
export function retryAfterMs(response: Response): number {
  const asked = response.headers.get('retry-after') ?? '';
  const ms = /^\s*\d+\s*$/.test(asked) ? Number(asked) * 1000 : Date.parse(asked) - Date.now();
  return Math.min(Math.max(ms || 0, 0), 60_000);
}

/**
 * Does not keep a process alive that has nothing else to do; browsers have no such thing. Never
 * fires where there is no limit. Gives a function that clears it.
 */
export function setQuietTimeout(callback: () => void, ms: number): () => void {
  if (!(ms > 0 && ms < 2 ** 31)) return () => undefined;
  const timer: unknown = setTimeout(callback, ms);
  (timer as { unref?: () => void }).unref?.();
  return () => clearTimeout(timer as number);
}
