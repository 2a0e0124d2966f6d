const HTML =
  '<!doctype html><title>Chat</title><link rel="icon" href="data:,"><div id="root"></div>' +
  '<script type="module" src="page.js"></script>';

/** The files of a page; undefined for any other address. */
export function pageFile(pathname: string, script: string): Response | undefined {
  if (pathname === '/') return new Response(HTML, { headers: { 'content-type': 'text/html' } });
  if (pathname !== '/page.js') return undefined;
  return new Response(script, { headers: { 'content-type': 'text/javascript' } });
}
