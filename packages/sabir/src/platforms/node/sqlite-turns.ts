/** Turns in SQLite: durable on one machine, without Redis. */
import { createLocalTurnLog, type LocalTurnLogOptions } from '../../turns/local-log.ts';
import type { TurnLog } from '../../turns/log.ts';
import { createSqliteJournal, type SqlDatabase } from '../../turns/sqlite-journal.ts';
import { openTurnDatabase, type SqliteOptions, toSqlDatabase } from './sqlite-database.ts';

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
  const sql = typeof database === 'string' ? openFile({ file: database, ...opening }) : database;
  return createLocalTurnLog(limits, createSqliteJournal(sql));
}

function openFile(options: SqliteOptions): SqlDatabase {
  const database = openTurnDatabase(options);
  return toSqlDatabase(database, () => database.close());
}
