/** Sessions in a SQLite file, with what Node brings along. */
import type { SQLOutputValue } from 'node:sqlite';
import type { Channel } from '../../core/translator.ts';
import type {
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredTurn,
  TurnChanges,
  TurnInfo,
} from '../../sessions/storage.ts';
import {
  openSessionDatabase,
  prepareQueries,
  type Queries,
  type SqliteSessionStoreOptions,
  toText,
} from './sqlite-database.ts';

export type { SqliteSessionStoreOptions } from './sqlite-database.ts';

type Transaction = SessionStorage['transaction'];

/**
 * All sessions of one server, in one file that nobody else may open meanwhile. Throws with a
 * message that says what to do, and a `code`, when the file cannot be used: `locked`,
 * `not-writable`, `not-a-database`, `not-ours`, `newer-schema`, `corrupt`, `disk-full` or
 * `disk-failed`.
 *
 * Needs `node:sqlite`, which an older Node does not have, or calls experimental on stderr.
 *
 * @example
 * const store = sqliteSessionStore({ file: 'data/sessions.db' });
 */
export function sqliteSessionStore(options: SqliteSessionStoreOptions): SessionStore {
  const { now = Date.now } = options;
  const database = openSessionDatabase(options);
  const queries = prepareQueries(database);

  const transaction: Transaction = (run) => {
    const isOuter = !(database.isOpen && database.isTransaction);
    (isOuter ? queries.begin : queries.mark).run();
    try {
      const result = run();
      (isOuter ? queries.commit : queries.releaseMark).run();
      return result;
    } catch (error) {
      // Where the disk is full, SQLite may have undone all of it already.
      if (database.isOpen && database.isTransaction) undo(isOuter);
      throw error;
    }
  };

  function undo(isOuter: boolean): void {
    if (isOuter) {
      queries.rollback.run();
    } else {
      queries.rollbackToMark.run();
      queries.releaseMark.run();
    }
  }

  return {
    open(sessionId) {
      if (!database.isOpen) throw new Error('The session store is closed.');
      return sqliteSessionStorage({ sessionId, queries, transaction, now });
    },
    list(limit) {
      const rows = queries.listSessions.all(toCount(limit));
      return rows.map(({ id, updated_at }) => ({
        sessionId: toText(id),
        updatedAt: Number(updated_at),
      }));
    },
    unfinished: () => queries.unfinishedSessions.all().map(({ session }) => toText(session)),
    storedBytes: () => Number(queries.databaseBytes.first()?.bytes),
    delete: (sessionId) => void queries.deleteSession.run(sessionId),
    close() {
      // Also brings what is in the write-ahead log into the file, and removes the log.
      if (database.isOpen) database.close();
    },
  };
}

type Session = { sessionId: string; queries: Queries; transaction: Transaction; now: () => number };

