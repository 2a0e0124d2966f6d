import type { Chunk } from '../core/chunks.ts';
import {
  SabirError,
  SERVER_FULL,
  SHUTTING_DOWN,
  TURN_FENCED,
  TURN_TOO_LARGE,
} from '../core/errors.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { monotonicNow, startTimeout, type Timer } from '../core/timers.ts';
import { chunkBytes, isClosing } from './chunk-bytes.ts';
import { closingsOf } from './closings.ts';
import { CommandQueue } from './command-queue.ts';
import { createGroups } from './groups.ts';
import { createLocalNotes } from './local-notes.ts';
import type { BeginTurn, LoggedChunk, TurnCommand, TurnInfo, TurnLog, TurnWriter } from './log.ts';
import { createTurnProgress, type Told, type TurnProgress, toldBy } from './turn-progress.ts';
import { type ReadableTurn, TurnReader, wakeReaders } from './turn-reader.ts';

export type MemoryTurnLogOptions = {
  /** A turn past it is refused. 16 MB unless set. */
  maxTurnBytes?: number;
  /** How long an ended turn can still be read. A minute unless set; 0 forgets it at once. */
  retentionMs?: number;
  /**
   * How much of ended turns is kept in all, those included that a slow viewer still reads. The oldest go first.
   * @default 64 MB
   */
  retainedBytes?: number;
  /**
   * How much of running turns is kept in all. Past it no turn begins; past twice as much, the turn that writes fails.
   * @default 192 MB
   */
  liveBytes?: number;
  /** For how long a request that is sent again gets the turn that answered it. 10 s unless set. */
  dedupeMs?: number;
  /** How long a turn may be silent before it counts as lost. 30 s unless set. */
  leaseMs?: number;
  /** Milliseconds since 1970, for what viewers are shown: when a turn began and ended. `Date.now` unless set. */
  now?: () => number;
  /** Milliseconds that this process has run, for leases, retention and repeats. `monotonicNow` unless set. */
  elapsed?: () => number;
};

/** One turn: readers hold on to it, so that they can finish a turn that the log has forgotten. */
type Turn = ReadableTurn & {
  readers: number;
  info: Omit<TurnInfo, keyof Told>;
  progress: TurnProgress;
  chunks: Chunk[];
  chat: Chat;
  bytes: number;
  commands: CommandQueue;
  /** The questions that somebody has answered. */
  answered: Set<string>;
  /** By `elapsed`; 0 while the turn runs. */
  endedAt: number;
  leaseEnd: number;
  leaseTimer: Timer | undefined;
};

type Chat = {
  key: string;
  turns: Set<Turn>;
  latest: Turn | undefined;
  byRequest: Map<string, Turn>;
};

const MEGABYTE = 1024 * 1024;
/** What an ended turn takes beside its chunks. */
const TURN_BYTES = 3_000;

