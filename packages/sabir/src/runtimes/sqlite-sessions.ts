/** Sessions in a SQLite file, with what Node brings along. */
import type { SQLOutputValue } from 'node:sqlite';
import type {
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredTurn,
  TurnChanges,
} from '../session/storage.ts';
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
  const readTurn = (row: TurnRow | undefined) => row && toTurn(row);

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
    messages({ channel, limit } = {}) {
      const count = toCount(limit);
      const rows = channel
        ? queries.messagesOfChannel.all(sessionId, channel.channelType, channel.channelId, count)
        : queries.messages.all(sessionId, count);
      return rows.reverse().map(({ message }) => parse(message));
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
        const row = queries.addTurn.first(sessionId, turnId, promptId, ...stateColumnsOf(turn));
        queries.addPrompt.run(Number(row?.turn), json);
      });
      return true;
    },
    turn: (turnId) => readTurn(queries.turn.first(sessionId, turnId)),
    turnOfPrompt: (promptId) => readTurn(queries.turnOfPrompt.first(sessionId, promptId)),
    updateTurn(turnId, changes) {
      transaction(() => {
        const changed = queries.updateTurn.run(...stateColumnsOf(changes), sessionId, turnId);
        if (changed > 0) touch();
      });
    },
    openTurns: () => queries.openTurns.all(sessionId).map(toTurn),

    appendEvents(turnId, lastSeq, events) {
      queries.appendEvents.run(lastSeq, events, sessionId, turnId);
    },
    events(turnId, after) {
      return queries.events.all(sessionId, turnId, after).map(({ events }) => toText(events));
    },
    trimEvents(keep) {
      queries.trimEvents.run(sessionId, toCount(keep));
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
  };
}

type TurnRow = Record<string, SQLOutputValue>;

/** As it was asked, with what became of it. */
function toTurn({ prompt, status, started_at, ended_at, reason, error }: TurnRow): StoredTurn {
  return {
    ...parse<StoredTurn>(prompt),
    status: status as StoredTurn['status'],
    ...(started_at !== null && { startedAt: Number(started_at) }),
    ...(ended_at !== null && { endedAt: Number(ended_at) }),
    ...(reason !== null && { reason: reason as NonNullable<StoredTurn['reason']> }),
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