function sqliteSessionStorage({ sessionId, queries, transaction, now }: Session): SessionStorage {
  const touch = () => queries.touchSession.run(sessionId, now());
  const hold = () => queries.holdSession.run(sessionId, now());
  const readTurn = (row: TurnRow | undefined) => row && toTurn<StoredTurn>(row);
  const readInfo = (row: TurnRow | undefined) => row && toTurn<TurnInfo>(row);

  function positionOf(messageId: string | undefined): number {
    if (messageId === undefined) return Number.MAX_SAFE_INTEGER;
    return Number(queries.messagePosition.first(sessionId, messageId)?.position ?? 0);
  }

  function sizesOf(channel: Channel | undefined, before: number, limit: number) {
    if (!channel) return queries.messageSizes.each(sessionId, before, limit);
    const { channelType, channelId } = channel;
    return queries.messageSizesOfChannel.each(sessionId, channelType, channelId, before, limit);
  }

  return {
    transaction,

    addMessage(message) {
      const json = JSON.stringify(message);
      if (queries.hasMessage.first(sessionId, message.id)) return false;
      const channel = channelColumnsOf(message);
      transaction(() => {
        touch();
        queries.addMessage.run(sessionId, message.id, ...channel, json);
      });
      return true;
    },
    messages({ channel, before, limit, maxBytes = Infinity } = {}) {
      const positions: number[] = [];
      let bytes = 0;
      for (const row of sizesOf(channel, positionOf(before), toCount(limit))) {
        bytes += Number(row.bytes);
        if (bytes > maxBytes) break;
        positions.push(Number(row.position));
      }
      return positions.reverse().map((at) => parse(queries.message.first(at)?.message));
    },
    channels() {
      const rows = queries.channels.all(sessionId);
      return rows.map(({ channel_type, channel_id }) => ({
        channelType: toText(channel_type),
        channelId: toText(channel_id),
      }));
    },

    addTurn(turn) {
      const json = JSON.stringify(turn);
      const { turnId, promptId } = turn;
      if (queries.hasTurn.first(sessionId, turnId)) return false;
      if (queries.hasPrompt.first(sessionId, promptId)) return false;
      transaction(() => {
        touch();
        const { content: _, attachments: __, ...info } = turn;
        const columns = [JSON.stringify(info), ...stateColumnsOf(turn)] as const;
        const row = queries.addTurn.first(sessionId, turnId, promptId, ...columns);
        queries.addPrompt.run(Number(row?.turn), json);
      });
      return true;
    },
    turn: (turnId) => readTurn(queries.turn.first(sessionId, turnId)),
    turnInfo: (turnId) => readInfo(queries.turnInfo.first(sessionId, turnId)),
    turnOfPrompt: (promptId) => readInfo(queries.turnOfPrompt.first(sessionId, promptId)),
    updateTurn(turnId, changes) {
      transaction(() => {
        const changed = queries.updateTurn.run(...stateColumnsOf(changes), sessionId, turnId);
        if (changed > 0) touch();
      });
    },
    openTurns: () => queries.openTurns.all(sessionId).map((row) => toTurn<TurnInfo>(row)),

    appendEvents(turnId, lastSeq, events) {
      queries.appendEvents.run(lastSeq, events, sessionId, turnId);
    },
    events(turnId, after, maxBytes = Infinity) {
      const entries: string[] = [];
      let bytes = 0;
      for (const row of queries.events.each(sessionId, turnId, after)) {
        bytes += Number(row.bytes);
        if (bytes > maxBytes && entries.length > 0) break;
        entries.push(toText(row.events));
      }
      return entries;
    },
    trimEvents(keep, maxBytes = Infinity) {
      const kept = new Set<unknown>();
      let bytes = 0;
      for (const { turn, event_bytes } of queries.latestEnded.all(sessionId, toCount(keep))) {
        bytes += Number(event_bytes);
        if (bytes > maxBytes) break;
        kept.add(turn);
      }
      transaction(() => {
        for (const { turn } of queries.endedWithEvents.all(sessionId)) {
          if (kept.has(turn)) continue;
          queries.deleteEvents.run(Number(turn));
          queries.forgetEvents.run(Number(turn));
        }
      });
    },

    saveQuestion(question) {
      const json = JSON.stringify(question);
      const { questionId, turnId, status } = question;
      transaction(() => {
        hold();
        queries.saveQuestion.run(sessionId, questionId, turnId, status, json);
      });
    },
    question: (questionId) => parseFound(queries.question.first(sessionId, questionId)?.question),
    openQuestions() {
      return queries.openQuestions.all(sessionId).map(({ question }) => parse(question));
    },
    questionsOf(turnId) {
      return queries.questionsOf.all(sessionId, turnId).map(({ question }) => parse(question));
    },

    saveParticipant(participant) {
      const json = JSON.stringify(participant);
      transaction(() => {
        hold();
        queries.saveParticipant.run(sessionId, participant.id, json);
      });
    },
    participant: (id) => parseFound(queries.participant.first(sessionId, id)?.participant),
    participants() {
      return queries.participants.all(sessionId).map(({ participant }) => parse(participant));
    },

    get(key) {
      const row = queries.get.first(sessionId, key);
      return row && toText(row.value);
    },
    set(key, value) {
      transaction(() => {
        hold();
        queries.set.run(sessionId, key, value);
      });
    },

    bytes: () => Number(queries.sessionBytes.first(sessionId)?.bytes ?? 0),
  };
}

type TurnRow = Record<string, SQLOutputValue>;

/** As it was asked, with what became of it. */
function toTurn<Turn extends TurnInfo>(row: TurnRow): Turn {
  const { json, status, started_at, ended_at, reason, error } = row;
  return {
    ...parse<Turn>(json),
    status: status as TurnInfo['status'],
    ...(started_at !== null && { startedAt: Number(started_at) }),
    ...(ended_at !== null && { endedAt: Number(ended_at) }),
    ...(reason !== null && { reason: reason as NonNullable<TurnInfo['reason']> }),
    ...(error !== null && { error: toText(error) }),
  };
}

function stateColumnsOf({ status, startedAt, endedAt, reason, error }: TurnChanges) {
  return [status, startedAt, endedAt, reason, error] as const;
}

/** A message is in a channel, or in none. */
function channelColumnsOf({ channelType, channelId }: StoredMessage) {
  const isComplete = channelType !== undefined && channelId !== undefined;
  return isComplete ? ([channelType, channelId] as const) : ([null, null] as const);
}

/** SQLite counts in whole numbers. */
function toCount(limit = Number.MAX_SAFE_INTEGER): number {
  return Math.max(0, Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER));
}

function parse<Kept>(column: SQLOutputValue | undefined): Kept {
  return JSON.parse(toText(column));
}

function parseFound<Kept>(column: SQLOutputValue | undefined): Kept | undefined {
  return column === undefined ? undefined : parse(column);
}
