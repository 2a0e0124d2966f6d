import type { ContractMeta } from '../contract/events.ts';
import { BAD_REQUEST, SabirError } from '../errors.ts';
import { SSE_HEADERS } from '../sse-response.ts';
import type { Logger } from '../translator.ts';
import type { TurnInfo } from '../turns/log.ts';
import type { Place } from './chat-route.ts';
import { createContractFrames } from './contract-frames.ts';
import { createFrameEncoder, type FrameEncoder, type Viewing } from './frame-encoder.ts';
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

/** The one place that knows every wire. */
export function openWire(
  wire: WireName,
  viewing: Viewing,
  { visit, place, logger }: { visit: Visit; place: Place; logger: Logger | undefined },
): FrameEncoder {
  if (wire === 'ai-sdk') return createFrameEncoder(viewing, clientOf(visit.request, visit.url));
  return createContractFrames(viewing, metaOf(place, viewing.turn, logger));
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
