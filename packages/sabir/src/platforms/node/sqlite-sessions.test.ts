import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { describeSessionStore } from '../../../test/session-storage-conformance.ts';
import { idsOf, message, participant, prompt } from '../../../test/session-storage-helpers.ts';
import { TABLES_3 } from '../../../test/sqlite-schema-3.ts';
import { openSessionDatabase } from './sqlite-database.ts';
import { SCHEMA_VERSION, SQL, TABLES } from './sqlite-schema.ts';
import { type SqliteSessionStoreOptions, sqliteSessionStore } from './sqlite-sessions.ts';

const CHILD = fileURLToPath(new URL('../../../test/sqlite-sessions-child.ts', import.meta.url));

/** Linux tells which files a process has open. */
const HAS_PROC = existsSync('/proc/self/fd');

const folder = mkdtempSync(join(tmpdir(), 'sabir-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

function open(file: string, options: Partial<SqliteSessionStoreOptions> = {}) {
  const store = sqliteSessionStore({ file, lockTimeoutMs: 0, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** What is in the file when nobody has it open. */
function inspect<T>(file: string, read: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file);
  try {
    return read(database);
  } finally {
    database.close();
  }
}

describeSessionStore('SQLite in memory', (options) => ({
  store: sqliteSessionStore({ file: ':memory:', ...options }),
}));

describeSessionStore('SQLite in a file', (options) => ({
  store: sqliteSessionStore({ file: newFile(), ...options }),
}));

describeSessionStore('SQLite in a file that is reopened', (options) => {
  const file = newFile();
  let store = sqliteSessionStore({ file, ...options });
  const reopen = () => {
    store.close();
    store = sqliteSessionStore({ file, ...options });
    return store;
  };
  return { store, reopen };
});

describe('a process that is killed', () => {
  it('right after a write has returned, has written it [SES-13]', () => {
    const file = newFile();
    const rounds = ['1', '2', '3'];
    for (const round of rounds) {
      const { signal, stderr } = spawnSync(process.execPath, [CHILD, file, 'write each', round]);
      expect([signal, `${stderr}`]).toEqual(['SIGKILL', '']);
      // What is not in the file yet is in its log, which the next process has to find.
      expect(statSync(`${file}-wal`).size).toBeGreaterThan(0);
    }
    const session = open(file).open('s');
    expect(idsOf(session.messages())).toEqual(rounds.map((round) => `m${round}`));
    expect(session.openPrompts().map(({ promptId }) => session.prompt(promptId))).toEqual(
      rounds.map((round) => prompt(`p${round}`, { status: 'running', startedAt: 1 })),
    );
    expect(session.participants()).toEqual([participant('ada', { lastSeenAt: 3 })]);
  });

  it('in a transaction, has done nothing of it', () => {
    const file = newFile();
    spawnSync(process.execPath, [CHILD, file, 'write each', '1']);
    const { signal } = spawnSync(process.execPath, [CHILD, file, 'die in a transaction']);
    expect(signal).toBe('SIGKILL');
    const session = open(file).open('s');
    expect(idsOf(session.messages())).toEqual(['m1']);
    expect(session.participants()).toEqual([participant('ada', { lastSeenAt: 1 })]);
  });

  it('at any moment, has kept all that it said it had', async () => {
    const file = newFile();
    const child = spawn(process.execPath, [CHILD, file, 'write on and on']);
    let said = '';
    for await (const data of child.stdout) {
      said += data;
      if (said.length > 20_000) child.kill('SIGKILL');
    }
    const last = Number(said.split('\n').at(-2));
    expect(last).toBeGreaterThan(1_000);
    const ids = idsOf(open(file).open('s').messages());
    expect(ids).toEqual(ids.map((_, index) => `${index + 1}`));
    expect(ids.length).toBeGreaterThanOrEqual(last);
  });
});

describe('a file of schema 3', () => {
  it('is brought up to date with all that is in it, and only once', () => {
    const file = newFile();
    const kept = ['a', 'b', 'c'].map((id) => message(id));
    inspect(file, (database) => {
      database.exec(TABLES_3);
      database.exec(`PRAGMA application_id = ${0x53616272}; PRAGMA user_version = 3`);
      database.exec("INSERT INTO sessions (id, updated_at) VALUES ('s', 1)");
      const add = database.prepare(`INSERT INTO messages
        (session, id, channel_type, channel_id, message) VALUES ('s', ?, 'web', 'default', ?)`);
      for (const one of kept) add.run(one.id, JSON.stringify(one));
    });
    const bytesOf = () =>
      inspect(file, (database) => database.prepare('SELECT bytes FROM sessions').get()?.bytes);
    const before = bytesOf();
    for (let times = 0; times < 2; times++) {
      const store = open(file);
      expect(store.open('s').messages()).toEqual(kept);
      expect(store.open('s').addMessage(message('c'))).toBe(false);
      store.close();
      expect(bytesOf()).toBe(before);
    }
    const store = open(file);
    store.open('s').replaceMessages('b', 'p');
    expect(store.open('s').addMessage(message('b'))).toBe(true);
    expect(idsOf(store.open('s').messages())).toEqual(['a', 'b']);
    expect(store.open('s').bytes()).toBeGreaterThan(Number(before));
    store.close();
    const schema = (database: DatabaseSync) =>
      database
        .prepare(`SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'turn%'
        AND name NOT LIKE 'sqlite_%' ORDER BY name`)
        .all();
    const fresh = newFile();
    open(fresh).close();
    expect(inspect(file, schema)).toEqual(inspect(fresh, schema));
  });
});

describe('a second opener', () => {
  it('of another process is told that the file is in use, until the first is gone', async () => {
    const file = newFile();
    const child = spawn(process.execPath, [CHILD, file, 'hold']);
    await once(child.stdout, 'data');
    expect(() => open(file)).toThrow(`${file} is in use: another process has it open.`);
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'locked' }));
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(open(file).open('s').messages()).toEqual([]);
  });

  it('of the same process too, and the first one goes on', () => {
    const file = newFile();
    const first = open(file);
    first.open('s').addMessage(message('a'));
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'locked' }));
    first.open('s').addMessage(message('b'));
    first.close();
    expect(idsOf(open(file).open('s').messages())).toEqual(['a', 'b']);
  });
});

