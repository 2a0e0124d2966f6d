import { toByteResponse } from '../core/byte-source.ts';
import { INTERNAL_ERROR, NOT_FOUND, SabirError } from '../core/errors.ts';
import { NO_LONGER_NEEDED } from '../core/no-longer-needed.ts';
import { mayAnswer } from '../core/roles.ts';
import { monotonicNow } from '../core/timers.ts';
import type { Channel, Logger } from '../core/translator.ts';
import { withoutContent } from '../core/without-content.ts';
import type { Answer, TurnInfo, TurnLog } from '../turns/log.ts';
import type { Question } from '../turns/question.ts';
import { hasEventsAfter } from '../wires/has-events-after.ts';
import { mayStop } from './access.ts';
import { acknowledgement } from './acknowledgement.ts';
import type { Admission } from './admission.ts';
import { agUiRunIn } from './ag-ui-post.ts';
import { toAnswer } from './answer-question.ts';
import { isAskedBefore } from './asked-before.ts';
import { type AnsweringPost, createChatAnswers, type Given } from './chat-answers.ts';
import { approvedIn, type ChatAudit } from './chat-audit.ts';
import { answerIdOf, type PromptPost } from './chat-post.ts';
import type { ChatRoute, Place, Seated } from './chat-route.ts';
import { createFanouts } from './fanout.ts';
import { createFollowing } from './follow-chat.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { OpenStreams } from './open-streams.ts';
import {
  eventsOf,
  type OpenWire,
  openWire,
  type WireName,
  wireHeaders,
  wireOf,
  wireReopener,
} from './open-wire.ts';
import type { GatewayLimits, GatewayTiming } from './options.ts';
import type { OwedReplays } from './owed-replays.ts';
import { QueuedViewer } from './queued-viewer.ts';
import { json, nothing } from './responses.ts';
import { createRestoring } from './restore-turn.ts';
import { acceptMsOf, sessionRefusal } from './session-refusal.ts';
import type { SleepWatch } from './sleep-watch.ts';
import { createStopping } from './stop-turns.ts';
import type { Begun } from './turn-host.ts';
import { type Departure, Viewer } from './viewer.ts';
import type { Viewers } from './viewers.ts';
import { channelOf, clientOf, cursorOf, type Visit } from './visit.ts';

type ChatVerbsOptions = {
  log: TurnLog;
  turns: GatewayTurns;
  viewers: Viewers;
  owed: OwedReplays;
  admission: Admission;
  audit: ChatAudit;
  streams: OpenStreams;
  metrics: GatewayMetrics;
  limits: GatewayLimits;
  timing: GatewayTiming;
  logger: Logger | undefined;
  /** Only where others may have answered meanwhile. */
  sleepWatch: SleepWatch | undefined;
};

/** How often the log says that a client cannot answer approvals. */
const UNVERSIONED_WARNING_MS = 3_600_000;

type Viewing = {
  turn: TurnInfo;
  after: number;
  answered?: ReadonlySet<string>;
  knownResults?: ReadonlyMap<string, string>;
  /** The page that watches this turn has asked for these as well, before it was reloaded: they wait for it. */
  waiting?: TurnInfo[];
};

