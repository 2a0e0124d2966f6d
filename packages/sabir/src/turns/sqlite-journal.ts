import type { TurnOutcome } from '../core/outcome.ts';
import { decodeBatch, encodeBatch } from './chunk-codec.ts';
import type { JournaledTurn, TurnJournal } from './journal.ts';

export type SqlValue = string | number | null;

/**
 * As much of SQLite as a journal needs, all of it synchronous: `node:sqlite`'s, or the `sql` of a Durable Object,
 * behind a few lines.
 */
export interface SqlDatabase {
  /** Runs one statement and gives its rows. */
  query(sql: string, ...values: SqlValue[]): Record<string, unknown>[];
  /** All or nothing: what `run` throws is thrown on, and nothing it did is kept. */
  transaction(run: () => void): void;
  close(): void;
}

export const TURN_TABLES: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS turn (
    position INTEGER PRIMARY KEY, turn_id TEXT NOT NULL UNIQUE, info TEXT NOT NULL, mark ANY, ended TEXT) STRICT`,
  `CREATE TABLE IF NOT EXISTS turn_append (
    turn_id TEXT NOT NULL, last_seq INTEGER NOT NULL, chunks TEXT NOT NULL,
    PRIMARY KEY (turn_id, last_seq)) STRICT, WITHOUT ROWID`,
  `CREATE TABLE IF NOT EXISTS turn_command (
    position INTEGER PRIMARY KEY, turn_id TEXT NOT NULL, command TEXT NOT NULL) STRICT`,
  'CREATE INDEX IF NOT EXISTS turn_command_of ON turn_command (turn_id)',
];

const SQL = {
  turns: 'SELECT turn_id, info, mark, ended FROM turn ORDER BY position',
  appends: 'SELECT chunks FROM turn_append WHERE turn_id = ? ORDER BY last_seq',
  commands: 'SELECT command FROM turn_command WHERE turn_id = ? ORDER BY position',
  begin: 'INSERT INTO turn (turn_id, info) VALUES (?, ?)',
  append: 'INSERT INTO turn_append (turn_id, last_seq, chunks) VALUES (?, ?, ?)',
  mark: 'UPDATE turn SET mark = ? WHERE turn_id = ?',
  command: 'INSERT INTO turn_command (turn_id, command) VALUES (?, ?)',
  end: 'UPDATE turn SET ended = ? WHERE turn_id = ?',
  forget: 'DELETE FROM turn WHERE turn_id = ?',
  forgetAppends: 'DELETE FROM turn_append WHERE turn_id = ?',
  forgetCommands: 'DELETE FROM turn_command WHERE turn_id = ?',
};

/**
 * A journal in SQLite. Texts are JSON, which has no NUL and no half surrogate pairs, whatever an agent or a client
 * calls its things: not every platform's SQLite gives those back.
 */
export function createSqliteJournal(database: SqlDatabase): TurnJournal {
  let waiting: [sql: string, ...values: SqlValue[]][] = [];
  database.transaction(() => {
    for (const sql of TURN_TABLES) database.query(sql);
  });

  function toTurn({ turn_id, info, mark, ended }: Record<string, unknown>): JournaledTurn {
    const turnId = String(turn_id);
    const [names, origin, startedAt, userId] = JSON.parse(String(info)) as Info;
    const [sessionId, chatId, requestId, messageId] = names;
    const appends = database.query(SQL.appends, turnId);
    const commands = database.query(SQL.commands, turnId);
    return {
      turnId,
      sessionId,
      chatId,
      requestId,
      messageId,
      ...(typeof userId === 'string' && { userId }),
      startedAt,
      origin: origin ?? undefined,
      mark: Number(mark),
      chunks: appends.flatMap(({ chunks }) => decodeBatch(String(chunks))),
      commands: commands.map(({ command }) => JSON.parse(String(command))),
      ...(ended !== null && JSON.parse(String(ended))),
    };
  }

  function flush(): void {
    const statements = waiting;
    waiting = [];
    if (statements.length === 0) return;
    database.transaction(() => {
      for (const statement of statements) database.query(...statement);
    });
  }

  function forget(turnId: string): void {
    for (const sql of [SQL.forget, SQL.forgetAppends, SQL.forgetCommands]) {
      waiting.push([sql, turnId]);
    }
  }

  const toEnd = (outcome: TurnOutcome, endedAt: number) => JSON.stringify({ outcome, endedAt });

  return {
    load() {
      const turns: JournaledTurn[] = [];
      for (const row of database.query(SQL.turns)) {
        try {
          turns.push(toTurn(row));
        } catch {
          // One damaged turn must not keep the others from starting.
          forget(String(row.turn_id));
        }
      }
      return turns;
    },
    begin({ turnId, sessionId, chatId, requestId, messageId, userId, startedAt, origin }) {
      const names: Info[0] = [sessionId, chatId, requestId, messageId];
      const info: Info = [names, origin ?? null, startedAt, userId ?? null];
      waiting.push([SQL.begin, turnId, JSON.stringify(info)]);
    },
    append(turnId, lastSeq, chunks, mark) {
      waiting.push([SQL.append, turnId, lastSeq, encodeBatch(chunks).stored]);
      if (mark !== undefined) waiting.push([SQL.mark, mark, turnId]);
    },
    command: (turnId, command) => void waiting.push([SQL.command, turnId, JSON.stringify(command)]),
    end: (turnId, outcome, endedAt) =>
      void waiting.push([SQL.end, toEnd(outcome, endedAt), turnId]),
    endWith(turnId, outcome, endedAt, store) {
      // What other turns wait to write is theirs: if this fails, it must not fail with it.
      database.transaction(() => {
        database.query(SQL.end, toEnd(outcome, endedAt), turnId);
        store();
      });
    },
    forget,
    flush,
    close: () => database.close(),
  };
}

type Info = [
  names: [string, string, string, string],
  origin: unknown,
  startedAt: number,
  userId?: string | null,
];
