import { createOpenHarnessHandler } from 'sabir/open-harness';
import { createDemoFlow } from '../flow/demo-flow.ts';
import { toFlowInput } from '../flow/flow-input.ts';
import type { Model } from '../flow/model.ts';
import type { Fetch } from './node-listener.ts';
import type { StaticFiles } from './static-files.ts';

const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

export type AppOptions = { model: Model; speed?: number; files?: StaticFiles };

/** All routes of the demo's server, as one function from request to response. */
export function createApp({ model, speed, files }: AppOptions): Fetch {
  const runs = { active: 0, finished: 0, failed: 0, stopped: 0 };

  const createCountedFlow = () => {
    const runtime = createDemoFlow({ model, speed });
    runtime.onEvent((event) => {
      if (event.type === 'flow:start') runs.active += 1;
      if (event.type !== 'flow:complete' && event.type !== 'flow:aborted') return;
      runs.active -= 1;
      if (event.type === 'flow:aborted') runs.stopped += 1;
      else if (event.status === 'failed') runs.failed += 1;
      else runs.finished += 1;
    });
    return runtime;
  };

  const runFlow = createOpenHarnessHandler(createCountedFlow, {
    sendFlowMetadata: true,
    toInput: toFlowInput,
  });

  const route = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === '/api/flow') return refuseForeign(request) ?? runFlow(request);
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return refuse(405, 'This address can only be read.', { allow: 'GET, HEAD' });
    }
    if (pathname === '/healthz') return Response.json({ status: 'ok', model: model.name, runs });
    const encoding = request.headers.get('accept-encoding') ?? '';
    return files?.respond(pathname, encoding) ?? refuse(404, 'There is nothing at this address.');
  };

  return async (request) => {
    const response = await route(request);
    for (const [name, value] of Object.entries(COMMON_HEADERS)) response.headers.set(name, value);
    return response;
  };
}

/** Keeps other sites from spending this server's model key through a visitor's browser. */
function refuseForeign(request: Request): Response | undefined {
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

function refuse(status: number, message: string, headers?: HeadersInit): Response {
  return Response.json({ code: `http_${status}`, message }, { status, headers });
}
