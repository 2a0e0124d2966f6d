import { LOG_UNAVAILABLE, SabirError } from '../../core/errors.ts';
import { withoutContent } from '../../core/without-content.ts';

/** What a server says that will soon be able to do it, or another in its place. */
const PASSING =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|MOVED|ASK)\b/;

/** What to do about those that do not pass by themselves. Redis's own words may quote what was to be kept. */
const REMEDIES: [RegExp, string][] = [
  [/^NOPERM|can't run this command|no permissions/i, 'this user may not do what is needed'],
  [/^(NOAUTH|WRONGPASS)/, 'it wants a password, or another one'],
  [/unknown (redis )?command/i, 'it is older than Redis 6.2, or a command was renamed'],
  [/WRONGTYPE/, 'somebody else keeps something under these names: say another { prefix }'],
  [/subscribe/i, 'this client listens to channels: give it one that does not'],
];

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

/**
 * For people it is always the same; why is for whoever reads the logs: what Redis refused, or else
 * what is wrong with the connection.
 */
export function toLogError(error: unknown, trouble: string): SabirError {
  if (error instanceof SabirError) return error;
  const refusal = refusalOf(error);
  const { message = '' } = error as { message?: string };
  const [, remedy] = REMEDIES.find(([words]) => words.test(message)) ?? [];
  const why = refusal ? `Redis says ${refusal}${remedy ? `: ${remedy}` : ''}` : trouble;
  return new SabirError(LOG_UNAVAILABLE, undefined, { cause: { why, ...withoutContent(error) } });
}
