import {
  CANNOT_STEER,
  LOG_FAILED,
  LOG_UNAVAILABLE,
  SabirError,
  SHUTTING_DOWN,
} from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import { steadyNow } from '../../core/timers.ts';
import { nameOfCommand } from '../command-name.ts';
import {
  type BeginTurn,
  MOST_COMMANDS,
  MOST_STEER_BYTES,
  steerBytesOf,
  type TurnCommand,
  type TurnInfo,
  type TurnLog,
} from '../log.ts';
import { TurnReader } from '../turn-reader.ts';
import { createBeginnings } from './beginnings.ts';
import { createLink } from './client.ts';
import { type Known, readInfo, toLine } from './info.ts';
import { createKeys, createToken, createTurnId } from './keys.ts';
import { type Entry, type Fetched, type Fetching, Mirror } from './mirror.ts';
import { createNews } from './news.ts';
import { type RedisTurnLogOptions, readOptions } from './options.ts';
import { createOrphanage } from './orphans.ts';
import {
  BEGIN,
  CALL_OFF,
  COMMAND,
  FORGET,
  LOOK,
  LOOK_AT,
  NOTE,
  OTHERS,
  RETAIN,
} from './scripts.ts';
import { createStore } from './store.ts';
import { RedisTurnWriter } from './writer.ts';

/** What has ended is kept a little longer than it is told of: whoever reads it may be behind. */
const LAST_READ_MS = 10_000;
/** How often it is told that Redis is away. */
const TELL_MS = 10_000;
/** A Redis that takes longer to answer is as good as away. */
const SLOW_MS = 250;
/** So many entries of a stream are read at once. */
const PAGE = 1_000;
/** Somebody else may begin, end or take a turn in between; not for ever. */
const MOST_TRIES = 10;

/**
 * Turns in Redis: any gateway can serve any viewer, and a turn outlives the process that began it.
 * What was acknowledged is kept as Redis keeps it (`appendfsync always` for all of it).
 *
 * @example
 * const client = await createClient({ url: 'redis://…' }).connect();
 * createChatGateway({ log: redisTurnLog({ client }), … });
 */
