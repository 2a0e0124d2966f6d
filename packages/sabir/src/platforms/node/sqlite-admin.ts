/** What an operator does with the file of a session server while no server has it open. */
import { rmSync, writeFileSync } from 'node:fs';
import { openSessionDatabase, toText } from './sqlite-database.ts';

export type SessionSummary = {
  sessionId: string;
  messages: number;
  /** Messages, prompts, questions and events. */
  bytes: number;
  /** Milliseconds since 1970. */
  updatedAt: number;
};

const TABLES = ['sessions', 'turns', 'messages', 'questions', 'participants'] as const;
/** How many rows of each kind were deleted, or would be. */
export type Deleted = Record<(typeof TABLES)[number], number>;

const SESSIONS = `SELECT id, updated_at,
  bytes + (SELECT coalesce(sum(event_bytes), 0) FROM turns WHERE session = sessions.id) AS bytes,
  (SELECT count(*) FROM messages WHERE session = sessions.id) AS messages
  FROM sessions ORDER BY updated_at DESC`;

/** Turns that this person asked for, as a condition on a row of `turns`. */
const ASKED = `json_extract(turns.info, '$.authorId') IS :user`;

/**
 * A session in which only this person has prompted is deleted as a whole. Of other
 * sessions go their prompts, the answers and questions of those turns, and the person as a participant.
 */
const DELETE_USER = [
  `DELETE FROM sessions WHERE id IN
    (SELECT session FROM turns GROUP BY session HAVING min(${ASKED}) = 1)`,
  `DELETE FROM sessions WHERE NOT EXISTS (SELECT 1 FROM turns WHERE session = sessions.id)
    AND EXISTS (SELECT 1 FROM participants WHERE session = sessions.id)
    AND NOT EXISTS (SELECT 1 FROM participants WHERE session = sessions.id AND id IS NOT :user)`,
  `DELETE FROM messages WHERE json_extract(message, '$.authorId') IS :user OR EXISTS
    (SELECT 1 FROM turns WHERE turns.session = messages.session AND ${ASKED}
      AND turns.prompt_id = json_extract(message, '$.promptId'))`,
  `DELETE FROM questions WHERE EXISTS
    (SELECT 1 FROM turns WHERE turns.session = questions.session AND ${ASKED}
      AND turns.turn_id = questions.turn_id)`,
  `DELETE FROM turns WHERE ${ASKED}`,
  `DELETE FROM participants WHERE id = :user`,
];

const RECOUNT = `UPDATE sessions SET bytes =
  (SELECT coalesce(sum(octet_length(message)), 0) FROM messages WHERE session = sessions.id) +
  (SELECT coalesce(sum(octet_length(prompt)), 0) FROM turns JOIN prompts USING (turn)
    WHERE session = sessions.id) +
  (SELECT coalesce(sum(octet_length(question)), 0) FROM questions WHERE session = sessions.id)`;

/**
 * Opens the file for this process alone; throws as `sqliteSessionStore` does, with code `locked` while a
 * server has it open. What is deleted is overwritten, and the file is made anew without it.
 */
export function openSessionAdmin(options: { file: string; lockTimeoutMs?: number }) {
  const database = openSessionDatabase(options);
  database.exec('PRAGMA secure_delete = ON');

  function count(): Deleted {
    const counts = TABLES.map((table) => {
      const row = database.prepare(`SELECT count(*) AS rows FROM ${table}`).get();
      return [table, Number(row?.rows)];
    });
    return Object.fromEntries(counts);
  }

  /** A dry run does all of it, and takes it back. */
  function change(isDryRun: boolean, run: () => void): Deleted {
    database.exec('BEGIN IMMEDIATE');
    let deleted: Deleted;
    try {
      const before = count();
      run();
      const after = count();
      for (const table of TABLES) before[table] -= after[table];
      deleted = before;
      database.exec(isDryRun ? 'ROLLBACK' : 'COMMIT');
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
    if (!isDryRun) database.exec('VACUUM');
    return deleted;
  }

  return {
    /** The one that changed last comes first. */
    sessions(): SessionSummary[] {
      const rows = database.prepare(SESSIONS).all();
      return rows.map(({ id, messages, bytes, updated_at }) => ({
        sessionId: toText(id),
        messages: Number(messages),
        bytes: Number(bytes),
        updatedAt: Number(updated_at),
      }));
    },
    /** Makes the file, readable by its owner alone; throws with `EEXIST` where there is one. */
    backup(file: string): void {
      writeFileSync(file, '', { flag: 'wx', mode: 0o600 });
      try {
        database.prepare('VACUUM INTO ?').run(file);
      } catch (error) {
        rmSync(file, { force: true });
        throw error;
      }
    },
    /** Deletes sessions that have not changed since then. */
    purge(before: number, isDryRun: boolean): Deleted {
      return change(isDryRun, () => {
        database.prepare('DELETE FROM sessions WHERE updated_at < ?').run(before);
      });
    },
    /** Deletes what one person said, and what was said to them. */
    deleteUser(user: string, isDryRun: boolean): Deleted {
      return change(isDryRun, () => {
        for (const sql of DELETE_USER) database.prepare(sql).run({ ':user': user });
        database.exec(RECOUNT);
      });
    },
    close: () => database.close(),
  };
}
