/** What an operator does with the file of a session server while no server has it open. */
import { rmSync, writeFileSync } from 'node:fs';
import { TURN_TABLES } from '../../turns/sqlite-journal.ts';
import { openSessionDatabase, toText } from './sqlite-database.ts';

export type SessionSummary = {
  sessionId: string;
  messages: number;
  /** Messages, prompts, and what the turn log has of its turns. */
  bytes: number;
  /** Milliseconds since 1970. */
  updatedAt: number;
};

const TABLES = ['sessions', 'prompts', 'messages', 'participants'] as const;
/** How many rows of each kind were deleted, or would be. */
export type Deleted = Record<(typeof TABLES)[number], number>;

const SESSIONS = `SELECT id, updated_at,
  bytes + (SELECT coalesce(sum(octet_length(chunks)), 0) FROM prompts JOIN turn_append USING (turn_id)
    WHERE session = sessions.id) AS bytes,
  (SELECT count(*) FROM messages WHERE session = sessions.id) AS messages
  FROM sessions ORDER BY updated_at DESC`;

/** That this person asked, or wrote the message that was asked again, as a condition on a row of `prompts`. */
const ASKED = `(json_extract(prompts.info, '$.authorId') IS :user
  OR json_extract(prompts.info, '$.writtenBy.id') IS :user)`;

/**
 * A session in which only this person has prompted is deleted as a whole. Of other
 * sessions go their prompts with the answers, and the person as a participant.
 */
const DELETE_USER = [
  `DELETE FROM sessions WHERE id IN
    (SELECT session FROM prompts GROUP BY session HAVING min(${ASKED}) = 1)`,
  `DELETE FROM sessions WHERE NOT EXISTS (SELECT 1 FROM prompts WHERE session = sessions.id)
    AND EXISTS (SELECT 1 FROM participants WHERE session = sessions.id)
    AND NOT EXISTS (SELECT 1 FROM participants WHERE session = sessions.id AND id IS NOT :user)`,
  `DELETE FROM messages WHERE json_extract(message, '$.authorId') IS :user OR EXISTS
    (SELECT 1 FROM prompts WHERE prompts.session = messages.session AND ${ASKED}
      AND messages.id IN (prompt_id, message_id))`,
  `DELETE FROM prompts WHERE ${ASKED}`,
  `DELETE FROM participants WHERE id = :user`,
  // A gateway without sessions may keep its turns in the same file.
  `DELETE FROM turn WHERE json_extract(info, '$[1].user.id') IS :user`,
  `DELETE FROM turn_command WHERE json_extract(command, '$.by.userId') IS :user`,
];

/** The turns of sessions whose prompt is gone, with everything of theirs. */
const DELETE_TURNS = [
  `DELETE FROM turn WHERE json_extract(info, '$[1].session') IS NOT NULL
    AND turn_id NOT IN (SELECT turn_id FROM prompts)`,
  'DELETE FROM turn_append WHERE turn_id NOT IN (SELECT turn_id FROM turn)',
  'DELETE FROM turn_command WHERE turn_id NOT IN (SELECT turn_id FROM turn)',
];

/** A prompt counts as one object: see the trigger `prompts_counted`. */
const RECOUNT = `UPDATE sessions SET bytes =
  (SELECT coalesce(sum(octet_length(message)), 0) FROM messages WHERE session = sessions.id) +
  (SELECT coalesce(sum(octet_length(info) + octet_length(content) - 1), 0)
    FROM prompts JOIN prompt_contents USING (position) WHERE session = sessions.id)`;

/**
 * Opens the file for this process alone; throws as `sqliteSessionStore` does, with code `locked` while a
 * server has it open. What is deleted is overwritten, and the file is made anew without it.
 */
export function openSessionAdmin(options: { file: string; lockTimeoutMs?: number }) {
  const database = openSessionDatabase(options);
  database.exec('PRAGMA secure_delete = ON');
  for (const sql of TURN_TABLES) database.exec(sql);

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
      for (const sql of DELETE_TURNS) database.exec(sql);
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
