/** Keeps other sites from spending this server's model key through a visitor's browser. */
export function refuseForeign(request: Request): Response | undefined {
  const site = request.headers.get('sec-fetch-site');
  if (site && site !== 'same-origin' && site !== 'none') {
    return refuse(403, 'Requests from other sites are not accepted.');
  }
  if (
    request.method === 'POST' &&
    !request.headers.get('content-type')?.startsWith('application/json')
  ) {
    return refuse(415, 'The body must be JSON.');
  }
}

export function refuse(status: number, message: string, headers?: HeadersInit): Response {
  return Response.json({ code: `http_${status}`, message }, { status, headers });
}
