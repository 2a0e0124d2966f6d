/** Turns in SQLite: durable on one machine, without Redis. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { createLocalTurnLog, type LocalTurnLogOptions } from '../../turns/local-log.ts';
import type { TurnLog } from '../../turns/log.ts';
import { createSqliteJournal, type SqlDatabase } from '../../turns/sqlite-journal.ts';
import { openTurnDatabase, type SqliteOptions } from './sqlite-database.ts';

export type { SqlDatabase, SqlValue } from '../../turns/sqlite-journal.ts';

export type SqliteTurnLogOptions = LocalTurnLogOptions &
  Omit<SqliteOptions, 'file'> & {
    /**
     * A file, made if it is not there, which one process at a time can open; `:memory:` keeps nothing. Or any
     * synchronous SQLite behind three methods.
     */
    database: string | SqlDatabase;
  };

/**
 * Turns in SQLite. What was acknowledged is there after a crash: when the next process opens the file, every turn that
 * had not ended is offered to its gateway, which continues the turn where the agent can attach to it, and ends it with
 * an error for its viewers where it cannot.
 *
 * @example
 * createChatGateway({ log: sqliteTurnLog({ database: 'turns.db' }), … });
 */
export function sqliteTurnLog(options: SqliteTurnLogOptions): TurnLog {
  const { database, durability, lockTimeoutMs, ...limits } = options;
  const opening = {
    ...(durability && { durability }),
    ...(lockTimeoutMs !== undefined && { lockTimeoutMs }),
  };
  const sql =
    typeof database === 'string'
      ? toSqlDatabase(openTurnDatabase({ file: database, ...opening }))
      : database;
  return createLocalTurnLog(limits, createSqliteJournal(sql));
}

/** SQLite ends a transaction by itself after some errors. */
function rollBack(database: DatabaseSync): void {
  try {
    database.exec('ROLLBACK');
  } catch {
    // There is nothing left to roll back.
  }
}

function toSqlDatabase(database: DatabaseSync): SqlDatabase {
  const statements = new Map<string, StatementSync>();
  return {
    query(sql, ...values) {
      let statement = statements.get(sql);
      if (!statement) {
        statement = database.prepare(sql);
        statements.set(sql, statement);
      }
      return statement.all(...values) as Record<string, unknown>[];
    },
    transaction(run) {
      database.exec('BEGIN');
      try {
        run();
        database.exec('COMMIT');
      } catch (error) {
        rollBack(database);
        throw error;
      }
    },
    close: () => database.close(),
  };
}
