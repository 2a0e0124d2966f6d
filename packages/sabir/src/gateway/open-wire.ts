import { BAD_REQUEST, SabirError } from '../core/errors.ts';
import { SSE_HEADERS } from '../core/sse-response.ts';
import type { Logger } from '../core/translator.ts';
import type { TurnInfo } from '../turns/log.ts';
import { createFrameEncoder } from '../wires/ai-sdk/encode.ts';
import type { ContractMeta } from '../wires/contract/events.ts';
import { createContractFrames } from '../wires/contract/frames.ts';
import type { WireEncoder } from '../wires/wire-encoder.ts';
import type { Place } from './chat-route.ts';
import { createPausing, type Pausing, type PausingOptions } from './pausing.ts';
import { clientOf, type Visit } from './visit.ts';

/** What a turn can be told in. */
export type WireName = 'ai-sdk' | 'contract';

/** Which wire a request asks for; where nothing is said, the route's own. */
export function wireOf({ url }: Visit, usual: WireName): WireName {
  const said = url.searchParams.get('wire');
  if (said === null) return usual;
  if (said === 'ai-sdk' || said === 'contract') return said;
  throw new SabirError(BAD_REQUEST, 'wire is neither ai-sdk nor contract.');
}

export const WIRE_HEADERS: Readonly<Record<WireName, Readonly<Record<string, string>>>> = {
  'ai-sdk': SSE_HEADERS,
  contract: Object.fromEntries(
    Object.entries(SSE_HEADERS).filter(([name]) => name !== 'x-vercel-ai-ui-message-stream'),
  ),
};

export type OpenWire = { encoder: WireEncoder; pausing?: Pausing };

/** The one place that knows every wire. */
export function openWire(
  wire: WireName,
  viewing: PausingOptions,
  { visit, place, logger }: { visit: Visit; place: Place; logger: Logger | undefined },
): OpenWire {
  const { turn } = viewing;
  if (wire === 'contract')
    return { encoder: createContractFrames(turn, metaOf(place, turn, logger)) };
  const client = clientOf(visit.request, visit.url);
  const encoder = createFrameEncoder(turn, client);
  // The others get no approvals, only the questions behind them.
  return client === 6 || client === 7 ? { encoder, pausing: createPausing(viewing) } : { encoder };
}

/**
 * Opens the same wire once the turn has begun. A function of its own, outside of what makes viewers: closures of one function
 * share what they keep, and only the viewer of a prompt that waits needs the request.
 */
export function wireReopener(...[wire, viewing, about]: Parameters<typeof openWire>) {
  return (turn: TurnInfo): OpenWire => openWire(wire, { ...viewing, turn }, about);
}

/** Made of what the log knows: the same for all viewers of a turn, whenever they come. */
function metaOf(
  place: Place,
  { turnId, requestId, startedAt }: TurnInfo,
  logger: Logger | undefined,
): ContractMeta {
  const createdAt = new Date(startedAt).toISOString();
  const own = { requestId, runId: turnId, ...placeMetaOf(place), createdAt };
  const { meta, chatId } = place;
  try {
    const more = typeof meta === 'function' ? meta({ turnId, chatId, startedAt }) : meta;
    return { ...more, ...own };
  } catch (error) {
    logger?.error?.('meta threw', { turnId, chatId, error });
    return own;
  }
}

/** What is known of a run before there is one. On a route of the contract, a client knows the chat's id only. */
export function placeMetaOf({ route, sessionId, chatId, endpoint }: Place): ContractMeta {
  const shownId = route === 'sessions' ? sessionId : chatId;
  return { sessionId: shownId, conversationId: chatId, endpoint };
}
