/** Servers that are for this machine only, and pages that try to reach them through a name of their own. */
import { HOST_REFUSED, SabirError } from '../../core/errors.ts';
import { toErrorResponse } from '../../gateway/responses.ts';

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host) || /\.localhost$/i.test(host);
}

/**
 * Refuses a request whose Host is not this machine. A web page can have its own name resolve to 127.0.0.1, and its
 * browser then lets it read the answers; the Host header still has the page's name.
 */
export function refuseRebound({ headers, url }: Request): Response | undefined {
  const host = headers.get('host') ?? new URL(url).host;
  if (isLoopback(host.replace(/:\d+$/, ''))) return undefined;
  return toErrorResponse(new SabirError(HOST_REFUSED));
}
