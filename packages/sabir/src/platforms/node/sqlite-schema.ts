/**
 * The tables of a session server's file. All sessions are in one file; a row knows its session. The tables of turns are
 * in the same file, and are the turn log's own (`turns/sqlite-journal.ts`).
 *
 * Columns of text that comes from outside are of type ANY: a string with half a surrogate pair is
 * kept as a blob, since SQLite's text cannot hold it (`toColumn`). A prompt's text and files have a table of
 * their own, because SQLite writes a row anew when any of it changes, and they can be large.
 */

/** Files of versions 1 and 2 kept turns as V2 events, which this version does not read. */
export const SCHEMA_VERSION = 4;

/** The messages of a session. An id is unique among those that are not replaced. */
const MESSAGES = `
  CREATE TABLE messages (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id ANY NOT NULL,
    channel_type ANY NOT NULL,
    channel_id ANY NOT NULL,
    message TEXT NOT NULL,
    -- The prompt that replaces it.
    replaced_by ANY
  ) STRICT;
`;

const MESSAGE_INDEXES = `
  CREATE UNIQUE INDEX messages_by_id ON messages (session, id) WHERE replaced_by IS NULL;
  CREATE INDEX messages_of_session ON messages (session);
  CREATE INDEX messages_of_channel ON messages (session, channel_type, channel_id);
  CREATE INDEX messages_replaced ON messages (session, replaced_by) WHERE replaced_by IS NOT NULL;

  CREATE TRIGGER messages_counted AFTER INSERT ON messages BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.message) WHERE id = NEW.session; END;
`;

/**
 * By the version that a file has: what makes the next version of it. SQLite cannot drop a constraint (in version 3 an id
 * was unique among all messages of a session), so the table is made anew. Its indexes and its trigger go with the old one.
 */
export const MIGRATIONS: Readonly<Record<number, string>> = {
  3: `
    ALTER TABLE messages RENAME TO messages_3;
    ${MESSAGES}
    INSERT INTO messages SELECT position, session, id, channel_type, channel_id, message, NULL
      FROM messages_3;
    DROP TABLE messages_3;
    ${MESSAGE_INDEXES}`,
};

export const TABLES = `
  CREATE TABLE sessions (
    id ANY NOT NULL PRIMARY KEY,
    updated_at REAL NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_time ON sessions (updated_at);

  ${MESSAGES}
  ${MESSAGE_INDEXES}
  CREATE TABLE prompts (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    prompt_id ANY NOT NULL,
    turn_id ANY NOT NULL,
    message_id ANY NOT NULL,
    info TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at REAL,
    ended_at REAL,
    outcome TEXT,
    error ANY,
    runner_id ANY,
    UNIQUE (session, prompt_id),
    UNIQUE (session, turn_id),
    UNIQUE (session, message_id)
  ) STRICT;
  CREATE INDEX prompts_open ON prompts (session) WHERE status <> 'ended';

  CREATE TABLE prompt_contents (
    position INTEGER PRIMARY KEY REFERENCES prompts ON DELETE CASCADE,
    content TEXT NOT NULL
  ) STRICT;

  CREATE TABLE participants (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id ANY NOT NULL,
    participant TEXT NOT NULL,
    UNIQUE (session, id)
  ) STRICT;
  CREATE INDEX participants_of_session ON participants (session);

  -- As one object, info and content have a comma in place of a pair of braces.
  CREATE TRIGGER prompts_counted AFTER INSERT ON prompt_contents BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.content) - 1 +
      (SELECT octet_length(info) FROM prompts WHERE position = NEW.position)
    WHERE id = (SELECT session FROM prompts WHERE position = NEW.position); END;
`;

const STATE = 'status, started_at, ended_at, outcome, error, runner_id';