describe('a file that cannot be used', () => {
  it.each([1, 2])('was written by an older version, schema %i, and stays as it is', (version) => {
    const file = newFile();
    inspect(file, (database) => {
      database.exec(`PRAGMA application_id = ${0x53616272}; PRAGMA user_version = ${version};
        CREATE TABLE turns (a)`);
    });
    chmodSync(file, 0o644);
    const before = readFileSync(file);
    expect(() => open(file)).toThrow(
      `${file} was written by an older version (schema ${version}; this one reads 3 to ` +
        `${SCHEMA_VERSION}). Keep that file with the version that wrote it, and choose another file.`,
    );
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'older-schema' }));
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(statSync(file).mode & 0o777).toBe(0o644);
    expect(existsSync(`${file}-wal`)).toBe(false);
  });

  it('was written by a newer version, and stays as it is', () => {
    const file = newFile();
    open(file).close();
    const newer = SCHEMA_VERSION + 1;
    inspect(file, (database) => database.exec(`PRAGMA user_version = ${newer}`));
    const before = readFileSync(file);
    expect(() => open(file)).toThrow(`written by a newer version (schema ${newer}; this one knows`);
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'newer-schema' }));
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it.each(['hello', 'hello '.repeat(2_000)])('is no database', (text) => {
    const file = newFile();
    writeFileSync(file, text);
    expect(() => open(file)).toThrow(`${file} is no SQLite database.`);
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'not-a-database' }));
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  it.each([
    ['belongs to another program', 'CREATE TABLE theirs (a)'],
    ['has the mark of another program', 'PRAGMA application_id = 1'],
    ['has only a version of another program', 'PRAGMA user_version = 3'],
    ['is a file of turns', `PRAGMA application_id = ${0x53616274}; CREATE TABLE turn (a)`],
  ])('%s, and stays as it is', (_, sql) => {
    const file = newFile();
    inspect(file, (database) => database.exec(sql));
    const before = readFileSync(file);
    expect(() => open(file)).toThrow(`${file} is another database.`);
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'not-ours' }));
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it('is damaged', () => {
    const file = newFile();
    open(file).close();
    const bytes = readFileSync(file);
    // Its head is whole; the page that lists its tables is not.
    writeFileSync(file, bytes.fill(0xff, 100, 4_096));
    expect(() => open(file)).toThrow(`${file} is damaged.`);
    expect(() => open(file)).toThrow(expect.objectContaining({ code: 'corrupt' }));
  });

  it('is a folder', () => {
    const file = newFile();
    mkdirSync(file);
    expect(() => open(file)).toThrow(`${file} cannot be opened.`);
  });

  it('is in a folder that cannot be made', () => {
    const file = newFile();
    writeFileSync(file, '');
    expect(() => open(join(file, 'sessions.db'))).toThrow(/The folder of .* cannot be made/);
  });

  it('may not be written, or its folder may not', () => {
    const locked = newFile();
    const there = join(locked, 'there.db');
    open(there).close();
    chmodSync(there, 0o444);
    const tryOpen = (file: string) =>
      `${spawnSync(process.execPath, [CHILD, file, 'open without rights']).stderr}`;
    for (const path of [folder, locked]) chmodSync(path, 0o777);
    expect(tryOpen(there)).toContain(`${there} may not be written (EACCES).`);
    chmodSync(locked, 0o555);
    const unmade = join(locked, 'new.db');
    expect(tryOpen(unmade)).toContain(`${locked} may not be written (EACCES).`);
    const deeper = join(locked, 'deeper', 'new.db');
    expect(tryOpen(deeper)).toContain(`The folder of ${deeper} cannot be made (EACCES).`);
    chmodSync(locked, 0o777);
  });
});