/** Turns in the memory of this process: what was acknowledged is kept until it ends. */
export function memoryTurnLog(options: MemoryTurnLogOptions = {}): TurnLog {
  const { maxTurnBytes = 16 * MEGABYTE, retainedBytes = 64 * MEGABYTE } = options;
  const { liveBytes: maxLiveBytes = 192 * MEGABYTE } = options;
  const { retentionMs = 60_000, dedupeMs = 10_000, leaseMs = 30_000 } = options;
  const { now = Date.now, elapsed = monotonicNow } = options;
  const turns = new Map<string, Turn>();
  const chats = new Map<string, Chat>();
  const liveInSession = createGroups<string, Turn>();
  const liveInChat = createGroups<string, Turn>();
  /** In the order of their ends: retention is the same for all, so the first is due first. */
  const ended = new Set<Turn>();
  /** Forgotten, and still being read. */
  const held = new Set<Turn>();
  /** Of both. */
  let endedBytes = 0;
  let liveBytes = 0;
  let retentionTimer: Timer | undefined;
  let isClosed = false;

  function chatOf(sessionId: string, chatId: string): Chat | undefined {
    forgetDue();
    return chats.get(keyOf(sessionId, chatId));
  }

  function forget(turn: Turn): void {
    const { chat, info } = turn;
    if (ended.delete(turn)) {
      if (turn.readers > 0) held.add(turn);
      else endedBytes -= turn.bytes;
    }
    turns.delete(info.turnId);
    chat.turns.delete(turn);
    if (chat.byRequest.get(info.requestId) === turn) chat.byRequest.delete(info.requestId);
    if (chat.turns.size === 0) chats.delete(chat.key);
    else if (chat.latest === turn) chat.latest = [...chat.turns].at(-1);
  }

  /** Its readers have left, or are cut off. */
  function drop(turn: Turn): void {
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

  function write(turn: Turn, chunks: Chunk[], bytes: number): void {
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

  function end(turn: Turn, outcome: TurnOutcome): void {
    Object.assign(turn.info, { endedAt: now(), outcome });
    turn.endedAt = elapsed();
    turn.isEnded = true;
    liveInSession.delete(turn.info.sessionId, turn);
    liveInChat.delete(turn.chat.key, turn);
    turn.leaseTimer?.clear();
    turn.leaseTimer = undefined;
    ended.add(turn);
    liveBytes -= turn.bytes;
    turn.bytes += TURN_BYTES;
    endedBytes += turn.bytes;
    // Whoever waits for its end may ask for the turn at once: it is forgotten, or it is there.
    if (ended.size === 1 || endedBytes > retainedBytes || retentionMs <= 0) forgetEnded();
    wakeReaders(turn);
    turn.commands.end();
  }

  /** Ends a turn whose writer has gone. True for a turn that is live. */
  function isLive(turn: Turn, time = elapsed()): boolean {
    if (turn.isEnded) return false;
    if (time < turn.leaseEnd) return true;
    const closings = closingsOf(turn.chunks, turn.info.messageId, { status: 'lost' });
    write(turn, closings, bytesOf(closings));
    end(turn, { status: 'lost' });
    return false;
  }

  /** One timer a turn. An append only moves the end; the timer looks for itself when it fires. */
  function watchLease(turn: Turn): void {
    const check = () => {
      if (isLive(turn)) turn.leaseTimer = startTimeout(turn.leaseEnd - elapsed(), check);
    };
    turn.leaseTimer = startTimeout(leaseMs, check);
  }

  /** What is known of a turn, after a look at whether its writer is still there. */
  function find(turnId: string): Turn | undefined {
    forgetDue();
    const turn = turns.get(turnId);
    if (turn) isLive(turn);
    // It may have been lost, and forgotten, just now.
    return turns.get(turnId);
  }

  /** The turn that answers the same request, if it still does. */
  function findRequest(chat: Chat, { requestId, isRepeat }: BeginTurn): Turn | undefined {
    const turn = chat.byRequest.get(requestId);
    if (!turn || isLive(turn)) return turn;
    const { outcome } = turn.info;
    const isGood = outcome?.status === 'finished' || outcome?.status === 'paused';
    // What is not kept any more is not there.
    return isRepeat || (isGood && elapsed() < turn.endedAt + dedupeMs) ? turn : undefined;
  }

  function create(info: BeginTurn): Turn {
    const key = keyOf(info.sessionId, info.chatId);
    let chat = chats.get(key);
    if (!chat) {
      chat = { key, turns: new Set(), latest: undefined, byRequest: new Map() };
      chats.set(key, chat);
    }
    const { sessionId, chatId, requestId, messageId } = info;
    const turn: Turn = {
      // Not only an id: whoever knows it can ask for the turn.
      info: {
        sessionId,
        chatId,
        requestId,
        messageId,
        startedAt: now(),
        turnId: createTurnId(),
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
      answered: new Set(),
      endedAt: 0,
      leaseEnd: elapsed() + leaseMs,
      leaseTimer: undefined,
    };
    turns.set(turn.info.turnId, turn);
    chat.turns.add(turn);
    liveInSession.add(sessionId, turn);
    liveInChat.add(key, turn);
    chat.latest = turn;
    chat.byRequest.set(requestId, turn);
    watchLease(turn);
    return turn;
  }

  function writerOf(turn: Turn): TurnWriter {
    let isDone = false;
    const hold = () => {
      const time = elapsed();
      if (!isLive(turn, time)) throw new SabirError(TURN_FENCED);
      turn.leaseEnd = time + leaseMs;
    };
    return {
      turnId: turn.info.turnId,
      renewMs: Math.min(2_000, leaseMs / 3),
      get isHeld() {
        return !turn.isEnded && elapsed() < turn.leaseEnd;
      },
      async append(chunks) {
        hold();
        const bytes = bytesOf(chunks);
        const isTooLarge = turn.bytes + bytes > maxTurnBytes;
        const isFull = liveBytes + bytes > 2 * maxLiveBytes;
        if ((isTooLarge || isFull) && !chunks.every(isClosing)) {
          throw new SabirError(isTooLarge ? TURN_TOO_LARGE : SERVER_FULL);
        }
        if (chunks.length > 0) write(turn, chunks, bytes);
        return turn.info.lastSeq;
      },
      async renew() {
        hold();
      },
      commands: () => turn.commands.read(),
      async release() {
        turn.leaseEnd = 0;
        isLive(turn);
      },
      async close(outcome) {
        if (isDone) return;
        hold();
        isDone = true;
        end(turn, outcome);
      },
    };
  }

  return {
    outlivesProcess: false,
    notes: createLocalNotes(elapsed),
    isReadElsewhere: async () => false,
    onOrphan: () => () => undefined,
    limits: {
      liveBytes: { max: maxLiveBytes, use: () => liveBytes },
      retainedBytes: { max: retainedBytes, use: () => endedBytes },
    },
    async begin(info) {
      if (isClosed) throw new SabirError(SHUTTING_DOWN);
      const chat = chatOf(info.sessionId, info.chatId);
      const existing = chat && findRequest(chat, info);
      if (!existing && liveBytes > maxLiveBytes) {
        throw new SabirError(
          SERVER_FULL,
          `Running turns hold more than liveBytes: ${maxLiveBytes}.`,
        );
      }
      return existing ? { existing: toInfo(existing) } : { writer: writerOf(create(info)) };
    },
    async latest(sessionId, chatId) {
      const chat = chatOf(sessionId, chatId);
      if (chat?.latest) isLive(chat.latest);
      return chat?.latest && turns.has(chat.latest.info.turnId) ? toInfo(chat.latest) : undefined;
    },
    async get(turnId) {
      const turn = find(turnId);
      return turn && toInfo(turn);
    },
    read: (turnId, after, signal, batchBytes) =>
      new TurnReader(find(turnId), after, signal, batchBytes),
    async command(turnId: string, command: TurnCommand) {
      const turn = find(turnId);
      if (!turn || turn.isEnded) return false;
      if (command.type === 'answer') {
        if (turn.answered.has(command.questionId)) return false;
        turn.answered.add(command.questionId);
      }
      turn.commands.push(command);
      return true;
    },
    async live(sessionId, chatId) {
      const found =
        chatId === undefined
          ? liveInSession.get(sessionId)
          : liveInChat.get(keyOf(sessionId, chatId));
      return found.filter((turn) => isLive(turn)).map(toInfo);
    },
    async close() {
      isClosed = true;
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

function toInfo({ info, progress, isEnded, answered }: Turn): TurnInfo {
  const { lastSeq } = info;
  return {
    ...info,
    ...toldBy(progress, { lastSeq, isEnded, isAnswered: (id) => answered.has(id) }),
  };
}

/** Hard to guess, and short: it is in the id of every frame. */
function createTurnId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

/** Unambiguous whatever the ids contain: a chat of one session is never that of another. */
function keyOf(sessionId: string, chatId: string): string {
  return JSON.stringify([sessionId, chatId]);
}

/** Made for whoever reads, not kept: most of what a long turn keeps are its chunks. */
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

function bytesOf(chunks: Chunk[]): number {
  let bytes = 0;
  for (const chunk of chunks) bytes += chunkBytes(chunk);
  return bytes;
}