export function redisTurnLog(options: RedisTurnLogOptions): TurnLog {
  const { client, logger, prefix, ...limits } = readOptions(options);
  const { maxTurnBytes, retainedBytes, leaseMs, retentionMs, dedupeMs, answerMs, outageMs } =
    limits;
  const keys = createKeys(prefix);
  const processId = createId();
  const inbox = keys.ofInbox(processId);
  const link = createLink(client);
  const store = createStore(link, { answerMs, outageMs, onTrouble });
  const news = createNews(client, store, `${inbox}:probe`);
  const beginnings = createBeginnings(news);
  const keepMs = retentionMs + LAST_READ_MS;
  const liveMs = leaseMs + keepMs + outageMs;
  const mirrors = new Map<string, Mirror>();
  const writers = new Map<string, RedisTurnWriter>();
  let isListening = false;
  let isClosed = false;
  const openedAt = steadyNow();
  let tellAt = openedAt;
  /** Also when it has only just come back: until that is known, it is taken to have. */
  let quietUntil = openedAt + leaseMs;
  const sinceWhen = store
    .ask(() => store.send('', 'INFO', 'server'))
    .then((info) => {
      const [, seconds = '0'] = /uptime_in_seconds:(\d+)/.exec(String(info)) ?? [];
      const isOnlyThat = quietUntil === openedAt + leaseMs;
      // Counted in whole seconds, of which the first may have just begun.
      const upMs = Math.max(0, Number(seconds) - 1) * 1000;
      if (isOnlyThat) quietUntil -= Math.min(upMs, leaseMs);
    });
  inBackground(sinceWhen);
  const stopWatching = link.onReady(() => {
    giveTime();
    store.onReady();
  });

  function onTrouble({ cause }: SabirError, isPassing: boolean): void {
    if (isPassing) giveTime();
    // From time to time, not by everybody who waits.
    if (steadyNow() < tellAt) return;
    tellAt = steadyNow() + TELL_MS;
    logger?.warn('Redis does not take what it is told', { ...Object(cause) });
  }

  /** While Redis is away, or refuses, nobody can renew a lease: everybody gets the time to. */
  function giveTime(): void {
    quietUntil = steadyNow() + leaseMs;
  }

  /** Commands for the turns that are written here. Those that are missed are seen at a renewal. */
  function listenForCommands(): void {
    if (isListening) return;
    isListening = true;
    const pullAll = () => {
      for (const writer of writers.values()) writer.pull();
    };
    news
      .listen(inbox, (turnId) => writers.get(turnId)?.pull(), pullAll)
      .then(pullAll)
      .catch(() => {
        isListening = false;
      });
  }

  function createWriter(
    info: Pick<TurnInfo, 'turnId' | 'sessionId' | 'chatId' | 'requestId' | 'lastSeq'>,
    token: string,
    mark: number,
    progress?: string,
  ): RedisTurnWriter {
    const { turnId, sessionId, chatId, requestId, lastSeq } = info;
    const session = keys.ofSession(sessionId);
    inBackground(store.send(session, 'ZADD', session, 'NX', Date.now(), turnId));
    inBackground(store.send(session, 'PEXPIRE', session, liveMs));
    lookAfterLater(turnId);
    const writer = new RedisTurnWriter({
      store,
      turnId,
      token,
      lastSeq,
      mark,
      progress,
      leaseMs,
      liveMs,
      keepMs,
      maxTurnBytes,
      keys: {
        ...keys.ofTurn(turnId),
        chat: keys.ofChat(sessionId, chatId),
        request: keys.ofRequest(sessionId, chatId, requestId),
      },
      onBump() {
        inBackground(store.send(session, 'PEXPIRE', session, liveMs));
        lookAfterLater(turnId);
      },
      onClosed(bytes) {
        inBackground(store.send(session, 'ZREM', session, turnId));
        return retain(turnId, bytes);
      },
      onReleased: () =>
        Promise.allSettled([
          store.ask(() => lookAt(turnId, '')),
          store.ask(() => store.send(keys.orphans, 'PUBLISH', keys.orphans, turnId)),
        ]),
      onDone: () => void (writers.get(turnId) === writer && writers.delete(turnId)),
    });
    writers.set(turnId, writer);
    listenForCommands();
    return writer;
  }

  /** By Redis's clock, as leases are. Nothing but what is said again keeps the list. */
  function lookAt(turnId: string, afterMs: number | ''): Promise<unknown> {
    return store.run(LOOK_AT, [keys.live], [turnId, afterMs, 2 * liveMs]);
  }

  /** It is written here: nobody has to look at it as long as that is said again. */
  function lookAfterLater(turnId: string): void {
    inBackground(lookAt(turnId, leaseMs));
  }

  /** Ended turns are forgotten by their time; here earlier, when they are too many bytes. */
  async function retain(turnId: string, bytes: number): Promise<void> {
    inBackground(store.send(keys.live, 'ZREM', keys.live, turnId));
    if (retainedBytes === Number.POSITIVE_INFINITY) return;
    const argv = [turnId, bytes, retainedBytes, keepMs];
    try {
      const run = () => store.run(RETAIN, [keys.ended, keys.endedBytes], argv);
      const ids = (await store.ask(run)) as string[];
      await Promise.all(ids.map(forget));
    } catch (error) {
      // They expire all the same.
      logger?.warn('ended turns could not be counted', { error });
    }
  }

  function forget(turnId: string): Promise<unknown> {
    const { turn, chunks, commands, readers } = keys.ofTurn(turnId);
    const all = [turn, chunks, commands, readers];
    return store.ask(() => store.run(FORGET, all, [LAST_READ_MS]));
  }

  async function look(turnId: string, asReader = false): Promise<Known | undefined> {
    const { turn, readers } = keys.ofTurn(turnId);
    const argv = [asReader ? processId : '', 2 * leaseMs, liveMs];
    const askedAt = steadyNow();
    const [now, fields] = (await store.run(LOOK, [turn, readers], argv)) as [unknown, unknown];
    // Where this had to wait, renewals had to as well.
    if (steadyNow() - askedAt > Math.max(leaseMs / 2, SLOW_MS)) giveTime();
    return readInfo(turnId, now, fields);
  }

  async function readEntries(turnId: string, after: number): Promise<Entry[]> {
    const { chunks } = keys.ofTurn(turnId);
    const entries: Entry[] = [];
    for (let from = after; ; ) {
      const args = ['XRANGE', chunks, `(${from}`, '+', 'COUNT', PAGE];
      const page = (await store.send(chunks, ...args)) as [string, string[]][];
      for (const [id, [, stored = '']] of page)
        entries.push({ last: Number.parseInt(id, 10), stored });
      if (page.length < PAGE) return entries;
      from = entries.at(-1)?.last ?? from;
    }
  }

  const orphanage = createOrphanage({
    store,
    keys,
    leaseMs,
    liveMs,
    inbox,
    logger,
    news,
    look,
    lookAt,
    readEntries,
    createWriter,
    isQuiet: () => !link.isReady || steadyNow() < quietUntil,
  });

  /** What is there, after a look at whether its writer is. */
  async function find(turnId: string): Promise<Known | undefined> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const known = await store.ask(() => look(turnId));
      if (!known || isForgotten(known)) return undefined;
      if (known.endedAgo !== undefined || known.leaseLeft > 0) return known;
      if (!(await orphanage.settle(turnId))) return known;
    }
    throw new SabirError(LOG_UNAVAILABLE);
  }

  function isForgotten({ endedAgo }: Known): boolean {
    return endedAgo !== undefined && endedAgo >= retentionMs;
  }

  async function fetch(turnId: string, after: number, how: Fetching): Promise<Fetched> {
    const { isKnown, isRead } = how;
    const [known, entries] = await Promise.all([look(turnId, isRead), readEntries(turnId, after)]);
    const isGone = !known || (!isKnown && isForgotten(known));
    if (isGone) return { entries: [], isGone, isEnded: true, lastSeq: 0, lookAgainMs: 0 };
    const isEnded = known.endedAgo !== undefined;
    const isLost = !isEnded && known.leaseLeft <= 0;
    if (isLost && (await orphanage.settle(turnId))) return fetch(turnId, after, how);
    const lookAgainMs = isLost ? leaseMs / 2 : Math.max(known.leaseLeft, 10);
    return { entries, isGone, isEnded, lastSeq: known.info.lastSeq, lookAgainMs };
  }

  function mirrorOf(turnId: string): Mirror {
    const there = mirrors.get(turnId);
    if (there && !there.isOver) return there;
    const { channel, readers } = keys.ofTurn(turnId);
    const rest = () => inBackground(store.send(readers, 'ZREM', readers, processId));
    const mirror: Mirror = new Mirror({
      fetch: (after, how) => store.insist(() => fetch(turnId, after, how), how),
      rest,
      listen: () =>
        news.listen(
          channel,
          (message) => mirror.hear(message),
          () => mirror.refresh(),
        ),
      leave() {
        if (mirrors.get(turnId) !== mirror) return;
        mirrors.delete(turnId);
        news.leave(channel);
        if (!isClosed) rest();
      },
    });
    mirrors.set(turnId, mirror);
    return mirror;
  }

  async function begin(info: BeginTurn) {
    if (isClosed) throw new SabirError(SHUTTING_DOWN);
    await store.untilReady();
    const { sessionId, chatId, requestId, messageId, userId = '', origin, isRepeat = false } = info;
    const { turnId = createTurnId(sessionId, chatId) } = info;
    const token = createToken();
    const own = keys.ofTurn(turnId).turn;
    const begun = keys.ofBeginnings(sessionId, chatId);
    const place = [keys.ofChat(sessionId, chatId), keys.ofRequest(sessionId, chatId, requestId)];
    const times = [leaseMs, liveMs, isRepeat ? retentionMs : Math.min(dedupeMs, retentionMs)];
    const fields = [sessionId, chatId, requestId, messageId, JSON.stringify(origin ?? null), inbox];
    // Before it is begun: one that is in there and was never begun is taken out by whoever looks.
    inBackground(store.insist(() => lookAt(turnId, leaseMs)));
    let candidate = '';
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const all = [candidate ? keys.ofTurn(candidate).turn : own, own, ...place];
      const argv = [turnId, candidate, token, ...times, ...fields, isRepeat ? 1 : 0, begun, userId];
      const run = () => store.run(BEGIN, all, argv);
      const [what, now, found] = (await store.insist(run, { ms: answerMs }).catch((error) => {
        // Nobody knows whether it was begun: nobody is to wait for it.
        inBackground(store.insist(() => store.run(CALL_OFF, [own], [token])));
        throw error;
      })) as [string, unknown, unknown];
      if (what === 'begun') {
        return { writer: createWriter({ ...info, turnId, lastSeq: 0 }, token, 0) };
      }
      if (what === 'existing') {
        if (candidate !== turnId) inBackground(store.send(keys.live, 'ZREM', keys.live, turnId));
        const known = readInfo(candidate, now, found);
        if (known) return { existing: known.info };
      } else if (what === 'orphan') {
        const isSettled = await orphanage.settle(candidate);
        const known = isSettled ? undefined : await store.ask(() => look(candidate));
        if (known) return { existing: known.info };
      } else if (what === 'taken') {
        throw new SabirError(LOG_FAILED, 'A turn of another chat has this id.');
      } else candidate = String(now);
    }
    throw new SabirError(LOG_UNAVAILABLE);
  }

  /** The ids of turns in one of the sets, in their order. */
  async function listed(set: string, from = 0, ...order: 'REV'[]): Promise<string[]> {
    return (await store.ask(() => store.send(set, 'ZRANGE', set, from, -1, ...order))) as string[];
  }

  /** The turns of one of the sets that are known; with a negative `from`, of so many at its end. */
  async function findAll(set: string, from?: number): Promise<TurnInfo[]> {
    const found = await Promise.all((await listed(set, from)).map(find));
    return found.flatMap((known) => (known ? [known.info] : []));
  }

  async function command(turnId: string, given: TurnCommand): Promise<boolean> {
    const { turn, commands } = keys.ofTurn(turnId);
    const id = createToken();
    const name = nameOfCommand(given) ?? `stop:${id}`;
    const answered = given.type === 'answer' ? toLine(given.questionId) : '';
    const limits =
      given.type === 'steer' ? [MOST_COMMANDS, steerBytesOf(given), MOST_STEER_BYTES] : [''];
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const isStrict = steadyNow() < quietUntil ? 0 : 1;
      const entry = JSON.stringify([id, given]);
      const argv = [name, id, entry, liveMs, turnId, isStrict, answered, ...limits];
      const run = () => store.run(COMMAND, [turn, commands], argv);
      const reply = await store.insist(run, { ms: answerMs });
      if (reply === 'FULL') throw new SabirError(CANNOT_STEER);
      if (reply !== 'ORPHAN') return reply === 'OK';
      await orphanage.settle(turnId);
    }
    return false;
  }

  /** Nobody waits for it, and nothing depends on it: what it misses is found out another way. */
  function inBackground(doing: Promise<unknown>): void {
    doing.catch(() => undefined);
  }

  return {
    createTurnId,
    outlivesProcess: true,
    limits: {},
    begin,
    async latest(sessionId, chatId) {
      for (const turnId of await listed(keys.ofChat(sessionId, chatId), 0, 'REV')) {
        const known = await find(turnId);
        if (known) return known.info;
      }
      return undefined;
    },
    async get(turnId) {
      return (await find(turnId))?.info;
    },
    async live(sessionId, chatId) {
      const isWhole = chatId === undefined;
      const set = isWhole ? keys.ofSession(sessionId) : keys.ofChat(sessionId, chatId);
      return (await findAll(set)).filter(({ outcome }) => !outcome);
    },
    async ended(sessionId, chatId, most) {
      const found = await findAll(keys.ofChat(sessionId, chatId), -most);
      return found.filter(({ outcome }) => outcome);
    },
    read(turnId, after, signal, batchBytes, isPassive) {
      const mirror = isClosed || signal.aborted ? undefined : mirrorOf(turnId);
      return new TurnReader(mirror, after, signal, batchBytes, isPassive);
    },
    command,
    onBegin: (sessionId, chatId, listener) =>
      beginnings.listen(keys.ofBeginnings(sessionId, chatId), listener),
    async isReadElsewhere(turnId) {
      const { readers } = keys.ofTurn(turnId);
      const run = () => store.run(OTHERS, [readers], [processId]);
      return Number(await store.ask(run)) > 0;
    },
    notes: {
      async add(name, ms) {
        const note = keys.ofNote(name);
        await store.ask(() => store.run(NOTE, [note], [ms]));
      },
      async take(name) {
        const note = keys.ofNote(name);
        return (await store.ask(() => store.send(note, 'LPOP', note))) !== null;
      },
      async clear(names) {
        const notes = names.map((name) => keys.ofNote(name));
        await Promise.all(notes.map((note) => store.ask(() => store.send(note, 'UNLINK', note))));
      },
    },
    onOrphan: (adopt) => orphanage.adoptBy(adopt),
    async close() {
      if (isClosed) return;
      isClosed = true;
      orphanage.close();
      beginnings.close();
      for (const mirror of [...mirrors.values()]) mirror.letGo();
      // What nobody has ended is for somebody else, at once.
      await Promise.allSettled([...writers.values()].map((writer) => writer.release()));
      for (const writer of [...writers.values()]) writer.drop();
      news.close();
      stopWatching();
    },
  };
}