/** All that is ever asked of the file once it is open. */
export const SQL = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  rollback: 'ROLLBACK',
  mark: 'SAVEPOINT nested',
  rollbackToMark: 'ROLLBACK TO nested',
  releaseMark: 'RELEASE nested',

  listSessions: 'SELECT id, updated_at FROM sessions ORDER BY updated_at DESC LIMIT ?',
  unfinishedSessions: `SELECT DISTINCT session FROM prompts WHERE status <> 'ended'`,
  databaseBytes:
    'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()',
  deleteSession: 'DELETE FROM sessions WHERE id = ?',
  holdSession: 'INSERT INTO sessions (id, updated_at) VALUES (?, ?) ON CONFLICT DO NOTHING',
  touchSession: `INSERT INTO sessions (id, updated_at) VALUES (?, ?)
    ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at`,

  addMessage: `INSERT INTO messages (session, id, channel_type, channel_id, message)
    VALUES (?, ?, ?, ?, ?)`,
  messageOfId: `SELECT position, channel_type, channel_id, message FROM messages
    WHERE session = ? AND id = ? AND replaced_by IS NULL`,
  messagePosition: `SELECT position FROM messages
    WHERE session = ? AND id = ? AND replaced_by IS NULL`,
  messageSizes: `SELECT position, octet_length(message) AS bytes FROM messages
    WHERE session = ? AND position < ? AND position >= ? AND replaced_by IS NULL
    ORDER BY position DESC LIMIT ?`,
  messageSizesOfChannel: `SELECT position, octet_length(message) AS bytes FROM messages
    WHERE session = ? AND channel_type = ? AND channel_id = ? AND position < ? AND position >= ?
    AND replaced_by IS NULL ORDER BY position DESC LIMIT ?`,
  message: 'SELECT message FROM messages WHERE position = ?',
  replaceMessages: `UPDATE messages SET replaced_by = ?
    WHERE session = ? AND channel_type = ? AND channel_id = ? AND position >= ?
    AND replaced_by IS NULL`,
  replacedMessages: `SELECT message FROM messages WHERE session = ? AND replaced_by = ?
    ORDER BY position`,
  replacedMessage: `SELECT 1 FROM messages
    WHERE session = ? AND id = ? AND channel_type = ? AND channel_id = ?
    AND replaced_by IS NOT NULL`,
  restoreMessages: `UPDATE messages SET replaced_by = NULL WHERE position IN (
      SELECT min(position) FROM messages AS kept WHERE session = ?1 AND replaced_by = ?2
      AND NOT EXISTS (SELECT 1 FROM messages AS used
        WHERE used.session = ?1 AND used.id = kept.id AND used.replaced_by IS NULL)
      GROUP BY id)`,
  channels: `SELECT channel_type, channel_id FROM messages WHERE session = ?
    GROUP BY channel_type, channel_id ORDER BY min(position)`,

  hasPrompt: `SELECT 1 FROM prompts WHERE session = ?1
    AND (prompt_id = ?2 OR turn_id = ?3 OR message_id = ?4)`,
  addPrompt: `INSERT INTO prompts
    (session, prompt_id, turn_id, message_id, info, ${STATE})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING position`,
  addContent: 'INSERT INTO prompt_contents (position, content) VALUES (?, ?)',
  prompt: `SELECT info, content, ${STATE} FROM prompts JOIN prompt_contents USING (position)
    WHERE session = ? AND prompt_id = ?`,
  promptId: `SELECT info, ${STATE} FROM prompts WHERE session = ? AND prompt_id = ?`,
  turnId: `SELECT info, ${STATE} FROM prompts WHERE session = ? AND turn_id = ?`,
  messageId: `SELECT info, ${STATE} FROM prompts WHERE session = ? AND message_id = ?`,
  openPrompts: `SELECT info, ${STATE} FROM prompts WHERE session = ? AND status <> 'ended'
    ORDER BY status = 'queued', position`,
  updatePrompt: `UPDATE prompts SET status = coalesce(?, status),
    started_at = coalesce(?, started_at), ended_at = coalesce(?, ended_at),
    outcome = coalesce(?, outcome), error = coalesce(?, error), runner_id = coalesce(?, runner_id)
    WHERE session = ? AND prompt_id = ?`,

  saveParticipant: `INSERT INTO participants (session, id, participant) VALUES (?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET participant = excluded.participant`,
  participant: 'SELECT participant FROM participants WHERE session = ? AND id = ?',
  participants: 'SELECT participant FROM participants WHERE session = ? ORDER BY position',

  sessionBytes: 'SELECT bytes FROM sessions WHERE id = ?',
} as const;
