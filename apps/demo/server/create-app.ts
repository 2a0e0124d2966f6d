import { createOpenHarnessHandler } from 'sabir/open-harness';
import { createDemoFlow } from '../flow/demo-flow.ts';
import { toFlowInput } from '../flow/flow-input.ts';
import type { Model } from '../flow/model.ts';
import type { DeskModel } from './choose-model.ts';
import { createDesk } from './create-desk.ts';
import { createGateway, isGatewayAddress } from './create-gateway.ts';
import { refuse, refuseForeign } from './refuse-foreign.ts';
import type { StaticFiles } from './static-files.ts';

const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

const FLOW_OPTIONS = { sendFlowMetadata: true, toInput: toFlowInput };

export type AppOptions = {
  model: Model;
  deskModel: DeskModel;
  speed?: number;
  /** How long a person may think about an approval. */
  answerMs?: number;
  /** Who answers in the sessions, which are not served from here. */
  agent?: { name: string };
  files?: StaticFiles;
  /** Off unless asked for: its addresses are then like any others that do not exist. */
  hasGateway?: boolean;
};

export type App = {
  fetch(request: Request): Response | Promise<Response>;
  /** Gives the gateway's running answers a moment, then ends them. */
  close(): Promise<void>;
};

/** All routes of the demo's server, as one function from request to response. */
export function createApp(options: AppOptions): App {
  const { model, deskModel, agent, speed, answerMs, files, hasGateway = false } = options;
  const runs = { active: 0, finished: 0, failed: 0, stopped: 0 };
  let isClosing = false;

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

  const runFlow = createOpenHarnessHandler(createCountedFlow, FLOW_OPTIONS);
  const gateway = hasGateway
    ? createGateway({
        createFlow: createCountedFlow,
        flowOptions: FLOW_OPTIONS,
        desk: createDesk({
          model: deskModel,
          runs,
          ...(speed !== undefined && { speed }),
          ...(answerMs !== undefined && { answerMs }),
        }),
      })
    : undefined;

  const health = () => {
    const status = isClosing ? 'closing' : 'ok';
    const report = { status, model: model.name, agent: agent?.name, gateway: hasGateway, runs };
    return Response.json(report, { status: isClosing ? 503 : 200 });
  };

  const route = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === '/api/flow') return refuseForeign(request) ?? runFlow(request);
    if (gateway && isGatewayAddress(pathname)) {
      return refuseForeign(request) ?? gateway.fetch(request);
    }
    const encoding = request.headers.get('accept-encoding') ?? '';
    const found = pathname === '/healthz' ? health() : files?.respond(pathname, encoding);
    if (!found) return refuse(404, 'There is nothing at this address.');
    if (request.method === 'GET' || request.method === 'HEAD') return found;
    return refuse(405, 'This address can only be read.', { allow: 'GET, HEAD' });
  };

  return {
    async fetch(request) {
      const response = await route(request);
      for (const [name, value] of Object.entries(COMMON_HEADERS)) response.headers.set(name, value);
      return response;
    },
    async close() {
      isClosing = true;
      await gateway?.close();
    },
  };
}
