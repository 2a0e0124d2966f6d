/** Sessions in a SQLite file, with what Node brings along. */
import type { SQLOutputValue } from 'node:sqlite';
import type { Channel } from '../../core/translator.ts';
import type {
  PromptChanges,
  PromptInfo,
  SessionStorage,
  SessionStore,
  StoredPrompt,
} from '../../sessions/storage.ts';
import { createLocalTurnLog, type LocalTurnLogOptions } from '../../turns/local-log.ts';
import { createSqliteJournal } from '../../turns/sqlite-journal.ts';
import {
  inTransaction,
  openSessionDatabase,
  prepareQueries,
  type Queries,
  type SqliteOptions,
  toSqlDatabase,
  toText,
} from './sqlite-database.ts';

export type SqliteSessionStoreOptions = SqliteOptions & {
  /** Milliseconds since 1970. */
  now?: () => number;
  /** Of the turn log in the same file. */
  turns?: LocalTurnLogOptions;
};

/** Behind every message. */
const LAST = Number.MAX_SAFE_INTEGER;

type Transaction = SessionStorage['transaction'];

/**
 * All sessions of one server with their turns, in one file that no other process may open meanwhile. Throws with a
 * message that says what to do, and a `code`, when the file cannot be used: `locked`,
 * `not-writable`, `not-a-database`, `not-ours`, `older-schema`, `newer-schema`, `corrupt`, `disk-full` or
 * `disk-failed`.
 *
 * Needs `node:sqlite`, which an older Node does not have, or calls experimental on stderr.
 *
 * @example
 * const store = sqliteSessionStore({ file: 'data/sessions.db' });
 */
export function sqliteSessionStore(options: SqliteSessionStoreOptions): SessionStore {
  const { now = Date.now, turns = {} } = options;
  const database = openSessionDatabase(options);
  const queries = prepareQueries(database);
  const journal = createSqliteJournal(toSqlDatabase(database, () => undefined));
  // The session's own limit holds its turns: `turnBytes`.
  const log = createLocalTurnLog({ maxTurnBytes: Infinity, ...turns }, journal);

  const transaction: Transaction = (run) => {
    if (!database.isOpen) throw new Error('The session store is closed.');
    return inTransaction(database, run);
  };

  return {
    log,
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
      if (!database.isOpen) return;
      void log.close();
      try {
        journal.flush();
      } finally {
        // Also brings what is in the write-ahead log into the file, and removes the log.
        database.close();
      }
    },
  };
}

type Session = { sessionId: string; queries: Queries; transaction: Transaction; now: () => number };

function sqliteSessionStorage({ sessionId, queries, transaction, now }: Session): SessionStorage {
  const touch = () => queries.touchSession.run(sessionId, now());
  const hold = () => queries.holdSession.run(sessionId, now());

  function positionOf(messageId: string): number | undefined {
    const row = queries.messagePosition.first(sessionId, messageId);
    return row && Number(row.position);
  }

  function sizesOf(channel: Channel | undefined, before: number, from: number, limit: number) {
    const range = [before, from, limit] as const;
    if (!channel) return queries.messageSizes.each(sessionId, ...range);
    const { channelType, channelId } = channel;
    return queries.messageSizesOfChannel.each(sessionId, channelType, channelId, ...range);
  }

  return {
    transaction,

    addMessage(message) {
      const json = JSON.stringify(message);
      if (positionOf(message.id) !== undefined) return false;
      const { id, channelType, channelId } = message;
      transaction(() => {
        touch();
        queries.addMessage.run(sessionId, id, channelType, channelId, json);
      });
      return true;
    },
    messages({ channel, before, from, limit, maxBytes = Infinity } = {}) {
      const end = before === undefined ? LAST : (positionOf(before) ?? 0);
      const start = from === undefined ? 0 : (positionOf(from) ?? LAST);
      const positions: number[] = [];
      let bytes = 0;
      for (const row of sizesOf(channel, end, start, toCount(limit))) {
        bytes += Number(row.bytes);
        if (bytes > maxBytes) break;
        positions.push(Number(row.position));
      }
      return positions.reverse().map((at) => parse(queries.message.first(at)?.message));
    },
    message: (id) => parseFound(queries.messageOfId.first(sessionId, id)?.message),
    replaceMessages(from, promptId) {
      const row = queries.messageOfId.first(sessionId, from);
      if (!row) return;
      const channel = [toText(row.channel_type), toText(row.channel_id)] as const;
      transaction(() => {
        touch();
        queries.replaceMessages.run(promptId, sessionId, ...channel, Number(row.position));
      });
    },
    replacedMessages: (promptId) =>
      queries.replacedMessages.all(sessionId, promptId).map(({ message }) => parse(message)),
    wasReplaced: (id, { channelType, channelId }) =>
      queries.replacedMessage.first(sessionId, id, channelType, channelId) !== undefined,
    restoreMessages(promptId) {
      transaction(() => {
        if (queries.restoreMessages.run(sessionId, promptId) > 0) touch();
      });
    },
    channels() {
      const rows = queries.channels.all(sessionId);
      return rows.map(({ channel_type, channel_id }) => ({
        channelType: toText(channel_type),
        channelId: toText(channel_id),
      }));
    },

    addPrompt(prompt) {
      const { promptId, turnId, messageId } = prompt;
      const { text, attachments, body, ...info } = prompt;
      const content = JSON.stringify({ text, attachments, body });
      if (queries.hasPrompt.first(sessionId, promptId, turnId, messageId)) return false;
      transaction(() => {
        touch();
        const columns = [JSON.stringify(info), ...stateColumnsOf(prompt)] as const;
        const row = queries.addPrompt.first(sessionId, promptId, turnId, messageId, ...columns);
        queries.addContent.run(Number(row?.position), content);
      });
      return true;
    },
    prompt(promptId) {
      const row = queries.prompt.first(sessionId, promptId);
      return row && { ...toInfo(row), ...parse<StoredPrompt>(row.content) };
    },
    promptInfo(key, id) {
      const row = queries[key].first(sessionId, id);
      return row && toInfo(row);
    },
    updatePrompt(promptId, changes) {
      transaction(() => {
        const changed = queries.updatePrompt.run(...stateColumnsOf(changes), sessionId, promptId);
        if (changed > 0) touch();
      });
    },
    openPrompts: () => queries.openPrompts.all(sessionId).map(toInfo),

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

    bytes: () => Number(queries.sessionBytes.first(sessionId)?.bytes ?? 0),
  };
}

/** As it was asked, with what became of it. */
function toInfo(row: Record<string, SQLOutputValue>): PromptInfo {
  const { info, status, started_at, ended_at, outcome, error, runner_id } = row;
  return {
    ...parse<PromptInfo>(info),
    status: status as PromptInfo['status'],
    ...(started_at !== null && { startedAt: Number(started_at) }),
    ...(ended_at !== null && { endedAt: Number(ended_at) }),
    ...(outcome !== null && { outcome: outcome as NonNullable<PromptInfo['outcome']> }),
    ...(error !== null && { error: toText(error) }),
    ...(runner_id !== null && { runnerId: toText(runner_id) }),
  };
}

function stateColumnsOf(changes: PromptChanges) {
  const { status, startedAt, endedAt, outcome, error, runnerId } = changes;
  return [status, startedAt, endedAt, outcome, error, runnerId] as const;
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
