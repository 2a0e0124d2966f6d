import { accessSync, chmodSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite';
import type { SqlDatabase } from '../../turns/sqlite-journal.ts';
import { MIGRATIONS, SCHEMA_VERSION, SQL, TABLES } from './sqlite-schema.ts';

export type SqliteOptions = {
  /** Made if it is not there, and its folder too. `:memory:` keeps nothing. */
  file: string;
  /**
   * What an acknowledged write outlives. `process` (the default): this process, however it ends;
   * the last moments before a power cut may be lost, the file stays whole. `power`: also that, for
   * the price of waiting for the disk at each write.
   */
  durability?: 'process' | 'power';
  /** How long to wait for another process to let go of the file. Default 1,000. */
  lockTimeoutMs?: number;
};

/** What a file holds: its mark and version in the file's head, what makes its tables, and what brings older ones up to date. */
type Contents = {
  applicationId: number;
  version: number;
  tables: string;
  migrations: Readonly<Record<number, string>>;
};

const OWNER_ONLY = 0o600;
/** In the head of our files, so that no other program's are taken for them: "Sabr" and "Sabt". */
const SESSIONS: Contents = {
  applicationId: 0x53616272,
  version: SCHEMA_VERSION,
  tables: TABLES,
  migrations: MIGRATIONS,
};
const TURNS: Contents = { applicationId: 0x53616274, version: 0, tables: '', migrations: {} };

export function openSessionDatabase(options: SqliteOptions): DatabaseSync {
  return openDatabase(options, SESSIONS);
}

/** The journal of turns makes its tables itself. */
export function openTurnDatabase(options: SqliteOptions): DatabaseSync {
  return openDatabase(options, TURNS);
}

/**
 * Opens the file for this process alone, until it is closed or the process ends: whoever runs a
 * session holds its turns in memory too, so a second server on the same file would be wrong even
 * where SQLite could share it. The lock is the operating system's: it goes with the process.
 */
function openDatabase(options: SqliteOptions, contents: Contents): DatabaseSync {
  const { durability = 'process', lockTimeoutMs = 1_000 } = options;
  // An absolute path is never taken for a URI.
  const file = options.file === ':memory:' ? options.file : resolve(options.file);
  let database: DatabaseSync | undefined;
  try {
    if (file !== ':memory:') prepareFolder(file);
    database = new DatabaseSync(file, { timeout: lockTimeoutMs });
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    const found = checkContents(database, file, contents);
    database.exec('PRAGMA journal_mode = WAL');
    database.exec(`PRAGMA synchronous = ${durability === 'power' ? 'FULL' : 'NORMAL'}`);
    takeLock(database, found, contents);
    if (file !== ':memory:') tighten(file);
    return database;
  } catch (error) {
    if (database?.isOpen) database.close();
    throw explain(error, file);
  }
}

/** SQLite writes a log beside the file, and has poor words for it if it cannot. */
function prepareFolder(file: string): void {
  const folder = dirname(file);
  // What people said is nobody else's business.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  accessSync(folder, constants.W_OK);
  if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK);
  // SQLite gives its log the mode of the file.
  else writeFileSync(file, '', { flag: 'wx', mode: OWNER_ONLY });
}

/** Files of earlier versions could be read by everybody on the machine. */
function tighten(file: string): void {
  for (const path of [file, `${file}-wal`, `${file}-shm`]) {
    try {
      chmodSync(path, OWNER_ONLY);
    } catch {
      // It is not there, or another user's, who decides.
    }
  }
}

/** Looks before anything is written: a file of another program stays as it was. Gives the file's version; none if it is empty. */
function checkContents(
  database: DatabaseSync,
  file: string,
  { applicationId, version: known, migrations }: Contents,
): number | undefined {
  const read = (sql: string) => Number(Object.values(database.prepare(sql).get() ?? {})[0]);
  const version = read('PRAGMA user_version');
  const application = read('PRAGMA application_id');
  const isEmpty = read('SELECT count(*) FROM sqlite_schema') === 0 && version === 0;
  if (isEmpty && application === 0) return undefined;
  if (application !== applicationId) {
    throw failure('not-ours', `${file} is another database. Choose another file.`);
  }
  if (version > known) {
    throw failure(
      'newer-schema',
      `${file} was written by a newer version (schema ${version}; this one knows ${known}). ` +
        'Update, or choose another file.',
    );
  }
  const oldest = Math.min(known, ...Object.keys(migrations).map(Number));
  if (version < oldest) {
    throw failure(
      'older-schema',
      `${file} was written by an older version (schema ${version}; this one reads ${oldest} to ` +
        `${known}). Keep that file with the version that wrote it, and choose another file.`,
    );
  }
  return version;
}

