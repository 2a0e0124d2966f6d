import type { Chunk } from '../core/chunks.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { startTimeout, type Timer } from '../core/timers.ts';
import { chunkBytes } from './chunk-bytes.ts';
import { nameOfAnswer } from './command-name.ts';
import { CommandQueue } from './command-queue.ts';
import { createGroups } from './groups.ts';
import type { BeginTurn, LoggedChunk, TurnCommand, TurnInfo } from './log.ts';
import { createTurnProgress, type Told, type TurnProgress, toldBy } from './turn-progress.ts';
import { type ReadableTurn, wakeReaders } from './turn-reader.ts';

/** One turn: readers hold on to it, so that they can finish a turn that the log has forgotten. */
export type LocalTurn = ReadableTurn & {
  readers: number;
  info: Omit<TurnInfo, keyof Told>;
  progress: TurnProgress;
  chunks: Chunk[];
  chat: Chat;
  /** Chunks and messages for the running turn. */
  bytes: number;
  steerBytes: number;
  commands: CommandQueue;
  /** The names of the answers and messages that were accepted: `nameOfCommand`. */
  accepted: Set<string>;
  /** By `elapsed`; 0 while the turn runs. */
  endedAt: number;
  leaseEnd: number;
  leaseTimer: Timer | undefined;
  /** As it was begun with, and as it was last appended with: for a takeover. */
  origin: unknown;
  mark: number;
  /** All commands, for a takeover; only where there is a journal. */
  given: TurnCommand[];
  /** Which of its writers is the present one; 0 while it has none. */
  writer: number;
  isOffered: boolean;
};

export type Chat = {
  key: string;
  turns: Set<LocalTurn>;
  latest: LocalTurn | undefined;
  byRequest: Map<string, LocalTurn>;
};

/** What an ended turn takes beside its chunks. */
const TURN_BYTES = 3_000;

type LocalTurnsOptions = {
  retentionMs: number;
  retainedBytes: number;
  leaseMs: number;
  now: () => number;
  elapsed: () => number;
  onForget(turnId: string): void;
};

