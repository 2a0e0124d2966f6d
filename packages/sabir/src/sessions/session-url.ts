/** The address of a session's socket on a session server, for one role. */
export function sessionUrl(
  server: string,
  sessionId: string,
  query: Record<string, string>,
): string {
  const url = new URL(server.replace(/^http/i, 'ws'));
  const base = url.pathname.replace(/\/+$/, '');
  url.pathname = `${base}/api/sessions/${encodeURIComponent(sessionId)}/ws`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url.href;
}
