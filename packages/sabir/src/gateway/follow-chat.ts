import { toByteResponse } from '../core/byte-source.ts';
import { SabirError, SHUTTING_DOWN } from '../core/errors.ts';
import type { Logger } from '../core/translator.ts';
import type { TurnLog } from '../turns/log.ts';
import { createChatFeeds, type Joined } from './chat-feeds.ts';
import type { Seated } from './chat-route.ts';
import type { Fanouts } from './fanout.ts';
import { type Carried, Follower } from './follower.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import type { GatewayMetrics } from './metrics.ts';
import type { OpenStreams } from './open-streams.ts';
import { openWire, WIRE_HEADERS, type WireContext, type WireName } from './open-wire.ts';
import type { GatewayLimits, GatewayTiming } from './options.ts';
import type { OwedReplays } from './owed-replays.ts';
import type { Restoring } from './restore-turn.ts';
import { type Departure, Viewer } from './viewer.ts';
import { clientOf, cursorOf } from './visit.ts';

type FollowOptions = {
  log: TurnLog;
  turns: GatewayTurns;
  fanouts: Fanouts;
  restoring: Restoring;
  owed: OwedReplays;
  streams: OpenStreams;
  metrics: GatewayMetrics;
  limits: GatewayLimits;
  timing: GatewayTiming;
  logger: Logger | undefined;
};

/** Streams that follow a chat across its turns. They neither stop a turn by leaving nor keep one that was left. */
export function createFollowing(options: FollowOptions) {
  const { log, turns, fanouts, restoring, owed, streams, metrics, limits, timing, logger } =
    options;
  const feeds = createChatFeeds({ log, watch: turns.watch });
  const followers = new Set<Follower>();

  /** The turns that a new follower is sent. Its client has the history where its cursor is in the latest turn. */
  async function findTurns(
    { visit, place }: Seated,
    { live, latest }: Joined,
  ): Promise<{ carried: Carried[]; history: string | undefined }> {
    const cursor = cursorOf(visit);
    const found = cursor && (await turns.find(cursor.turnId, place));
    // The follower gets a waiting prompt when its turn begins.
    const named = found && found.lastSeq > 0 ? found : undefined;
    const isEnded = latest?.outcome !== undefined;
    // A page may have got a history from which the answer was left out, since it was being written.
    const isOwed = isEnded && (await owed.take(place.user.id, latest.messageId));
    const missed = isEnded && (named ? latest.turnId !== named.turnId : isOwed) ? [latest] : [];
    const others = [...missed, ...live].filter(({ turnId }) => turnId !== named?.turnId);
    const carried = others.map((turn) => ({ turn, after: 0 }));
    if (!named || !cursor) return { carried, history: undefined };
    const after = cursor.seq <= named.lastSeq ? cursor.seq : 0;
    const history = latest?.turnId === named.turnId ? named.turnId : undefined;
    return { carried: [{ turn: named, after }, ...carried], history };
  }

  async function follow(seated: Seated): Promise<Response> {
    const { visit, place, wire, seat } = seated;
    const { request, url, requestId } = visit;
    const { user, role, sessionId, chatId, logSession, logChat } = place;
    const { feed, release } = feeds.hold(place);
    // A follower may stay for days, and does not hold its request.
    const about = { client: clientOf(request, url), place, logger };
    let leave = () => {
      feed.leave(follower);
      release();
    };
    const follower = new Follower({
      feed,
      me: { id: user.id, ...(typeof user.name === 'string' && { name: user.name }), role },
      keepAliveMs: timing.keepAliveMs,
      maxBacklogBytes: limits.viewerBacklogBytes,
      expiresAt: user.expiresAt,
      toViewer: (carried, onDeparture) => toViewer(carried, wire, about, onDeparture),
      onSlow: () => metrics.slowViewers.add(),
      onDeparture(how) {
        leave();
        if (how === 'left') metrics.aborts.add({ side: 'client' });
        if (how === 'let-go') metrics.aborts.add({ side: 'server' });
        logger?.info?.(`follower ${how}`, { requestId, sessionId, chatId });
      },
    });
    try {
      const joined = await feed.join(follower);
      // The feed announces a turn that is restored.
      if (joined.live.length === 0) await restoring.restore(place, visit);
      const { carried, history } = await findTurns(seated, joined);
      if (follower.isOver || turns.isClosing) throw new SabirError(SHUTTING_DOWN);
      // All followers of a chat count as the viewers of one turn, also while none runs.
      seat.watch(JSON.stringify([logSession, logChat]));
      enter(seated, follower);
      follower.start(carried, history);
    } catch (error) {
      if (!follower.isOver) leave();
      seat.leave();
      throw error;
    }
    return toByteResponse(follower, { headers: WIRE_HEADERS[wire] }, request.signal);

    function enter({ seat, place }: Seated, follower: Follower): void {
      const leaveFeed = leave;
      const leaveSession = turns.enter(place);
      const leaveStreams = streams.add(place, { letGo: (why) => follower.letGo(why) });
      followers.add(follower);
      metrics.viewers.add(1);
      metrics.followers.add(1);
      leave = () => {
        leaveFeed();
        leaveSession();
        leaveStreams();
        followers.delete(follower);
        metrics.viewers.add(-1);
        metrics.followers.add(-1);
        seat.leave();
      };
    }
  }

  /** One that ends without an error, and does not end for an approval. */
  function toViewer(
    { turn, after }: Carried,
    wire: WireName,
    about: WireContext,
    onDeparture: (how: Departure) => void,
  ): Viewer {
    const { encoder } = openWire(wire, { turn, after, mayAnswer: () => false }, about);
    return new Viewer({
      fanouts,
      turn,
      after,
      encoder,
      isResuming: true,
      isPassive: true,
      keepAliveMs: 0,
      maxBacklogBytes: limits.viewerBacklogBytes,
      onReplay: (bytes) => metrics.replayedBytes.add({}, bytes),
      onSlow: () => metrics.slowViewers.add(),
      onDeparture,
    });
  }

  return {
    follow,
    /** Ends all of them. */
    close(): void {
      for (const follower of [...followers]) follower.close();
    },
  };
}