/** The turns that a log of one process holds, by their ids and chats: live ones, and ended ones for a while. */
export function createLocalTurns(options: LocalTurnsOptions) {
  const { retentionMs, retainedBytes, leaseMs, now, elapsed } = options;
  const turns = new Map<string, LocalTurn>();
  const chats = new Map<string, Chat>();
  const liveInSession = createGroups<string, LocalTurn>();
  const liveInChat = createGroups<string, LocalTurn>();
  /** In the order of their ends: retention is the same for all, so the first is due first. */
  const ended = new Set<LocalTurn>();
  /** Forgotten, and still being read. */
  const held = new Set<LocalTurn>();
  /** Of both. */
  let endedBytes = 0;
  let liveBytes = 0;
  let retentionTimer: Timer | undefined;

  function chatOf(sessionId: string, chatId: string): Chat | undefined {
    forgetDue();
    return chats.get(keyOf(sessionId, chatId));
  }

  function forget(turn: LocalTurn): void {
    const { chat, info } = turn;
    if (ended.delete(turn)) {
      if (turn.readers > 0) held.add(turn);
      else endedBytes -= turn.bytes;
    }
    turns.delete(info.turnId);
    options.onForget(info.turnId);
    chat.turns.delete(turn);
    if (chat.byRequest.get(info.requestId) === turn) chat.byRequest.delete(info.requestId);
    if (chat.turns.size === 0) chats.delete(chat.key);
    else if (chat.latest === turn) chat.latest = [...chat.turns].at(-1);
  }

  /** Its readers have left, or are cut off. */
  function drop(turn: LocalTurn): void {
    if (!held.delete(turn)) return;
    endedBytes -= turn.bytes;
    turn.isLetGo = true;
    // A reader whose client takes nothing would hold on to them.
    turn.chunks = [];
    wakeReaders(turn);
  }

  /** Forgets what is due, then waits for the next. */
  function forgetEnded(): void {
    retentionTimer?.clear();
    retentionTimer = undefined;
    const time = elapsed();
    for (const turn of held) if (endedBytes > retainedBytes) drop(turn);
    for (const turn of ended) {
      const due = turn.endedAt + retentionMs;
      if (due > time && endedBytes <= retainedBytes) {
        retentionTimer = startTimeout(due - time, forgetEnded);
        return;
      }
      forget(turn);
      if (endedBytes > retainedBytes) drop(turn);
    }
  }

  /** The clock decides, not when its timer comes to run. */
  function forgetDue(): void {
    const [oldest] = ended;
    if (oldest && oldest.endedAt + retentionMs <= elapsed()) forgetEnded();
  }

  function write(turn: LocalTurn, chunks: Chunk[], bytes: number): void {
    const { info, chunks: log } = turn;
    const before = log.length;
    for (const chunk of chunks) {
      log.push(chunk);
      if (chunk.type !== 'text-delta') turn.progress.see(log.length, chunk);
    }
    info.lastSeq = log.length;
    turn.bytes += bytes;
    liveBytes += bytes;
    wakeReaders(turn, before);
  }

  /** Counts a message for a running turn: the log holds it as long as the turn. */
  function hold(turn: LocalTurn, steerBytes: number): void {
    turn.steerBytes += steerBytes;
    turn.bytes += steerBytes;
    liveBytes += steerBytes;
  }

  /** `endedAt` is given for a turn that ended in another process. */
  function end(turn: LocalTurn, outcome: TurnOutcome, endedAt = now()): void {
    Object.assign(turn.info, { endedAt, outcome });
    turn.endedAt = elapsed() - Math.max(0, now() - endedAt);
    turn.isEnded = true;
    liveInSession.delete(turn.info.sessionId, turn);
    liveInChat.delete(turn.chat.key, turn);
    turn.leaseTimer?.clear();
    turn.leaseTimer = undefined;
    ended.add(turn);
    liveBytes -= turn.bytes;
    turn.bytes += TURN_BYTES;
    endedBytes += turn.bytes;
    // A reader that waits for the end may ask for the turn at once, so retention 0 forgets it before the wake-up.
    if (ended.size === 1 || endedBytes > retainedBytes || retentionMs <= 0) forgetEnded();
    wakeReaders(turn);
    turn.commands.end();
  }

  /** It could not be written down: it never began. */
  function discard(turn: LocalTurn): void {
    turn.leaseTimer?.clear();
    turn.isEnded = true;
    liveInSession.delete(turn.info.sessionId, turn);
    liveInChat.delete(turn.chat.key, turn);
    forget(turn);
    wakeReaders(turn);
    turn.commands.end();
  }

  function create(info: BeginTurn, restored?: Pick<TurnInfo, 'turnId' | 'startedAt'>): LocalTurn {
    const key = keyOf(info.sessionId, info.chatId);
    let chat = chats.get(key);
    if (!chat) {
      chat = { key, turns: new Set(), latest: undefined, byRequest: new Map() };
      chats.set(key, chat);
    }
    const { sessionId, chatId, requestId, messageId, userId } = info;
    const turn: LocalTurn = {
      // Hard to guess: a client that knows it can ask for the turn.
      info: {
        sessionId,
        chatId,
        requestId,
        messageId,
        ...(userId !== undefined && { userId }),
        startedAt: restored?.startedAt ?? now(),
        turnId: restored?.turnId ?? info.turnId ?? createTurnId(),
        lastSeq: 0,
      },
      progress: createTurnProgress(),
      chat,
      chunks: [],
      get length() {
        return this.chunks.length;
      },
      after(seq, maxBytes) {
        return numberedFrom(this.chunks, seq, maxBytes);
      },
      bytes: 0,
      steerBytes: 0,
      readers: 0,
      joined() {
        this.readers++;
      },
      left() {
        if (--this.readers === 0) drop(turn);
      },
      isEnded: false,
      isLetGo: false,
      followers: new Set(),
      commands: new CommandQueue(),
      accepted: new Set(),
      endedAt: 0,
      leaseEnd: elapsed() + leaseMs,
      leaseTimer: undefined,
      origin: info.origin,
      mark: 0,
      given: [],
      writer: 0,
      isOffered: false,
    };
    turns.set(turn.info.turnId, turn);
    chat.turns.add(turn);
    liveInSession.add(sessionId, turn);
    liveInChat.add(key, turn);
    chat.latest = turn;
    chat.byRequest.set(requestId, turn);
    return turn;
  }

  return {
    get liveBytes() {
      return liveBytes;
    },
    get endedBytes() {
      return endedBytes;
    },
    create,
    write,
    hold,
    end,
    discard,
    chatOf,
    get(turnId: string): LocalTurn | undefined {
      forgetDue();
      return turns.get(turnId);
    },
    all: (): LocalTurn[] => [...turns.values()],
    /** Those that have not ended, of a session or of one of its chats; the oldest first. */
    live: (sessionId: string, chatId?: string): LocalTurn[] =>
      chatId === undefined
        ? liveInSession.get(sessionId)
        : liveInChat.get(keyOf(sessionId, chatId)),
    /** Readers end, and nothing is held any more. */
    clear(): void {
      retentionTimer?.clear();
      for (const turn of [...turns.values(), ...held]) {
        turn.leaseTimer?.clear();
        turn.isEnded = true;
        turn.isLetGo = true;
        wakeReaders(turn);
        turn.commands.end();
      }
      for (const all of [turns, chats, ended, held, liveInSession, liveInChat]) all.clear();
      endedBytes = 0;
      liveBytes = 0;
    },
  };
}

export function toInfo({ info, progress, isEnded, accepted }: LocalTurn): TurnInfo {
  const { lastSeq } = info;
  return {
    ...info,
    ...toldBy(progress, {
      lastSeq,
      isEnded,
      isAnswered: (id) => accepted.has(nameOfAnswer(id)),
    }),
  };
}

/** Hard to guess, and short: it is in the id of every frame. */
export function createTurnId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

/** Unambiguous whatever the ids contain: a chat of one session is never that of another. */
export function keyOf(sessionId: string, chatId: string): string {
  return JSON.stringify([sessionId, chatId]);
}

/** Numbers are added for readers and not kept: most of what a long turn holds are its chunks. */
function numberedFrom(chunks: readonly Chunk[], start: number, maxBytes: number): LoggedChunk[] {
  // Of exactly their number: an array that grows makes room for sixteen.
  if (maxBytes === Infinity)
    return chunks.slice(start).map((chunk, i) => ({ seq: start + i + 1, chunk }));
  const numbered: LoggedChunk[] = [];
  let bytes = 0;
  for (let i = start; i < chunks.length; i++) {
    const chunk = chunks[i] as Chunk;
    bytes += chunkBytes(chunk);
    if (bytes > maxBytes && i > start) break;
    numbered.push({ seq: i + 1, chunk });
  }
  return numbered;
}

export function bytesOf(chunks: Chunk[]): number {
  let bytes = 0;
  for (const chunk of chunks) bytes += chunkBytes(chunk);
  return bytes;
}
