/** What the transports' requests have in common. */

/** A value, or how to come by it: asked anew for every request, so that tokens are fresh. */
export type Resolvable<T> = T | (() => T | Promise<T>);

export function resolve<T>(value: Resolvable<T>): T | Promise<T>;
export function resolve<T, Given>(value: T | ((given: Given) => T), given: Given): T;
export function resolve(value: unknown, given?: unknown): unknown {
  return typeof value === 'function' ? value(given) : value;
}

/** `/chat/…` of one chat, before a query. */
export function chatUrl(api: string, chatId: string, verb: string): string {
  return api.replace(/\/?(?=[?#]|$)/, `/${encodeURIComponent(chatId)}/${verb}`);
}

/** For people; the status is beside it. */
const NO_ANSWER = 'The server could not answer.';

/** What a server said instead of an answer, all of it. `message` is fit for people. */
export type ChatRequestError = Error & {
  status: number;
  code?: unknown;
  remedy?: unknown;
  answer?: unknown;
};

/** What it says, where those are words; and what else is known of it. */
export function toError<T>(words?: unknown, more?: T): Error & T {
  return Object.assign(new Error(typeof words === 'string' ? words : NO_ANSWER), more as T);
}

export async function toRequestError(response: Response): Promise<ChatRequestError> {
  // A proxy's page of HTML says nothing.
  const { message, __proto__: _, ...said } = (await response.json().catch(() => undefined)) ?? {};
  return toError(message, { ...said, status: response.status });
}

export type AnswerResult = { status: 'accepted' | 'answered' | 'expired'; answer?: unknown };

/** What became of an answer that was posted. That another was faster is no failure. */
export function toAnswerResult(posted: Promise<unknown>): Promise<AnswerResult> {
  return posted.then(
    () => ({ status: 'accepted' }),
    (error: ChatRequestError) => {
      if (error.status === 410) return { status: 'expired' };
      if (error.status === 409) return { status: 'answered', answer: error.answer };
      throw error;
    },
  );
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
