import { BAD_REQUEST, SabirError } from '../core/errors.ts';
import { SSE_HEADERS } from '../core/sse-response.ts';
import type { Logger } from '../core/translator.ts';
import type { LoggedChunk, TurnInfo } from '../turns/log.ts';
import type { Question } from '../turns/question.ts';
import { createFrameEncoder, encodePause, encodeStart } from '../wires/ai-sdk/encode.ts';
import type { ContractMeta } from '../wires/contract/events.ts';
import { createContractFrames } from '../wires/contract/frames.ts';
import type { Bytes, WireEncoder } from '../wires/wire-encoder.ts';
import { trackApprovals } from './approvals.ts';
import type { Place } from './chat-route.ts';
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

export type Viewing = {
  turn: TurnInfo;
  /** The highest number this viewer has seen. */
  after: number;
  /** It has answered these approvals, and goes on with the message that its last stream ended in. */
  answered?: ReadonlySet<string> | undefined;
  /** Whether an answer of this viewer would be accepted. */
  mayAnswer(question: Question): boolean;
  /** The turn is known to have asked nothing yet, neither a question nor for an approval. */
  hasNotAsked: boolean;
};

/** A client that can answer an approval only when its stream has ended. */
export type Pausing = {
  /** What comes before everything else. */
  opening: Bytes | undefined;
  /** What it was asked before its cursor may end its stream: so all of the turn is to be read. */
  needsAll: boolean;
  /** The number behind which its stream ends, if one of these asks for an answer of this viewer. */
  pauseIn(entries: readonly LoggedChunk[]): number | undefined;
  /** What comes last. */
  end(): Bytes;
};

export type OpenWire = { encoder: WireEncoder; pausing?: Pausing };

/** The one place that knows every wire. */
export function openWire(
  wire: WireName,
  viewing: Viewing,
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

export function createPausing({ turn, after, answered, mayAnswer, hasNotAsked }: Viewing): Pausing {
  const approvals = trackApprovals({ answered, mayAnswer });
  return {
    opening: answered && encodeStart(turn, after),
    needsAll: !hasNotAsked || answered !== undefined,
    pauseIn(entries) {
      approvals.see(entries);
      return approvals.pauseFrom(after);
    },
    end: () => encodePause(turn),
  };
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
