/** A server that speaks the contract as the test tells it, over real sockets. */

import type { StreamEvent } from '../src/wires/contract/events.ts';
import { toContractSse } from '../src/wires/contract/events.ts';
import { createBody, startServer } from './raw-http.ts';

export type SeenRequest = { method: string; path: string; headers: Headers; body: unknown };

type Stream = ReturnType<typeof createBody> & {
  /** Sends events; those with a number have it as their id. */
  send(...events: Array<StreamEvent & { seq?: number }>): void;
  end(): void;
};

const TURN = 'turn-1';

/** What one event is on the wire, of a turn that is numbered. */
function frameOf({ seq, type, data }: StreamEvent & { seq?: number }): string {
  return toContractSse({ type, data } as never, seq === undefined ? undefined : `${TURN}:${seq}`);
}

/**
 * Answers every request with a stream that the test writes into, or with what `answer` gives.
 * `isNumbered`: names its turn, as a gateway does.
 */
export async function startContractServer(
  options: {
    isNumbered?: boolean;
    answer?: (request: SeenRequest) => Response | Promise<Response> | undefined;
  } = {},
) {
  const requests: SeenRequest[] = [];
  const streams: Stream[] = [];
  const { url } = await startServer(async (request) => {
    const { method, headers } = request;
    const text = await request.text();
    const path = new URL(request.url).pathname;
    const seen = { method, path, headers, body: text ? JSON.parse(text) : undefined };
    requests.push(seen);
    const answered = options.answer?.(seen);
    if (answered) return answered;
    const body = createBody();
    streams.push({
      ...body,
      send: (...events) => body.write(events.map(frameOf).join('')),
      end: () => body.controller.close(),
    });
    return new Response(body.body, {
      headers: {
        'content-type': 'text/event-stream',
        ...(options.isNumbered && { 'x-sabir-turn': TURN }),
      },
    });
  });
  return { api: `${url}/api/chat`, requests, streams };
}

export const event = (type: string, data: object = {}): StreamEvent => ({ type, data });
