import { type ChatRequest, lastUserText, parseChatRequest } from '../../core/chat-request.ts';
import { METHOD_NOT_ALLOWED, NO_USER_MESSAGE, RUN_FAILED, SabirError } from '../../core/errors.ts';
import type { LiveLog } from '../../core/live-log.ts';
import { quietly } from '../../core/quietly.ts';
import { SSE_HEADERS, toSseBody } from '../../core/sse-response.ts';
import { withoutContent } from '../../core/without-content.ts';
import type { Runtime } from './events.ts';
import type { OpenHarnessOptions } from './options.ts';
import {
  acknowledge,
  createDrivers,
  endedLog,
  failedLog,
  type RuntimeDriver,
} from './runtime-driver.ts';

export interface OpenHarnessHandlerOptions extends OpenHarnessOptions {
  /** Default 1 MB. */
  maxBodyBytes?: number;
  /** How often a silent stream sends a comment, so that proxies keep it open. Default 15,000. */
  keepAliveMs?: number;
  /** Added to every response, CORS headers for example. */
  headers?: Record<string, string>;
}

/** What a factory may want to know: who asks, and which chat it is. */
export type HandlerContext = ChatRequest & { request: Request };

/**
 * An Open Harness flow behind a server route: keys stay on the server, any AI SDK client works.
 * A client that disconnects stops its run. Throw a `Response` from the factory to refuse.
 *
 * @example
 * export const POST = createOpenHarnessHandler(() => createRuntime(flow));
 */
export function createOpenHarnessHandler(
  createRuntime: (context: HandlerContext) => Runtime | Promise<Runtime>,
  options: OpenHarnessHandlerOptions = {},
): (request: Request) => Promise<Response> {
  const { maxBodyBytes = 1_000_000, keepAliveMs = 15_000 } = options;
  const { logger = console } = options;
  const driverOf = createDrivers(options);

  async function start(context: HandlerContext): Promise<LiveLog> {
    const { messages, trigger, request } = context;
    const { signal } = request;
    const acknowledged = acknowledge(messages, trigger);
    if (acknowledged) return acknowledged;
    if (lastUserText(messages) === undefined) throw new SabirError(NO_USER_MESSAGE);
    if (signal.aborted) return endedLog(options, { status: 'stopped' });
    let driver: RuntimeDriver;
    try {
      driver = driverOf(await createRuntime(context));
    } catch (cause) {
      if (cause instanceof Response || cause instanceof SabirError) throw cause;
      // What a factory says may hold an address or a key: it goes to the operator only.
      const error = withoutContent(cause);
      quietly(() => logger.error?.('the runtime could not be created', { error }));
      return failedLog(options, new SabirError(RUN_FAILED, undefined, { cause }));
    }
    // The client may have left while the runtime was being made.
    if (signal.aborted) return endedLog(options, { status: 'stopped' });
    const log = driver.send(messages);
    signal.addEventListener('abort', () => driver.live === log && driver.stop(), { once: true });
    return log;
  }

  /** The operator's headers win, on whatever is answered. */
  function answer(body: BodyInit | null, status: number, headers: HeadersInit): Response {
    const all = new Headers(headers);
    for (const [name, value] of Object.entries(options.headers ?? {})) all.set(name, value);
    return new Response(body, { status, headers: all });
  }

  return async (request) => {
    try {
      // A stock client asks by GET whether a turn is still running; a single route keeps none.
      if (request.method === 'GET' || request.method === 'OPTIONS') return answer(null, 204, {});
      if (request.method !== 'POST') throw new SabirError(METHOD_NOT_ALLOWED);
      const context = { ...(await parseChatRequest(request, maxBodyBytes)), request };
      const log = await start(context);
      return answer(toSseBody(log.read(), keepAliveMs), 200, SSE_HEADERS);
    } catch (error) {
      // Cloned, because it may be a constant that is thrown again.
      if (error instanceof Response) {
        return answer(error.clone().body, error.status, error.headers);
      }
      if (!(error instanceof SabirError)) throw error;
      const { code, status, message, remedy } = error;
      return answer(JSON.stringify({ code, message, remedy }), status, {
        'content-type': 'application/json',
        ...(status === 405 ? { allow: 'POST' } : undefined),
      });
    }
  };
}
