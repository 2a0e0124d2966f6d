import type { Chunk } from '../core/chunks.ts';
import {
  CANNOT_STEER,
  LOG_FAILED,
  SabirError,
  SERVER_FULL,
  SHUTTING_DOWN,
  TURN_FENCED,
  TURN_TOO_LARGE,
} from '../core/errors.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { monotonicNow, startTimeout } from '../core/timers.ts';
import { areClosings } from './chunk-bytes.ts';
import { closingsOf } from './closings.ts';
import { nameOfCommand } from './command-name.ts';
import { CommandQueue } from './command-queue.ts';
import { createGroups } from './groups.ts';
import type { JournaledTurn, TurnJournal } from './journal.ts';
import { createCommit } from './journal-commit.ts';
import { createLocalNotes } from './local-notes.ts';
import {
  bytesOf,
  type Chat,
  createLocalTurns,
  createTurnId,
  keyOf,
  type LocalTurn,
  toInfo,
} from './local-turns.ts';
import {
  type BeginTurn,
  MOST_COMMANDS,
  MOST_STEER_BYTES,
  type OrphanedTurn,
  steerBytesOf,
  type TurnCommand,
  type TurnLog,
  type TurnWriter,
} from './log.ts';
import { TurnReader } from './turn-reader.ts';

