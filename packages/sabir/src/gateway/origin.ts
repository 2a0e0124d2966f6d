import { allowsOrigin, type Cors } from './cors.ts';

/** Schemes whose credentials a browser remembers and adds to every request, whichever page sends it. */
const BY_BROWSER = /^(basic|digest|negotiate|ntlm)\b/i;

/**
 * Whether this request cannot be one that a foreign page had somebody's browser send with their
 * cookies: such a request names its origin, and has no `Authorization` but the browser's own. A page can
 * only add one where CORS lets it.
 */
export function isTrustedPage(request: Request, cors: Cors | undefined): boolean {
  const { headers } = request;
  const origin = headers.get('origin');
  const authorization = headers.get('authorization');
  const isAddedByPage = authorization !== null && !BY_BROWSER.test(authorization.trim());
  if (origin === null || isAddedByPage || isOwnPage(request, origin)) return true;
  // A star lets everybody in, but nobody with cookies.
  if (cors?.origins === '*' && (headers.has('cookie') || authorization !== null)) return false;
  return allowsOrigin(cors, origin);
}

/** Calls `onRefused` for a request that is not from a trusted page. */
export function reportPage({ headers }: Request, cors: Cors | undefined): void {
  cors?.onRefused?.(headers.get('origin') ?? 'null');
}

/** Whether a page of this very server asks. */
export function isOwnPage({ headers, url }: Request, origin: string): boolean {
  // The browser's word, which no page can change. It holds behind a proxy that renames the host.
  const site = headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin';
  // Only hosts are compared: which scheme the browser used is not known behind a proxy.
  const asking = URL.canParse(origin) ? new URL(origin).host : '';
  return asking !== '' && asking === (headers.get('host') ?? new URL(url).host);
}
