/** The tables of a file that was written before messages could be replaced. */
export const TABLES_3 = `
  CREATE TABLE sessions (
    id ANY NOT NULL PRIMARY KEY,
    updated_at REAL NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_time ON sessions (updated_at);

  CREATE TABLE messages (
    position INTEGER PRIMARY KEY,
    session ANY NOT NULL REFERENCES sessions ON DELETE CASCADE,
    id ANY NOT NULL,
    channel_type ANY NOT NULL,
    channel_id ANY NOT NULL,
    message TEXT NOT NULL,
    UNIQUE (session, id)
  ) STRICT;
  CREATE INDEX messages_of_session ON messages (session);
  CREATE INDEX messages_of_channel ON messages (session, channel_type, channel_id);

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

  CREATE TRIGGER messages_counted AFTER INSERT ON messages BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.message) WHERE id = NEW.session; END;
  -- As one object, info and content have a comma in place of a pair of braces.
  CREATE TRIGGER prompts_counted AFTER INSERT ON prompt_contents BEGIN
    UPDATE sessions SET bytes = bytes + octet_length(NEW.content) - 1 +
      (SELECT octet_length(info) FROM prompts WHERE position = NEW.position)
    WHERE id = (SELECT session FROM prompts WHERE position = NEW.position); END;
`;
