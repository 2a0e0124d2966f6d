import { type ChatRequest, parseChatRequest } from '../../chat-request.ts';
import { METHOD_NOT_ALLOWED, SabirError } from '../../errors.ts';
import type { LiveLog } from '../../live-log.ts';
import { SSE_HEADERS, toSseBody } from '../../sse-response.ts';
import type { Runtime } from './events.ts';
import type { OpenHarnessOptions } from './options.ts';
import {
  acknowledge,
  assertRuntime,
  createRuntimeDriver,
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
  runtime: (context: HandlerContext) => Runtime | Promise<Runtime>,
  options: OpenHarnessHandlerOptions = {},
): (request: Request) => Promise<Response> {
  const { maxBodyBytes = 1_000_000, keepAliveMs = 15_000, headers = {} } = options;

  async function start(context: HandlerContext): Promise<LiveLog> {
    const { messages, trigger, request } = context;
    const acknowledged = acknowledge(messages, trigger);
    if (acknowledged) return acknowledged;
    let driver: RuntimeDriver;
    try {
      driver = createRuntimeDriver(assertRuntime(await runtime(context)), options);
    } catch (error) {
      if (error instanceof Response) throw error;
      options.logger?.error?.('the runtime could not be created', { error: String(error) });
      return failedLog(options, error);
    }
    const log = driver.send(messages);
    const stop = () => driver.live === log && driver.stop();
    request.signal.addEventListener('abort', stop, { once: true });
    if (request.signal.aborted) stop();
    return log;
  }

  return async (request) => {
    try {
      // A stock client asks here whether a turn is still running; a single route keeps none.
      if (request.method === 'GET') return new Response(null, { status: 204, headers });
      if (request.method !== 'POST') throw new SabirError(METHOD_NOT_ALLOWED);
      const context = { ...(await parseChatRequest(request, maxBodyBytes)), request };
      const log = await start(context);
      return new Response(toSseBody(log.read(), keepAliveMs), {
        headers: { ...SSE_HEADERS, ...headers },
      });
    } catch (error) {
      if (error instanceof Response) return error;
      if (!(error instanceof SabirError)) throw error;
      const { code, status, message, remedy } = error;
      return Response.json({ code, message, remedy }, { status, headers });
    }
  };
}
