export type Cors = {
  /** Who may call from a browser: origins, `*` for everybody, or a decision. */
  origins: '*' | readonly string[] | ((origin: string) => boolean);
  /** Cookies may come along. Not with `*`. */
  credentials?: boolean;
  /** How long a browser remembers the preflight, in seconds. Default 600. */
  maxAge?: number;
  /**
   * Called with the origin of a page that may not call: for each request that the server refuses, and for each
   * whose answer the browser withholds.
   */
  onRefused?(origin: string): void;
};

const ALLOWED_HEADERS =
  'authorization, content-type, last-event-id, x-sabir-detach, x-sabir-resume, x-sabir-attempt, x-sabir-ai-sdk';
const EXPOSED_HEADERS =
  'x-vercel-ai-ui-message-stream, x-sabir-turn, x-resumable-stream-id, retry-after';

export function allowsOrigin(cors: Cors | undefined, origin: string): boolean {
  const { origins = [] } = cors ?? {};
  if (origins === '*') return true;
  return typeof origins === 'function' ? origins(origin) : origins.includes(origin);
}

/** The CORS headers for an answer to this request; none where it is of no concern. */
export function corsHeaders(cors: Cors | undefined, request: Request): Record<string, string> {
  const origin = request.headers.get('origin');
  if (!cors || !origin) return {};
  const { origins, credentials = false } = cors;
  if (!allowsOrigin(cors, origin)) return { vary: 'origin' };
  const headers: Record<string, string> = {
    // Browsers refuse a star together with credentials.
    'access-control-allow-origin': origins === '*' && !credentials ? '*' : origin,
    'access-control-expose-headers': EXPOSED_HEADERS,
    vary: 'origin',
  };
  if (credentials && origins !== '*') headers['access-control-allow-credentials'] = 'true';
  if (request.method === 'OPTIONS') {
    headers['access-control-allow-methods'] = 'GET, POST, OPTIONS';
    headers['access-control-allow-headers'] = ALLOWED_HEADERS;
    headers['access-control-max-age'] = String(cors.maxAge ?? 600);
  }
  return headers;
}
