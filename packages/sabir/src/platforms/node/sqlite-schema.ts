/**
 * The tables of a session server's file. All sessions are in one file; a row knows its session.
 *
 * Columns of text that comes from outside are of type ANY: a string with half a surrogate pair is
 * kept as a blob, since SQLite's text cannot hold it (`toColumn`). A turn's prompt has a table of
 * its own, because SQLite writes a row anew when any of it changes, and a prompt can be large.
 */

/** One step for each version: what is out there is never changed, only added to. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE sessions (
    id ANY NOT NULL PRIMARY KEY,
    updated_at REAL NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_time ON sessions (updated_at);

  CREATE TABLE messages (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id ANY NOT NULL,
    channel_type ANY,
    channel_id ANY,
    message TEXT NOT NULL,
    UNIQUE (session, id)
  ) STRICT;
  CREATE INDEX messages_of_session ON messages (session);
  CREATE INDEX messages_of_channel ON messages (session, channel_type, channel_id);

  CREATE TABLE turns (
    turn INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    turn_id ANY NOT NULL,
    prompt_id ANY NOT NULL,
    status TEXT NOT NULL,
    started_at REAL,
    ended_at REAL,
    reason TEXT,
    error ANY,
    UNIQUE (session, turn_id),
    UNIQUE (session, prompt_id)
  ) STRICT;
  CREATE INDEX turns_open ON turns (session) WHERE status <> 'ended';
  CREATE INDEX turns_ended ON turns (session, ended_at) WHERE status = 'ended';

  CREATE TABLE prompts (
    turn INTEGER PRIMARY KEY REFERENCES turns ON DELETE CASCADE,
    prompt TEXT NOT NULL
  ) STRICT;

  CREATE TABLE events (
    turn INTEGER NOT NULL REFERENCES turns ON DELETE CASCADE,
    last_seq INTEGER NOT NULL,
    events ANY NOT NULL,
    PRIMARY KEY (turn, last_seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER events_in_order BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE turn = NEW.turn AND last_seq >= NEW.last_seq)
    BEGIN SELECT RAISE(ABORT, 'The events of a turn were appended out of order.'); END;

  CREATE TABLE questions (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id ANY NOT NULL,
    turn_id ANY NOT NULL,
    status TEXT NOT NULL,
    question TEXT NOT NULL,
    UNIQUE (session, id)
  ) STRICT;
  CREATE INDEX questions_of_turn ON questions (session, turn_id);
  CREATE INDEX questions_open ON questions (session) WHERE status = 'open';

  CREATE TABLE participants (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id ANY NOT NULL,
    participant TEXT NOT NULL,
    UNIQUE (session, id)
  ) STRICT;
  CREATE INDEX participants_of_session ON participants (session);

  CREATE TABLE named_values (
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    name ANY NOT NULL,
    value ANY NOT NULL,
    PRIMARY KEY (session, name)
  ) STRICT, WITHOUT ROWID;
  `,
  // Sizes, so that nothing has to be loaded to find out that it is too large; and a turn without its
  // prompt's text and files, for the same reason.
  `
  ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE sessions SET bytes =
    (SELECT coalesce(sum(octet_length(message)), 0) FROM messages WHERE session = sessions.id) +
    (SELECT coalesce(sum(octet_length(prompt)), 0) FROM turns JOIN prompts USING (turn)
      WHERE session = sessions.id) +
    (SELECT coalesce(sum(octet_length(question)), 0) FROM questions
      WHERE session = sessions.id);
  CREATE TRIGGER messages_counted AFTER INSERT ON messages BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.message) WHERE id = NEW.session; END;
  CREATE TRIGGER prompts_counted AFTER INSERT ON prompts BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.prompt)
    WHERE id = (SELECT session FROM turns WHERE turn = NEW.turn); END;
  CREATE TRIGGER questions_counted AFTER INSERT ON questions BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.question) WHERE id = NEW.session; END;
  CREATE TRIGGER questions_recounted AFTER UPDATE OF question ON questions BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.question) - octet_length(OLD.question)
    WHERE id = NEW.session; END;

  ALTER TABLE turns ADD COLUMN event_bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE turns SET event_bytes =
    (SELECT coalesce(sum(max(octet_length(events), 1)), 0) FROM events WHERE turn = turns.turn);
  CREATE TRIGGER events_counted AFTER INSERT ON events BEGIN
    UPDATE turns SET event_bytes = event_bytes + max(octet_length(NEW.events), 1)
    WHERE turn = NEW.turn; END;
  CREATE INDEX turns_with_events ON turns (session) WHERE status = 'ended' AND event_bytes > 0;

  ALTER TABLE turns ADD COLUMN info TEXT NOT NULL DEFAULT '{}';
  UPDATE turns SET info = (
    SELECT json_remove(prompt, '$.content', '$.attachments') FROM prompts WHERE turn = turns.turn);
  `,
];

const STATE = 'status, started_at, ended_at, reason, error';
const TURN = `SELECT prompt AS json, ${STATE} FROM turns JOIN prompts USING (turn)`;
const TURN_INFO = `SELECT info AS json, ${STATE} FROM turns`;

/** All that is ever asked of the file once it is open. */
export const SQL = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  rollback: 'ROLLBACK',
  mark: 'SAVEPOINT nested',
  rollbackToMark: 'ROLLBACK TO nested',
  releaseMark: 'RELEASE nested',

  listSessions: 'SELECT id, updated_at FROM sessions ORDER BY updated_at DESC LIMIT ?',
  unfinishedSessions: `SELECT DISTINCT session FROM turns WHERE status <> 'ended'`,
  databaseBytes:
    'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()',
  deleteSession: 'DELETE FROM sessions WHERE id = ?',
  holdSession: 'INSERT INTO sessions (id, updated_at) VALUES (?, ?) ON CONFLICT DO NOTHING',
  touchSession: `INSERT INTO sessions (id, updated_at) VALUES (?, ?)
    ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at`,

  hasMessage: 'SELECT 1 FROM messages WHERE session = ? AND id = ?',
  addMessage: `INSERT INTO messages (session, id, channel_type, channel_id, message)
    VALUES (?, ?, ?, ?, ?)`,
  messagePosition: 'SELECT position FROM messages WHERE session = ? AND id = ?',
  messageSizes: `SELECT position, octet_length(message) AS bytes FROM messages
    WHERE session = ? AND position < ? ORDER BY position DESC LIMIT ?`,
  messageSizesOfChannel: `SELECT position, octet_length(message) AS bytes FROM messages
    WHERE session = ? AND channel_type = ? AND channel_id = ? AND position < ?
    ORDER BY position DESC LIMIT ?`,
  message: 'SELECT message FROM messages WHERE position = ?',
  channels: `SELECT channel_type, channel_id FROM messages
    WHERE session = ? AND channel_type IS NOT NULL
    GROUP BY channel_type, channel_id ORDER BY min(position)`,

  hasTurn: 'SELECT 1 FROM turns WHERE session = ? AND turn_id = ?',
  hasPrompt: 'SELECT 1 FROM turns WHERE session = ? AND prompt_id = ?',
  addTurn: `INSERT INTO turns
    (session, turn_id, prompt_id, info, status, started_at, ended_at, reason, error)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING turn`,
  addPrompt: 'INSERT INTO prompts (turn, prompt) VALUES (?, ?)',
  turn: `${TURN} WHERE session = ? AND turn_id = ?`,
  turnInfo: `${TURN_INFO} WHERE session = ? AND turn_id = ?`,
  turnOfPrompt: `${TURN_INFO} WHERE session = ? AND prompt_id = ?`,
  openTurns: `${TURN_INFO} WHERE session = ? AND status <> 'ended' ORDER BY status = 'queued', turn`,
  updateTurn: `UPDATE turns SET status = coalesce(?, status),
    started_at = coalesce(?, started_at), ended_at = coalesce(?, ended_at),
    reason = coalesce(?, reason), error = coalesce(?, error)
    WHERE session = ? AND turn_id = ?`,

  appendEvents: `INSERT INTO events (turn, last_seq, events)
    SELECT turn, ?, ? FROM turns WHERE session = ? AND turn_id = ?`,
  events: `SELECT events, octet_length(events) AS bytes FROM events
    WHERE turn = (SELECT turn FROM turns WHERE session = ? AND turn_id = ?) AND last_seq > ?
    ORDER BY last_seq`,
  latestEnded: `SELECT turn, event_bytes FROM turns
    WHERE session = ? AND status = 'ended' ORDER BY ended_at DESC, turn DESC LIMIT ?`,
  endedWithEvents: `SELECT turn FROM turns
    WHERE session = ? AND status = 'ended' AND event_bytes > 0`,
  deleteEvents: 'DELETE FROM events WHERE turn = ?',
  forgetEvents: 'UPDATE turns SET event_bytes = 0 WHERE turn = ?',

  saveQuestion: `INSERT INTO questions (session, id, turn_id, status, question)
    VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET
    turn_id = excluded.turn_id, status = excluded.status, question = excluded.question`,
  question: 'SELECT question FROM questions WHERE session = ? AND id = ?',
  openQuestions: `SELECT question FROM questions
    WHERE session = ? AND status = 'open' ORDER BY position`,
  questionsOf: `SELECT question FROM questions
    WHERE session = ? AND turn_id = ? ORDER BY position`,

  saveParticipant: `INSERT INTO participants (session, id, participant) VALUES (?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET participant = excluded.participant`,
  participant: 'SELECT participant FROM participants WHERE session = ? AND id = ?',
  participants: 'SELECT participant FROM participants WHERE session = ? ORDER BY position',

  sessionBytes: 'SELECT bytes FROM sessions WHERE id = ?',

  get: 'SELECT value FROM named_values WHERE session = ? AND name = ?',
  set: `INSERT INTO named_values (session, name, value) VALUES (?, ?, ?)
    ON CONFLICT (session, name) DO UPDATE SET value = excluded.value`,
} as const;