describe('the file', () => {
  it('is made with its folder, which is for this user only', () => {
    const file = join(folder, 'new', 'deep', 'sessions.db');
    open(file).close();
    expect(existsSync(file)).toBe(true);
    expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700);
  });

  it('has the mark and the schema of this version, and opens again', () => {
    const file = newFile();
    const store = open(file);
    expect(store.open('s').addPrompt(prompt('p'))).toBe(true);
    store.close();
    const read = (name: string) =>
      inspect(file, (database) => Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
    expect([read('application_id'), read('user_version')]).toEqual([0x53616272, SCHEMA_VERSION]);
    expect(open(file).open('s').prompt('p')).toEqual(prompt('p'));
  });

  it('is made anew where an empty one is', () => {
    const file = newFile();
    writeFileSync(file, '');
    expect(open(file).open('s').addMessage(message('a'))).toBe(true);
  });

  it.each([
    [undefined, 1],
    ['process' as const, 1],
    ['power' as const, 2],
  ])('with durability %s is synced as much as that takes', (durability, synchronous) => {
    const database = openSessionDatabase({ file: newFile(), ...(durability && { durability }) });
    onTestFinished(() => database.close());
    expect(database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous });
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
  });

  it.skipIf(!HAS_PROC)('is all there is after closing, and nobody holds it', () => {
    const file = newFile();
    const holding = () =>
      readdirSync('/proc/self/fd').filter((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`).startsWith(file);
        } catch {
          // It was the one for reading the folder.
          return false;
        }
      });
    const store = open(file);
    store.open('s').addMessage(message('a'));
    expect(holding().length).toBeGreaterThan(0);
    store.close();
    expect(holding()).toEqual([]);
    expect(readdirSync(folder).filter((name) => join(folder, name).startsWith(file))).toEqual([
      file.slice(folder.length + 1),
    ]);
    const count = (database: DatabaseSync) =>
      database.prepare('SELECT count(*) AS count FROM messages').get();
    expect(inspect(file, count)).toEqual({ count: 1 });
  });

  it.skipIf(!HAS_PROC)('is let go of when it cannot be used', () => {
    const file = newFile();
    writeFileSync(file, 'no database');
    const count = () => readdirSync('/proc/self/fd').length;
    const before = count();
    for (let round = 0; round < 5; round++) expect(() => open(file)).toThrow();
    expect(count()).toBe(before);
  });

  it('costs no warning', () => {
    const { status, stderr } = spawnSync(process.execPath, [CHILD, newFile(), 'close']);
    expect([status, `${stderr}`]).toEqual([0, '']);
  });
});

describe('the file and its log', () => {
  const modesOf = (file: string) =>
    [file, `${file}-wal`].map((path) => statSync(path).mode & 0o777);

  it('can be read by the user of the server alone, from the first moment', () => {
    const before = process.umask(0);
    onTestFinished(() => void process.umask(before));
    const file = newFile();
    open(file).open('s').addMessage(message('a'));
    expect(modesOf(file)).toEqual([0o600, 0o600]);
  });

  it('are closed to others when they were made by an earlier version', () => {
    const file = newFile();
    const store = open(file);
    store.open('s').addMessage(message('a'));
    store.close();
    chmodSync(file, 0o644);
    open(file).open('s').addMessage(message('b'));
    expect(modesOf(file)).toEqual([0o600, 0o600]);
  });

  it('of another program are left as they are', () => {
    const file = newFile();
    const other = new DatabaseSync(file);
    other.exec('CREATE TABLE notes (text)');
    other.close();
    chmodSync(file, 0o644);
    expect(() => sqliteSessionStore({ file })).toThrow('another database');
    expect(statSync(file).mode & 0o777).toBe(0o644);
  });
});

describe('what is asked of the file', () => {
  const database = new DatabaseSync(':memory:');
  database.exec(TABLES);
  const planned = Object.entries(SQL).filter(([, sql]) => /SELECT|UPDATE|DELETE/.test(sql));

  it.each(planned)('%s goes through an index', (name, sql) => {
    const steps = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    const details = steps.map(({ detail }) => `${detail}`);
    // Whatever is of one session is searched for; these two are of all, in the order of an index.
    const expected: Record<string, string> = {
      listSessions: 'SCAN sessions USING COVERING INDEX sessions_by_time',
      unfinishedSessions: 'SCAN prompts USING INDEX prompts_open',
    };
    const scans = details.filter((detail) => /^SCAN (?!CONSTANT|LIST|pragma_)/.test(detail));
    expect(scans).toEqual(name in expected ? [expected[name]] : []);
    // Sorting is for the few: the prompts that are open, and the channels.
    const sorts = details.some((detail) => detail.includes('TEMP B-TREE FOR ORDER BY'));
    expect(sorts).toBe(name === 'openPrompts' || name === 'channels');
  });

  it('deletes a session through indexes too', () => {
    const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
    const searched = tables.flatMap(({ name }) => {
      const keys = database.prepare(`PRAGMA foreign_key_list(${name})`).all();
      return keys.map(({ from }) => {
        const sql = `EXPLAIN QUERY PLAN SELECT 1 FROM ${name} WHERE ${from} = ?`;
        return `${database.prepare(sql).get()?.detail}`;
      });
    });
    expect(searched).toHaveLength(tables.length - 1);
    for (const detail of searched) expect(detail).toMatch(/^SEARCH .* USING /);
  });
});