/** What can be done in a chat, whichever way the user came into it: send, resume, follow, stop, answer. */
export function createChatVerbs(options: ChatVerbsOptions) {
  const { log, turns, viewers, owed, admission, audit, streams, metrics, limits, timing, logger } =
    options;
  const restoring = createRestoring({ log, turns, timing, logger });
  const answers = createChatAnswers({ log, turns, restoring, turnsOf });
  const fanouts = createFanouts(log, (turnId, error) =>
    logger?.error?.('a turn could not be read from the log', {
      turnId,
      error: withoutContent(error),
    }),
  );
  const following = createFollowing({ ...options, fanouts, restoring });
  const stop = createStopping(options);

  let nextUnversionedWarning = 0;

  function warnOfUnversioned(): void {
    const now = monotonicNow();
    if (now < nextUnversionedWarning) return;
    nextUnversionedWarning = now + UNVERSIONED_WARNING_MS;
    logger?.warn?.(
      'a tool call waits for an approval, and a client has not said its AI SDK version: it gets the question as a data part only. With AI SDK 6 or 7, add ?aiSdk=6 or ?aiSdk=7 to its `api`, or the header x-sabir-ai-sdk',
    );
  }

  /** Streams a turn to a viewer who has a seat. */
  function view(
    { visit, place, wire, seat }: Seated,
    { turn, after, answered, knownResults, waiting = [] }: Viewing,
  ): Response {
    const { request, startedAt, requestId } = visit;
    const { user, role, sessionId, chatId } = place;
    const { turnId } = turn;
    const isResuming = request.headers.has('x-sabir-resume');
    // A client that comes back by itself has not left for good. A stranger's word is not enough to let a turn run on.
    const isDetaching =
      place.caller.kind === 'user' && (isResuming || request.headers.get('x-sabir-detach') === '1');
    seat.watch(turnId);
    const watched = [turn, ...waiting].map((one) =>
      viewers.enter(one.turnId, { isDetaching, mayStop: mayStop(role) }),
    );
    const leaving = new AbortController();
    // While the log is away, no other gateway can ask who reads the turn.
    for (const one of waiting) attend(one, leaving.signal).catch(() => undefined);
    const leaveSession = turns.enter(place);
    metrics.viewers.add(1);
    const onDeparture = (how: Departure) => {
      metrics.viewers.add(-1);
      seat.leave();
      leaveStreams();
      leaveSession();
      if (how === 'left') metrics.aborts.add({ side: 'client' });
      if (how === 'let-go') metrics.aborts.add({ side: 'server' });
      leaving.abort(NO_LONGER_NEEDED);
      for (const leave of watched) leave(how !== 'left', how === 'to-answer');
      logger?.info?.(`viewer ${how}`, { requestId, sessionId, chatId, turnId });
    };
    const viewing = {
      turn,
      after,
      answered,
      knownResults,
      mayAnswer: ({ answerBy }: Question) => mayAnswer(answerBy, place),
    };
    const about = { client: clientOf(request, visit.url), place, logger };
    const opened = openWire(wire, viewing, about);
    const { keepAliveMs } = timing;
    const { expiresAt } = user;
    const toViewer = (viewed: TurnInfo, { encoder, pausing, isUnversioned }: OpenWire) =>
      new Viewer({
        fanouts,
        turn: viewed,
        after,
        encoder,
        pausing,
        isResuming,
        keepAliveMs,
        maxBacklogBytes: limits.viewerBacklogBytes,
        expiresAt,
        onFirstChunk() {
          metrics.ttfb.observe((Date.now() - startedAt) / 1000);
          turns.traceOf(turnId)?.firstByte();
        },
        onReplay: (bytes) => metrics.replayedBytes.add({}, bytes),
        onSlow: () => metrics.slowViewers.add(),
        // Our own transports resume, and answer questions at `/answer`.
        onApprovalRequest: isUnversioned && !isResuming ? warnOfUnversioned : undefined,
        onDeparture,
      });
    const queue = turns.queueOf(turn, place);
    const reopen = queue && wireReopener(wire, viewing, about);
    const viewer = reopen
      ? new QueuedViewer({
          queue,
          turnId,
          messageId: turn.messageId,
          encoder: opened.encoder,
          isResuming,
          keepAliveMs,
          expiresAt,
          async toViewer(isShown) {
            const begun = place.sessions ? await log.get(turnId) : turn;
            return begun && toViewer(begun, reopen(begun, isShown));
          },
          onDeparture,
        })
      : toViewer(turn, opened);
    const leaveStreams = streams.add(place, { turnId, letGo: (why) => viewer.letGo(why) });
    const headers = { ...wireHeaders(wire, chatId), 'x-sabir-turn': turnId };
    return toByteResponse(viewer, { headers }, request.signal);
  }

  /** Reads a turn that waits until it begins: the gateway that it was asked at sees that it has a viewer here. */
  async function attend({ turnId, lastSeq }: TurnInfo, signal: AbortSignal): Promise<void> {
    if (!log.outlivesProcess) return;
    for await (const _ of log.read(turnId, lastSeq, signal)) return;
  }

  async function send(route: ChatRoute, visit: Visit): Promise<Response> {
    metrics.requests.add();
    try {
      return await converse(route, visit);
    } catch (error) {
      const { code, status } = error instanceof SabirError ? error : INTERNAL_ERROR;
      metrics.requestErrors.add({ code });
      if (status >= 500) metrics.requestFailures.add();
      throw error;
    }
  }

  async function converse(route: ChatRoute, visit: Visit): Promise<Response> {
    const wire = wireOf(visit, route.wire);
    const channel = channelOf(visit.url);
    const where = { chatId: undefined, visit };
    const receive = () => route.receive(visit, channel);
    const { place, post, release } = await audit.entering('prompt', where, receive);
    let isHeld = false;
    try {
      return await withSeat({ visit, place, wire }, async (viewer) => {
        if (post.kind !== 'prompt') return goOn(post, viewer);
        const { answersFirst } = post;
        if (answersFirst) {
          const given = giveAnswers(answersFirst, viewer);
          const continued = await given;
          if (await isAsked(post, place, continued?.turn)) return goOn(answersFirst, viewer, given);
        }
        const { turn, isNew, accepted } = await begin(post, viewer, { channel, onEnd: release });
        isHeld = isNew;
        // The stream first: a log that retains nothing would forget a turn that ends meanwhile.
        const response = view(viewer, { turn, after: 0 });
        await checkAccepted(accepted, post, response);
        if (isNew) audit.accepted('prompt', viewer, { turnId: turn.turnId });
        return response;
      });
    } catch (error) {
      audit.refused(post.kind === 'prompt' ? 'prompt' : 'answer', { place, visit }, error);
      throw error;
    } finally {
      if (!isHeld) release();
    }
  }

  async function isAsked(post: PromptPost, place: Place, continued: TurnInfo | undefined) {
    const cursor = post.answersFirst?.cursor;
    const answered = continued ?? (cursor && (await turns.find(cursor.turnId, place)));
    const isStored = turns.hasMessage(post.userMessage.id, place);
    return isAskedBefore(post, { known: await turnsOf(place), answered, isStored });
  }

  /** A session that refuses a message at once is answered with a status instead of a stream. */
  async function checkAccepted(
    accepted: Begun['accepted'],
    post: PromptPost,
    response: Response,
  ): Promise<void> {
    const kind = await sessionRefusal(accepted, acceptMsOf(post, timing.acceptMs));
    if (!kind) return;
    await response.body?.cancel();
    throw new SabirError(kind);
  }

  async function giveAnswers(post: AnsweringPost, viewer: Seated) {
    const { visit, place, wire } = viewer;
    if (wire !== 'ai-sdk' && post.kind !== 'answer') return undefined;
    const onGiven = ({ answer, ...ids }: Given) =>
      audit.accepted('answer', viewer, { ...ids, ...approvedIn(answer) });
    return answers.goOn(post, { place, visit, onGiven });
  }

  async function goOn(post: AnsweringPost, viewer: Seated, given = giveAnswers(post, viewer)) {
    const continuation = await given;
    if (continuation) return view(viewer, continuation);
    return acknowledgement(viewer.wire, post, viewer.place);
  }

  async function begin(
    post: PromptPost,
    { visit, place, wire }: Seated,
    { channel, onEnd }: { channel: Channel | undefined; onEnd: () => void },
  ): ReturnType<GatewayTurns['begin']> {
    const { requestId, startedAt: askedAt } = visit;
    const isSaidAgain = Number(visit.request.headers.get('x-sabir-resume')) > 0;
    const isRepeat = isSaidAgain || options.sleepWatch?.isWaking === true;
    const { headers } = visit.request;
    const where = { place, channel, requestId, askedAt, headers, isRepeat, onEnd };
    const attempt = headers.get('x-sabir-attempt');
    const named = attempt ? { ...post, answerId: answerIdOf(post, attempt) } : post;
    const { turn, isNew, accepted } = await turns.begin(named, where);
    // When it began is told on this wire: by the log's clock, as whoever comes later is told it.
    const kept = isNew && wire === 'contract' ? await turns.find(turn.turnId, place) : undefined;
    const { startedAt } = kept ?? turn;
    return { turn: { ...turn, startedAt }, isNew, accepted };
  }

  /** Takes a seat for a viewer, and gives it back if no stream begins. */
  async function withSeat(
    who: Omit<Seated, 'seat'>,
    show: (viewer: Seated) => Promise<Response>,
  ): Promise<Response> {
    const seat = admission.takeSeat(who.place.caller);
    try {
      return await show({ ...who, seat });
    } finally {
      if (!seat.isWatching) seat.leave();
    }
  }

  async function resume(route: ChatRoute, chatId: string, visit: Visit): Promise<Response> {
    const wire = wireOf(visit, route.wire);
    const agUi = wire === 'ag-ui' && agUiRunIn(visit.url);
    const place = await route.enter(visit, chatId, 'viewer');
    return withSeat({ visit, place: agUi ? { ...place, agUi } : place, wire }, findAndShow);
  }

  async function follow(route: ChatRoute, chatId: string, visit: Visit): Promise<Response> {
    const wire = wireOf(visit, route.wire);
    const place = await route.enter(visit, chatId, 'viewer');
    return withSeat({ visit, place, wire }, following.follow);
  }

  async function findAndShow(viewer: Seated): Promise<Response> {
    const { visit, place, wire } = viewer;
    const cursor = cursorOf(visit);
    // A chat's cursor opens that chat's turns and no others.
    const named = cursor && (await turns.find(cursor.turnId, place));
    if (named) {
      const after = cursor.seq <= named.lastSeq ? cursor.seq : 0;
      const isOver = named.outcome && (await isTold(named, after, wire, visit.request));
      if (!isOver) return show({ turn: named, after });
    }
    // The one that runs, not one that waits, be it behind it or for an answer.
    const live = await turns.live(place);
    const [running] = live;
    const latest = running ?? (await log.latest(place.logSession, place.logChat));
    const isLive = latest !== undefined && !latest.outcome;
    const restored = isLive ? undefined : await restoring.restore(place, visit);
    // Whoever has seen all of one turn has not asked for another, unless it is that one again.
    const found = restored ?? (named ? undefined : latest);
    const turn = found && !cursor ? await owed.next(place, found) : found;
    if (!turn || (turn.outcome && turn.lastSeq === 0)) return nothing();
    const waiting = turns.waitingOf(live, place).filter(({ turnId }) => turnId !== turn.turnId);
    return show({ turn, after: 0, waiting });

    function show(what: Viewing): Response {
      metrics.resumes.add();
      turns.traceOf(what.turn.turnId)?.event('resume', { 'sabir.after': what.after });
      return view(viewer, what);
    }
  }

  /** Whether a turn that has ended holds nothing more for whoever has seen that much of it. */
  async function isTold(
    turn: TurnInfo,
    after: number,
    wire: WireName,
    { signal }: Request,
  ): Promise<boolean> {
    if (after === turn.lastSeq) return true;
    const toEvents = after === 0 ? undefined : eventsOf(wire, turn);
    if (!toEvents) return false;
    return !(await hasEventsAfter(after, log.read(turn.turnId, 0, signal), toEvents));
  }

  /** The latest of a chat, and those that run: it may be waiting behind them. */
  async function turnsOf(place: Place): Promise<TurnInfo[]> {
    const latest = await log.latest(place.logSession, place.logChat);
    const live = await turns.live(place);
    const others = live.filter(({ turnId }) => turnId !== latest?.turnId);
    return latest ? [latest, ...others] : others;
  }

  async function answer(route: ChatRoute, chatId: string, visit: Visit): Promise<Response> {
    const place = await audit.entering('answer', { chatId, visit }, () =>
      route.enter(visit, chatId, 'collaborator'),
    );
    const { bodyBytes } = route.limits;
    const { read: command, release } = await admission.readBody(
      visit.request,
      place.caller,
      { bodyBytes },
      ({ value }) => toAnswer(value),
    );
    try {
      return await give(command, place, visit);
    } finally {
      release();
    }
  }

  async function give(command: Answer, place: Place, visit: Visit): Promise<Response> {
    const { questionId } = command;
    const details = { questionId, ...approvedIn(command.answer) };
    const verdict = await answers.answer(command, place, visit).catch((error) => {
      audit.refused('answer', { place, visit }, error, details);
      throw error;
    });
    if (!verdict) throw new SabirError(NOT_FOUND, 'No such question was asked in this chat.');
    if (verdict.status === 202) {
      audit.accepted('answer', { place, visit }, details);
      return json(202, { questionId });
    }
    audit.refused('answer', { place, visit }, new SabirError(verdict.kind), details);
    const { code, userMessage: message, remedy } = verdict.kind;
    return json(verdict.status, {
      code,
      message,
      remedy,
      ...('answer' in verdict && { answer: verdict.answer }),
    });
  }

  return { send, resume, follow, stop, answer, close: following.close };
}