/** The exclusive lock is taken with the first write, so that there is always one. */
function takeLock(
  database: DatabaseSync,
  found: number | undefined,
  { tables, applicationId, version, migrations }: Contents,
): void {
  database.exec('BEGIN EXCLUSIVE');
  if (found === undefined) {
    database.exec(tables);
    database.exec(`PRAGMA application_id = ${applicationId}`);
  }
  for (let from = found ?? version; from < version; from++) database.exec(migrations[from] ?? '');
  database.exec(`PRAGMA user_version = ${version}`);
  database.exec('COMMIT');
}

/** The primary result codes of SQLite that somebody can do something about. */
const SQLITE_FAILURES: Record<number, [code: string, text: string]> = {
  5: ['locked', 'is in use: another process has it open. Stop that one, or choose another file.'],
  8: ['not-writable', 'may not be written. Give this user the right to, or choose another file.'],
  10: ['disk-failed', 'could not be read or written: the disk or its system refused.'],
  11: ['corrupt', 'is damaged. Put it aside or restore it from a backup.'],
  13: ['disk-full', 'cannot grow: the disk is full.'],
  14: ['not-writable', 'cannot be opened. It must be a file, in a folder that may be written.'],
  26: ['not-a-database', 'is no SQLite database. Choose another file.'],
};

function explain(error: unknown, file: string): unknown {
  const { errcode, code, syscall, path } = error as NodeJS.ErrnoException & { errcode?: number };
  if (syscall === 'mkdir') {
    return failure('not-writable', `The folder of ${file} cannot be made (${code}).`, error);
  }
  if (syscall === 'access') {
    return failure('not-writable', `${path} may not be written (${code}).`, error);
  }
  // The low byte is the primary code.
  const known = errcode === undefined ? undefined : SQLITE_FAILURES[errcode & 0xff];
  return known ? failure(known[0], `${file} ${known[1]}`, error) : error;
}

function failure(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

/** Runs `run` in a transaction, or in a part of the one that runs. */
export function inTransaction<T>(database: DatabaseSync, run: () => T): T {
  const isOuter = !database.isTransaction;
  database.exec(isOuter ? SQL.begin : SQL.mark);
  try {
    const result = run();
    database.exec(isOuter ? SQL.commit : SQL.releaseMark);
    return result;
  } catch (error) {
    // Where the disk is full, SQLite may have undone all of it already.
    if (database.isOpen && database.isTransaction) undo(database, isOuter);
    throw error;
  }
}

function undo(database: DatabaseSync, isOuter: boolean): void {
  if (isOuter) database.exec(SQL.rollback);
  else {
    database.exec(SQL.rollbackToMark);
    database.exec(SQL.releaseMark);
  }
}

/** What a turn log needs of a database. */
export function toSqlDatabase(database: DatabaseSync, close: () => void): SqlDatabase {
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
    transaction: (run) => inTransaction(database, run),
    close,
  };
}

type Query = {
  /** How many rows it changed. */
  run(...values: QueryValue[]): number;
  first(...values: QueryValue[]): Row | undefined;
  all(...values: QueryValue[]): Row[];
  /** Row by row: what is not asked for is not loaded. */
  each(...values: QueryValue[]): Iterable<Row>;
};
type QueryValue = string | number | null | undefined;
type Row = Record<string, SQLOutputValue>;
export type Queries = Record<keyof typeof SQL, Query>;

/** Each is prepared once, for all sessions. */
export function prepareQueries(database: DatabaseSync): Queries {
  const entries = Object.entries(SQL).map(([name, sql]) => [name, prepareQuery(database, sql)]);
  return Object.fromEntries(entries);
}

function prepareQuery(database: DatabaseSync, sql: string): Query {
  const statement = database.prepare(sql);
  const assertOpen = () => {
    if (!database.isOpen) throw new Error('The session store is closed.');
  };
  return {
    run(...values) {
      assertOpen();
      return Number(statement.run(...values.map(toColumn)).changes);
    },
    first(...values) {
      assertOpen();
      return statement.get(...values.map(toColumn));
    },
    all(...values) {
      assertOpen();
      return statement.all(...values.map(toColumn));
    },
    each(...values) {
      assertOpen();
      return statement.iterate(...values.map(toColumn));
    },
  };
}

/**
 * SQLite's text is UTF-8, which has no half surrogate pairs: such a string is kept as a blob of its
 * code units. A blob never equals a text, so ids stay as different as they are.
 */
function toColumn(value: QueryValue): string | number | Buffer | null {
  if (typeof value === 'string' && !value.isWellFormed()) return Buffer.from(value, 'utf16le');
  return value ?? null;
}

/** What `toColumn` made of a string. */
export function toText(column: SQLOutputValue | undefined): string {
  return column instanceof Uint8Array ? Buffer.from(column).toString('utf16le') : String(column);
}
