import { LOG_UNAVAILABLE, SabirError } from '../../errors.ts';
import { withoutContent } from '../without-content.ts';

/** What a server says that will soon be able to do it, or another in its place. */
const PASSING =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|MOVED|ASK)\b/;

/**
 * The first word of a refusal is Redis's own; other errors are those of the client. Before Redis 7 what
 * a script was refused is said behind it.
 */
export function refusalOf(error: unknown): string | undefined {
  const { message = '' } = (error ?? {}) as { message?: string };
  const [, inScript] = /^ERR Error running script .* -([A-Z]{3,}) /.exec(message) ?? [];
  return inScript ?? /^([A-Z]{3,}) /.exec(message)?.[1];
}

/** A connection that is lost comes back; what Redis refuses it will refuse again, mostly. */
export function isPassing(error: unknown): boolean {
  if (error instanceof SabirError) return error.code === LOG_UNAVAILABLE.code;
  const refusal = refusalOf(error);
  return refusal === undefined || PASSING.test(refusal);
}

/** A client's own errors quote the command that failed, and what was to be kept with it. */
export function toLogError(error: unknown): SabirError {
  if (error instanceof SabirError) return error;
  const refusal = refusalOf(error);
  const detail = refusal && `${LOG_UNAVAILABLE.userMessage} Redis says ${refusal}.`;
  return new SabirError(LOG_UNAVAILABLE, detail, { cause: withoutContent(error) });
}
