/** The few of an OpenCode server's routes that an agent needs. */
import type { OpenCodePermission, OpenCodeQuestion } from './events.ts';
import type { OpenCodeMessage } from './read-events.ts';
import type { PermissionReply } from './requests.ts';

export type OpenCodeServer = {
  url: string;
  /** What proves that we may: `authorization`. */
  headers?: Record<string, string>;
  /** The folder to work in. Default: the one the server was started in. */
  directory?: string;
  fetch?: typeof fetch;
};

export type PromptBody = {
  parts: (
    | { type: 'text'; text: string }
    | { type: 'file'; mime: string; url: string; filename?: string }
  )[];
  model?: { providerID: string; modelID: string };
  agent?: string;
};

type Providers = {
  providers: { id: string; name?: string; models: Record<string, { id: string; name?: string }> }[];
};

/** A request that the server turned down; `message` is its own word for why. */
export class OpenCodeRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = 'OpenCodeRefusal';
    this.status = status;
  }
}

/** The first request to a server may take long: it reads its configuration only then. */
const REQUEST_LIMIT_MS = 30_000;
/** For looking at what it has in memory. */
const LOOK_LIMIT_MS = 3_000;

export type OpenCodeApi = ReturnType<typeof createOpenCodeApi>;

export function createOpenCodeApi({ url, headers, directory, fetch: given }: OpenCodeServer) {
  // As a method of the options it would be called on them, which browsers and Workers refuse.
  const send: typeof fetch = (input, init) => (given ?? fetch)(input, init);

  function addressOf(path: string): URL {
    const address = new URL(`${url.replace(/\/$/, '')}${path}`);
    if (directory !== undefined) address.searchParams.set('directory', directory);
    return address;
  }

  async function request(
    method: 'GET' | 'POST',
    path: string,
    body?: object,
    limitMs = REQUEST_LIMIT_MS,
  ): Promise<unknown> {
    const response = await send(addressOf(path), {
      method,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
      signal: AbortSignal.timeout(limitMs),
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new OpenCodeRefusal(response.status, refusalOf(response, text));
    return text === '' ? undefined : JSON.parse(text);
  }

  const look = (path: string) => request('GET', path, undefined, LOOK_LIMIT_MS);
  const of = (sessionId: string) => `/session/${encodeURIComponent(sessionId)}`;

  return {
    /** The events, for as long as the signal lets them come. */
    events: (signal: AbortSignal): Promise<Response> =>
      send(addressOf('/event'), { headers: { ...headers, accept: 'text/event-stream' }, signal }),
    async createSession(): Promise<string> {
      return ((await request('POST', '/session', {})) as { id: string }).id;
    },
    /** The last so many, the oldest first. */
    messages: (sessionId: string, limit: number) =>
      look(`${of(sessionId)}/message?limit=${limit}`) as Promise<OpenCodeMessage[]>,
    prompt: (sessionId: string, body: PromptBody) =>
      request('POST', `${of(sessionId)}/prompt_async`, body),
    abort: (sessionId: string) => request('POST', `${of(sessionId)}/abort`),
    async isIdle(sessionId: string): Promise<boolean> {
      const statuses = (await look('/session/status')) as Record<string, unknown>;
      return !Object.hasOwn(statuses, sessionId);
    },
    permissions: () => look('/permission') as Promise<OpenCodePermission[]>,
    questions: () => look('/question') as Promise<OpenCodeQuestion[]>,
    replyToPermission: (id: string, reply: PermissionReply, message?: string) =>
      request('POST', `/permission/${encodeURIComponent(id)}/reply`, {
        reply,
        ...(message !== undefined && { message }),
      }),
    replyToQuestion: (id: string, answers: string[][]) =>
      request('POST', `/question/${encodeURIComponent(id)}/reply`, { answers }),
    rejectQuestion: (id: string) => request('POST', `/question/${encodeURIComponent(id)}/reject`),
    config: () => request('GET', '/config') as Promise<{ model?: string }>,
    providers: () => request('GET', '/config/providers') as Promise<Providers>,
  };
}

function refusalOf({ status }: Response, text: string): string {
  try {
    const { data, message } = JSON.parse(text) as { data?: { message?: string }; message?: string };
    const said = data?.message ?? message;
    if (said) return said;
  } catch {
    // Not JSON: a proxy's page, or nothing at all.
  }
  return `OpenCode answered ${status}.`;
}
