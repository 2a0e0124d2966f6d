import {
  BAD_REQUEST,
  CANNOT_STEER,
  DISCONNECTED,
  type ErrorKind,
  SabirError,
  SHUTTING_DOWN,
} from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { isObject } from '../core/loose.ts';
import { steeringVerdict } from '../core/steering.ts';
import type { Steer, TurnInfo, TurnLog } from '../turns/log.ts';
import type { Guard } from './access.ts';
import type { Admission } from './admission.ts';
import type { ChatAudit } from './chat-audit.ts';
import { type PromptPost, toChatPost } from './chat-post.ts';
import type { ChatRoute, Place } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { OpenStreams } from './open-streams.ts';
import type { GatewayTiming } from './options.ts';
import { json } from './responses.ts';
import { sessionRefusal } from './session-refusal.ts';
import type { Visit } from './visit.ts';

type SteeringOptions = {
  log: TurnLog;
  turns: GatewayTurns;
  guard: Pick<Guard, 'admit'>;
  admission: Admission;
  audit: ChatAudit;
  streams: OpenStreams;
  timing: Pick<GatewayTiming, 'acceptMs'>;
};

/** What was POSTed: a message for the running turn, which is a prompt where no turn takes it. */
type SteerPost = { id: string; post: PromptPost };

const SEND = 'Send { message } or { text, id? }.';

/**
 * `POST …/steer`: a message into the running turn. The log tells whether the agent takes it, whichever process runs the
 * turn. Where no agent takes it, it waits in the queue, if there is one.
 */
export function createSteering(options: SteeringOptions) {
  const { log, turns, guard, admission, audit, streams, timing } = options;
  const closing = new AbortController();

  async function steer(route: ChatRoute, chatId: string, visit: Visit): Promise<Response> {
    const place = await audit.entering('steer', { chatId, visit }, () =>
      route.enter(visit, chatId, 'collaborator'),
    );
    const { user, caller, channel, sessionId } = place;
    const isInSession = place.route === 'sessions';
    const where = { route: place.route, ...(isInSession && { sessionId }) };
    await guard.admit(visit, user, where);
    const { limits } = route;
    const { read, release } = await admission.readBody(visit.request, caller, limits, (body) =>
      toSteerPost(body, { chatId, user, channel, limits }),
    );
    let isHeld = false;
    try {
      const turn = await findTaker(read, place, visit);
      if (turn) {
        const { turnId } = turn;
        audit.accepted('steer', { place, visit }, { turnId });
        return json(202, { turnId, delivered: true });
      }
      // The wait may have been long: the sender's rights may have ended meanwhile.
      const now = await route.enter(visit, chatId, 'collaborator');
      const asked = await ask(read, now, visit, release);
      const { turnId } = asked.turn;
      isHeld = asked.isNew;
      if (isHeld) audit.accepted('prompt', { place, visit }, { turnId });
      return json(202, { turnId, delivered: false });
    } catch (error) {
      audit.refused('steer', { place, visit }, error);
      throw error;
    } finally {
      if (!isHeld) release();
    }
  }

  /** The turn whose agent has taken the message, now or before. */
  async function findTaker(
    { id, post }: SteerPost,
    place: Place,
    visit: Visit,
  ): Promise<TurnInfo | undefined> {
    const live = await turns.live(place);
    // One that has ended may have taken it before.
    const turn = live[0] ?? (await log.latest(place.logSession, place.logChat));
    const isAsked = [turn, ...live].some((one) => one?.requestId === post.requestId);
    if (!turn || isAsked) return undefined;
    const { text, attachments } = post;
    const by = { userId: place.user.id, role: place.role };
    const message: Steer = { type: 'steer', id, text, attachments, by };
    try {
      return (await isTaken(turn, message, place, visit)) ? turn : undefined;
    } catch (error) {
      // The turn cannot hold the message: it is a prompt.
      if (error instanceof SabirError && error.code === CANNOT_STEER.code) return undefined;
      throw error;
    }
  }

  /** Waits as a viewer does: until the agent has the message, refuses it, or ends the turn without it. */
  async function isTaken(
    turn: TurnInfo,
    message: Steer,
    place: Place,
    { request }: Visit,
  ): Promise<boolean> {
    const { turnId, lastSeq } = turn;
    const seat = admission.takeSeat(place.caller);
    const reading = new AbortController();
    // A client that has left asks for nothing more: the message does not become a prompt.
    const signal = AbortSignal.any([reading.signal, request.signal, closing.signal]);
    const leave = streams.add(place, {
      turnId,
      letGo: (why: ErrorKind) => reading.abort(new SabirError(why)),
    });
    try {
      seat.watch(turnId);
      const isGiven = !turn.outcome && (await turns.steer(turn, message, place));
      // Of a message that the turn was given before, the log may have told already.
      const after = isGiven ? lastSeq : 0;
      for await (const batch of log.read(turnId, after, signal)) {
        for (const { chunk } of batch) {
          const verdict = steeringVerdict(chunk, message.id);
          if (verdict !== undefined) return verdict;
        }
      }
      if (request.signal.aborted) throw new SabirError(DISCONNECTED);
      signal.throwIfAborted();
      return false;
    } finally {
      leave();
      seat.leave();
    }
  }

  /** Asks it as a prompt, or finds the prompt that it has become. */
  async function ask({ post }: SteerPost, place: Place, visit: Visit, onEnd: () => void) {
    const { upstream, channel } = place;
    const hasQueue = place.sessions || (typeof upstream === 'object' && upstream.hasQueue);
    if (!hasQueue) throw new SabirError(CANNOT_STEER);
    const { requestId, startedAt: askedAt } = visit;
    const { headers } = visit.request;
    const asking = { place, channel, requestId, askedAt, headers, onEnd };
    const begun = await turns.begin(post, asking);
    const refusal = await sessionRefusal(begun.accepted, timing.acceptMs);
    if (refusal) throw new SabirError(refusal);
    return begun;
  }

  return {
    steer,
    /** Answers the requests that wait for an agent with 503: their clients retry elsewhere. */
    close: () => closing.abort(new SabirError(SHUTTING_DOWN)),
  };
}

/** The same shapes that a chat's POST may have for its last message. */
async function toSteerPost(
  { value, bytes }: { value: unknown; bytes: number },
  { chatId, ...about }: Parameters<typeof toChatPost>[1] & { chatId: string },
): Promise<SteerPost> {
  if (!isObject(value)) throw new SabirError(BAD_REQUEST, `The body is not an object. ${SEND}`);
  const { message, text, id, ...body } = value;
  const given = message ?? { id, role: 'user', parts: [{ type: 'text', text }] };
  if (!isObject(given) || given.role !== 'user') {
    throw new SabirError(BAD_REQUEST, `message is not a message with role "user". ${SEND}`);
  }
  const named = given.id || createId();
  if (typeof named !== 'string' || named.length > 512) {
    throw new SabirError(
      BAD_REQUEST,
      'The id of the message is not a string of 1 to 512 characters.',
    );
  }
  const messages = [{ ...given, id: named }];
  const request = { ...body, id: chatId, messages, trigger: 'submit-message' };
  const post = await toChatPost({ value: request, bytes }, about);
  if (post.kind !== 'prompt') throw new SabirError(BAD_REQUEST, SEND);
  return { id: named, post };
}