export type LocalTurnLogOptions = {
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

const MEGABYTE = 1024 * 1024;
/**
 * Turns that one process at a time writes and reads. Without a journal they are lost with the process. With one, the
 * next process finds them, and everything is written down before anybody reads it.
 */
export function createLocalTurnLog(options: LocalTurnLogOptions, journal?: TurnJournal): TurnLog {
  const { maxTurnBytes = 16 * MEGABYTE, retainedBytes = 64 * MEGABYTE } = options;
  const { liveBytes: maxLiveBytes = 192 * MEGABYTE } = options;
  const { retentionMs = 60_000, dedupeMs = 10_000, leaseMs = 30_000 } = options;
  const { now = Date.now, elapsed = monotonicNow } = options;
  const commit = createCommit(journal);
  const turns = createLocalTurns({
    retentionMs,
    retainedBytes,
    leaseMs,
    now,
    elapsed,
    onForget(turnId) {
      journal?.forget(turnId);
      // A turn that could not be taken out of the journal is forgotten again at the next start.
      if (journal) commit().catch(() => undefined);
    },
  });
  let isClosed = false;
  let writers = 0;
  const adopters = new Set<Adopt>();
  /** The listeners of `onBegin`, by chat. */
  const beginnings = createGroups<string, (turnId: string) => void>();

  /** Ends a turn whose writer has gone. True for a turn that is live. */
  function isLive(turn: LocalTurn, time = elapsed()): boolean {
    if (turn.isEnded) return false;
    if (time < turn.leaseEnd || turn.isOffered) return true;
    if (adopters.size > 0) {
      void offer(turn);
      return true;
    }
    lose(turn);
    return false;
  }

  function lose(turn: LocalTurn): void {
    const { turnId, messageId, lastSeq } = turn.info;
    const outcome = { status: 'lost' } as const;
    const closings = closingsOf(turn.chunks, messageId, outcome);
    turn.writer = 0;
    if (closings.length > 0) {
      journal?.append(turnId, lastSeq + closings.length, closings);
    }
    journal?.end(turnId, outcome, now());
    // If this cannot be written down, the next process is offered the turn once more.
    if (journal) commit().catch(() => undefined);
    turns.write(turn, closings, bytesOf(closings));
    turns.end(turn, outcome);
  }

  /** Its writer is gone: another one continues it, or it is lost. */
  async function offer(turn: LocalTurn): Promise<void> {
    turn.isOffered = true;
    try {
      for (const adopt of adopters) {
        turn.commands.end();
        turn.commands = new CommandQueue();
        for (const command of turn.given) turn.commands.push(command);
        turn.leaseEnd = elapsed() + leaseMs;
        const { origin, mark } = turn;
        if (await adopt({ turn: toInfo(turn), origin, mark, writer: writerOf(turn) })) return;
      }
      turn.writer = 0;
      if (!turn.isEnded && adopters.size > 0) lose(turn);
    } catch {
      // An adopter that fails has not adopted it: the turn is offered again when its lease has run out.
      turn.writer = 0;
    } finally {
      turn.isOffered = false;
    }
  }

  /** One timer a turn. An append only moves the end; the timer looks for itself when it fires. */
  function watchLease(turn: LocalTurn): void {
    const check = () => {
      if (isLive(turn)) turn.leaseTimer = startTimeout(turn.leaseEnd - elapsed(), check);
    };
    turn.leaseTimer = startTimeout(leaseMs, check);
  }

  /** What is known of a turn, after a look at whether its writer is still there. */
  function find(turnId: string): LocalTurn | undefined {
    const turn = turns.get(turnId);
    if (turn) isLive(turn);
    // It may have been lost, and forgotten, just now.
    return turns.get(turnId);
  }

  /** The turn that answers the same request, if it still does. */
  function findRequest(chat: Chat, { requestId, isRepeat }: BeginTurn): LocalTurn | undefined {
    const turn = chat.byRequest.get(requestId);
    if (!turn || isLive(turn)) return turn;
    const { outcome } = turn.info;
    const isGood = outcome?.status === 'finished' || outcome?.status === 'paused';
    // What is not kept any more is not there.
    return isRepeat || (isGood && elapsed() < turn.endedAt + dedupeMs) ? turn : undefined;
  }

  function findNamed({ turnId, sessionId, chatId }: BeginTurn): LocalTurn | undefined {
    const turn = turnId === undefined ? undefined : find(turnId);
    const isElsewhere = turn?.info.sessionId !== sessionId || turn.info.chatId !== chatId;
    if (turn && isElsewhere)
      throw new SabirError(LOG_FAILED, 'A turn of another chat has this id.');
    return turn;
  }

  function create(info: BeginTurn, restored?: JournaledTurn): LocalTurn {
    const turn = turns.create(info, restored);
    watchLease(turn);
    return turn;
  }

  /** What earlier processes left: in the order in which it began, then ended in the order in which it ended. */
  function restore(journaled: JournaledTurn[]): void {
    const ended: [LocalTurn, TurnOutcome, number][] = [];
    for (const kept of journaled) {
      const turn = create(kept, kept);
      const { chunks, outcome, endedAt = 0, commands } = kept;
      turn.mark = kept.mark;
      turn.given = commands;
      for (const command of commands) {
        const name = nameOfCommand(command);
        if (name !== undefined) turn.accepted.add(name);
        if (command.type === 'steer') turns.hold(turn, steerBytesOf(command));
      }
      turns.write(turn, chunks, bytesOf(chunks));
      if (outcome) ended.push([turn, outcome, endedAt]);
    }
    for (const one of ended.sort(([, , at], [, , other]) => at - other)) turns.end(...one);
  }

  function writerOf(turn: LocalTurn): TurnWriter {
    const id = ++writers;
    turn.writer = id;
    const hold = () => {
      const time = elapsed();
      if (!isLive(turn, time) || turn.writer !== id) throw new SabirError(TURN_FENCED);
      turn.leaseEnd = time + leaseMs;
    };
    let appending: Promise<unknown> | undefined;
    let closing: Promise<void> | undefined;
    const { turnId } = turn.info;

    async function append(chunks: Chunk[], mark = turn.mark): Promise<number> {
      hold();
      const bytes = bytesOf(chunks);
      const isTooLarge = turn.bytes + bytes > maxTurnBytes;
      const isFull = turns.liveBytes + bytes > 2 * maxLiveBytes;
      if ((isTooLarge || isFull) && !areClosings(chunks)) {
        throw new SabirError(isTooLarge ? TURN_TOO_LARGE : SERVER_FULL);
      }
      if (chunks.length === 0) return turn.info.lastSeq;
      if (journal) {
        const isMarked = mark !== turn.mark;
        const lastSeq = turn.info.lastSeq + chunks.length;
        journal.append(turnId, lastSeq, chunks, isMarked ? mark : undefined);
        await commit();
        if (turn.isEnded || turn.writer !== id) throw new SabirError(TURN_FENCED);
      }
      turn.mark = mark;
      turns.write(turn, chunks, bytes);
      return turn.info.lastSeq;
    }

    async function close(outcome: TurnOutcome, store: (() => void) | undefined): Promise<void> {
      hold();
      if (journal && store) {
        await appending;
        // It may have been lost meanwhile.
        hold();
        commit.now(() => journal.endWith(turnId, outcome, now(), store));
      } else if (journal) {
        journal.end(turnId, outcome, now());
        await commit();
      } else store?.();
      if (!turn.isEnded) turns.end(turn, outcome);
    }

    return {
      turnId,
      renewMs: Math.min(2_000, leaseMs / 3),
      get isHeld() {
        return !turn.isEnded && elapsed() < turn.leaseEnd;
      },
      // With a journal the next one is numbered behind this one, once this one is written down.
      append: journal
        ? (chunks, mark) => {
            const doing = Promise.resolve(appending).then(() => append(chunks, mark));
            appending = doing.catch(() => undefined);
            return doing;
          }
        : append,
      async renew() {
        hold();
      },
      commands: () => turn.commands.read(),
      async release() {
        // The next writer begins behind what this one has written.
        await appending;
        if (turn.isEnded || turn.writer !== id) return;
        turn.writer = 0;
        turn.commands.end();
        // While nothing can be written, the next writer would give the turn up as well: wait for a lease.
        if (journal && (adopters.size === 0 || commit.hasFailed())) return;
        turn.leaseEnd = 0;
        isLive(turn);
      },
      close(outcome, store) {
        closing ??= close(outcome, store).catch((error) => {
          closing = undefined;
          throw error;
        });
        return closing;
      },
    };
  }

  restore(journal?.load() ?? []);

  return {
    createTurnId,
    outlivesProcess: journal !== undefined,
    notes: createLocalNotes(elapsed),
    isReadElsewhere: async () => false,
    onOrphan(adopt) {
      if (!journal) return () => undefined;
      adopters.add(adopt);
      for (const turn of turns.all()) {
        if (!turn.isEnded && turn.writer === 0 && !turn.isOffered) void offer(turn);
      }
      return () => void adopters.delete(adopt);
    },
    limits: {
      liveBytes: { max: maxLiveBytes, use: () => turns.liveBytes },
      retainedBytes: { max: retainedBytes, use: () => turns.endedBytes },
    },
    async begin(info) {
      if (isClosed) throw new SabirError(SHUTTING_DOWN);
      const chat = turns.chatOf(info.sessionId, info.chatId);
      const existing = findNamed(info) ?? (chat && findRequest(chat, info));
      if (!existing && turns.liveBytes > maxLiveBytes) {
        throw new SabirError(
          SERVER_FULL,
          `Running turns hold more than liveBytes: ${maxLiveBytes}.`,
        );
      }
      if (existing) return { existing: toInfo(existing) };
      const turn = create(info);
      const writer = writerOf(turn);
      if (journal) {
        const { turnId, startedAt } = turn.info;
        journal.begin({ ...info, origin: info.origin, turnId, startedAt });
        // A turn that is not written down must not be offered, however long that takes.
        turn.leaseEnd = Infinity;
        try {
          await commit();
        } catch (error) {
          turn.writer = 0;
          turns.discard(turn);
          throw error;
        }
        turn.leaseEnd = elapsed() + leaseMs;
        turn.leaseTimer?.clear();
        if (!turn.isEnded) watchLease(turn);
      }
      for (const listener of beginnings.get(turn.chat.key)) listener(writer.turnId);
      return { writer };
    },
    onBegin(sessionId, chatId, listener) {
      const key = keyOf(sessionId, chatId);
      // The same function may listen twice.
      const one = (turnId: string) => listener(turnId);
      beginnings.add(key, one);
      return () => beginnings.delete(key, one);
    },
    async latest(sessionId, chatId) {
      const chat = turns.chatOf(sessionId, chatId);
      if (chat?.latest) isLive(chat.latest);
      return chat?.latest && turns.get(chat.latest.info.turnId) ? toInfo(chat.latest) : undefined;
    },
    async get(turnId) {
      const turn = find(turnId);
      return turn && toInfo(turn);
    },
    read: (turnId, after, signal, batchBytes, isPassive) =>
      new TurnReader(find(turnId), after, signal, batchBytes, isPassive),
    async command(turnId: string, command: TurnCommand) {
      const turn = find(turnId);
      if (!turn || turn.isEnded) return false;
      const { accepted } = turn;
      const name = nameOfCommand(command);
      if (name !== undefined && accepted.has(name)) return false;
      const bytes = command.type === 'steer' ? steerBytesOf(command) : 0;
      const isFull =
        accepted.size >= MOST_COMMANDS ||
        turn.steerBytes + bytes > MOST_STEER_BYTES ||
        turns.liveBytes > maxLiveBytes;
      if (command.type === 'steer' && isFull) throw new SabirError(CANNOT_STEER);
      // At once: a second answer must not come in while the first is being written down.
      if (name !== undefined) accepted.add(name);
      turns.hold(turn, bytes);
      if (journal) {
        journal.command(turnId, command);
        try {
          await commit();
        } catch (error) {
          if (name !== undefined) accepted.delete(name);
          if (!turn.isEnded) turns.hold(turn, -bytes);
          throw error;
        }
        if (turn.isEnded) return false;
        turn.given.push(command);
      }
      turn.commands.push(command);
      return true;
    },
    async live(sessionId, chatId) {
      const found = turns.live(sessionId, chatId);
      return found.filter((turn) => isLive(turn)).map(toInfo);
    },
    async ended(sessionId, chatId, most) {
      const found = [...(turns.chatOf(sessionId, chatId)?.turns ?? [])].slice(-most);
      return found.filter((turn) => !isLive(turn)).map(toInfo);
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      adopters.clear();
      beginnings.clear();
      turns.clear();
      if (!journal) return;
      try {
        await commit();
      } finally {
        journal.close();
      }
    },
  };
}

type Adopt = (orphan: OrphanedTurn) => Promise<boolean>;
