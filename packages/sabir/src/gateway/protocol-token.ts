/** Browsers can send no header with a WebSocket: there the token comes as a protocol. */
export function withProtocolToken(request: Request): Request {
  const protocols = (request.headers.get('sec-websocket-protocol') ?? '').split(/,\s*/);
  const token = protocols.find((protocol) => protocol.startsWith('bearer.'));
  if (!token || request.headers.has('authorization')) return request;
  const headers = new Headers(request.headers);
  headers.set('authorization', `Bearer ${token.slice('bearer.'.length)}`);
  return new Request(request.url, { headers });
}
