import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { RequestHandler } from 'express';

/**
 * A handler of `Request` and `Response` as an Express one. Mount it before any body parser: it
 * reads the body itself. `pipeline` waits for a slow client, and cancels the response's body
 * when the client goes away; the request's signal fires then too.
 */
export function toExpress(handler: (request: Request) => Promise<Response>): RequestHandler {
  return async (req, res) => {
    const gone = new AbortController();
    res.once('close', () => gone.abort());
    try {
      const hasBody = req.method !== 'GET' && req.method !== 'HEAD';
      const request = new Request(`${req.protocol}://${req.host}${req.originalUrl}`, {
        method: req.method,
        headers: Object.entries(req.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        ),
        ...(hasBody && { body: Readable.toWeb(req) as ReadableStream, duplex: 'half' }),
        signal: gone.signal,
      });
      // Node's `request.signal` never fires once the request itself has been collected, so the
      // request stays within reach for as long as the response does.
      res.locals.request = request;
      const response = await handler(request);
      // `pipeline` leaves the body as it is where there is no longer anything to write to.
      if (gone.signal.aborted) return await response.body?.cancel();
      res.status(response.status).setHeaders(response.headers).flushHeaders();
      if (response.body) await pipeline(Readable.fromWeb(response.body as NodeReadableStream), res);
      else res.end();
    } catch (error) {
      // Nobody is left to be told that the client went away; the rest is for Express.
      if (!gone.signal.aborted) throw error;
    }
  };
}
