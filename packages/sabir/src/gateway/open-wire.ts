import { BAD_REQUEST, SabirError } from '../core/errors.ts';
import { SSE_HEADERS } from '../core/sse-response.ts';
import type { Logger } from '../core/translator.ts';
import type { TurnInfo } from '../turns/log.ts';
import { type AgUiRun, agUiEncoderOf, createAgUiFrames } from '../wires/ag-ui/frames.ts';
import { createFrameEncoder } from '../wires/ai-sdk/encode.ts';
import type { ContractMeta } from '../wires/contract/events.ts';
import { contractEncoderOf, createContractFrames } from '../wires/contract/frames.ts';
import type { WireEncoder } from '../wires/wire-encoder.ts';
import type { Place } from './chat-route.ts';
import { createInterrupts } from './interrupts.ts';
import { createPausing, type Pausing, type PausingOptions } from './pausing.ts';
import type { clientOf, Visit } from './visit.ts';

/** What a turn can be told in. */
export type WireName = 'ai-sdk' | 'contract' | 'ag-ui';

/** Which wire a request asks for; where nothing is said, the route's own. */
export function wireOf({ url }: Visit, usual: WireName): WireName {
  const said = url.searchParams.get('wire');
  if (said === null) return usual;
  if (said === 'ai-sdk' || said === 'contract' || said === 'ag-ui') return said;
  throw new SabirError(BAD_REQUEST, 'wire is none of ai-sdk, contract and ag-ui.');
}

const PLAIN_HEADERS = Object.fromEntries(
  Object.entries(SSE_HEADERS).filter(([name]) => name !== 'x-vercel-ai-ui-message-stream'),
);

export const WIRE_HEADERS: Readonly<Record<WireName, Readonly<Record<string, string>>>> = {
  'ai-sdk': SSE_HEADERS,
  contract: PLAIN_HEADERS,
  'ag-ui': PLAIN_HEADERS,
};

/** The headers of a stream of this chat. */
export function wireHeaders(wire: WireName, chatId: string): Record<string, string> {
  if (wire !== 'ai-sdk') return WIRE_HEADERS[wire];
  // assistant-ui asks for its stream by this id after a reload: `…/chat/:id/stream`. Half a surrogate pair cannot be encoded.
  const streamId = encodeURIComponent(chatId.toWellFormed());
  return { ...WIRE_HEADERS[wire], 'x-resumable-stream-id': streamId };
}

/** Which client a wire is opened for, and where. */
export type WireContext = {
  client: ReturnType<typeof clientOf>;
  place: Place;
  logger: Logger | undefined;
};

/** For a wire whose events do not follow from single chunks. */
export function eventsOf(wire: WireName, turn: TurnInfo) {
  if (wire === 'contract') return contractEncoderOf(turn, {});
  return wire === 'ag-ui' ? agUiEncoderOf(turn, { threadId: '', runId: '' }) : undefined;
}

export type OpenWire = {
  encoder: WireEncoder;
  pausing?: Pausing;
  /** A client of the AI SDK that has not said its version: it gets no approvals. */
  isUnversioned?: boolean;
};

/** The one place that knows every wire. */
export function openWire(
  wire: WireName,
  viewing: PausingOptions,
  { client, place, logger }: WireContext,
  /** The message was begun before the turn, while its prompt waited. */
  isBegun = false,
): OpenWire {
  const { turn, answered, knownResults } = viewing;
  if (wire === 'ag-ui') {
    const { tools, ...said } = { runId: turn.turnId, ...place.agUi };
    const run: AgUiRun = {
      threadId: place.chatId,
      ...said,
      isBegun,
      isContinuing: answered !== undefined,
      ...(knownResults && { knownResults }),
    };
    const pausing = createInterrupts(viewing, run, tools);
    return { encoder: createAgUiFrames(turn, run), pausing };
  }
  if (wire === 'contract')
    return { encoder: createContractFrames(turn, metaOf(place, turn, logger)) };
  const encoder = createFrameEncoder(turn, client);
  // The others get no approvals, only the questions behind them.
  const canApprove = client === 6 || client === 7;
  const pausing = createPausing(viewing, { canApprove });
  return { encoder, pausing, isUnversioned: client === 'portable' };
}

/**
 * Opens the same wire once the turn has begun. A function of its own, outside of what makes viewers: closures of one function
 * share what they keep, and only the viewer of a prompt that waits needs the request.
 */
export function wireReopener(...[wire, viewing, about]: Parameters<typeof openWire>) {
  return (turn: TurnInfo, isBegun: boolean): OpenWire =>
    openWire(wire, { ...viewing, turn }, about, isBegun);
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
