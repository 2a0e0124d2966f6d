import { INTERNAL_ERROR, SabirError } from '../errors.ts';

export function nothing(): Response {
  return new Response(null, { status: 204 });
}

export function json(status: number, body: unknown): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } });
}

export function toErrorResponse(error: unknown): Response {
  const known = error instanceof SabirError ? error : new SabirError(INTERNAL_ERROR);
  const { code, status, message, remedy } = known;
  const response = json(status, { code, message, remedy });
  if (status === 401) response.headers.set('www-authenticate', 'Bearer');
  if (status === 503) response.headers.set('retry-after', '1');
  if (status === 429) response.headers.set('retry-after', '5');
  // The rest of the body would come on this connection.
  if (status === 408) response.headers.set('connection', 'close');
  return response;
}
