import type { Channel } from '../core/translator.ts';
import type {
  Participant,
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredQuestion,
  StoredTurn,
  TurnChanges,
  TurnInfo,
} from './storage.ts';

export type MemorySessionStoreOptions = {
  /** Milliseconds since 1970. */
  now?: () => number;
};

/** Kept as JSON, so that nobody can change it from outside. Maps remember the order of adding. */
type Session = {
  updatedAt: number;
  messages: Map<string, { json: string; bytes: number; channel: Channel | undefined }>;
  turns: Map<string, { asked: string; changes: TurnChanges; events: EventEntry[] }>;
  turnOfPrompt: Map<string, string>;
  questions: Map<string, string>;
  participants: Map<string, string>;
  values: Map<string, string>;
};

type EventEntry = { lastSeq: number; events: string };

type Sessions = {
  find(sessionId: string): Session | undefined;
  /** The session, made if it is not there. */
  hold(sessionId: string): Session;
  touch(session: Session): void;
  /** How to take back what is done next, for as long as it may have to be. */
  undoable(undo: () => void): void;
  transaction<T>(run: () => T): T;
};

/** Sessions in the memory of this process, for tests and for trying things out. */
export function memorySessionStore(options: MemorySessionStoreOptions = {}): SessionStore {
  const { now = Date.now } = options;
  const kept = new Map<string, Session>();
  /** Only while a transaction runs. */
  let undos: (() => void)[] | undefined;
  let isClosed = false;

  function assertOpen(): void {
    if (isClosed) throw new Error('The session store is closed.');
  }

  const sessions: Sessions = {
    find(sessionId) {
      assertOpen();
      return kept.get(sessionId);
    },
    hold(sessionId) {
      const found = sessions.find(sessionId);
      if (found) return found;
      const session = createSession(now());
      kept.set(sessionId, session);
      sessions.undoable(() => kept.delete(sessionId));
      return session;
    },
    touch(session) {
      const before = session.updatedAt;
      session.updatedAt = now();
      sessions.undoable(() => {
        session.updatedAt = before;
      });
    },
    undoable(undo) {
      undos?.push(undo);
    },
    transaction(run) {
      assertOpen();
      const isOuter = !undos;
      undos ??= [];
      const before = undos.length;
      try {
        return run();
      } catch (error) {
        for (const undo of undos.splice(before).reverse()) undo();
        throw error;
      } finally {
        if (isOuter) undos = undefined;
      }
    },
  };

  return {
    open(sessionId) {
      assertOpen();
      return memorySessionStorage(sessions, sessionId);
    },
    list(limit = Number.POSITIVE_INFINITY) {
      assertOpen();
      return [...kept]
        .map(([sessionId, { updatedAt }]) => ({ sessionId, updatedAt }))
        .sort((one, other) => other.updatedAt - one.updatedAt)
        .slice(0, Math.max(0, limit));
    },
    unfinished() {
      assertOpen();
      return [...kept].filter(([, session]) => openTurnsOf(session).length > 0).map(([id]) => id);
    },
    storedBytes() {
      assertOpen();
      return [...kept.values()].reduce((sum, session) => sum + bytesOf(session), 0);
    },
    delete(sessionId) {
      const session = sessions.find(sessionId);
      if (!session) return;
      kept.delete(sessionId);
      sessions.undoable(() => kept.set(sessionId, session));
    },
    close() {
      isClosed = true;
      kept.clear();
    },
  };
}

function memorySessionStorage(sessions: Sessions, sessionId: string): SessionStorage {
  const find = () => sessions.find(sessionId);
  const hold = () => sessions.hold(sessionId);

  function put<Value>(map: Map<string, Value>, key: string, value: Value): void {
    const isNew = !map.has(key);
    const before = map.get(key) as Value;
    map.set(key, value);
    sessions.undoable(() => (isNew ? map.delete(key) : map.set(key, before)));
  }

  function questions(): StoredQuestion[] {
    return [...(find()?.questions.values() ?? [])].map((json) => JSON.parse(json));
  }

  return {
    transaction: sessions.transaction,

    addMessage(message) {
      const json = JSON.stringify(message);
      if (find()?.messages.has(message.id)) return false;
      const session = hold();
      const bytes = byteLengthOf(json);
      put(session.messages, message.id, { json, bytes, channel: channelOf(message) });
      sessions.touch(session);
      return true;
    },
    messages({ channel, before, limit = Infinity, maxBytes = Infinity } = {}) {
      const chosen: StoredMessage[] = [];
      let bytes = 0;
      let isBefore = before === undefined;
      for (const [id, message] of [...(find()?.messages ?? [])].reverse()) {
        const isChosen = isBefore && (!channel || isSame(message.channel, channel));
        isBefore ||= id === before;
        if (!isChosen) continue;
        bytes += message.bytes;
        if (chosen.length >= limit || bytes > maxBytes) break;
        chosen.push(JSON.parse(message.json));
      }
      return chosen.reverse();
    },
    channels() {
      const seen: Channel[] = [];
      for (const { channel } of find()?.messages.values() ?? []) {
        if (channel && !seen.some((one) => isSame(one, channel))) seen.push({ ...channel });
      }
      return seen;
    },

    addTurn(turn) {
      const asked = JSON.stringify(turn);
      const { turnId, promptId } = turn;
      const found = find();
      if (found?.turns.has(turnId) || found?.turnOfPrompt.has(promptId)) return false;
      const session = hold();
      put(session.turns, turnId, { asked, changes: {}, events: [] });
      put(session.turnOfPrompt, promptId, turnId);
      sessions.touch(session);
      return true;
    },
    turn(turnId) {
      const session = find();
      return session && turnOf(session, turnId);
    },
    turnInfo(turnId) {
      const session = find();
      return session && infoOf(session, turnId);
    },
    turnOfPrompt(promptId) {
      const session = find();
      const turnId = session?.turnOfPrompt.get(promptId);
      return session && turnId !== undefined ? infoOf(session, turnId) : undefined;
    },
    updateTurn(turnId, changes) {
      const session = find();
      const turn = session?.turns.get(turnId);
      if (!session || !turn) return;
      put(session.turns, turnId, { ...turn, changes: { ...turn.changes, ...definedOf(changes) } });
      sessions.touch(session);
    },
    openTurns() {
      const session = find();
      return session ? openTurnsOf(session) : [];
    },

    appendEvents(turnId, lastSeq, events) {
      const entries = find()?.turns.get(turnId)?.events;
      if (!entries) return;
      if ((entries.at(-1)?.lastSeq ?? 0) >= lastSeq) {
        throw new Error('The events of a turn were appended out of order.');
      }
      entries.push({ lastSeq, events });
      sessions.undoable(() => entries.pop());
    },
    events(turnId, after, maxBytes = Infinity) {
      const entries = find()?.turns.get(turnId)?.events ?? [];
      const wanted = entries.filter(({ lastSeq }) => lastSeq > after);
      const texts = wanted.map(({ events }) => events);
      return firstWithin(texts, maxBytes, byteLengthOf, 1);
    },
    trimEvents(keep, maxBytes = Infinity) {
      const session = find();
      if (!session) return;
      const ended = allTurnsOf(session).filter(({ status }) => status === 'ended');
      const byEnd = ended.reverse().sort((one, other) => endOf(other) - endOf(one));
      const latest = byEnd.slice(0, Math.max(0, keep));
      const kept = firstWithin(latest, maxBytes, ({ turnId }) => eventBytesOf(session, turnId), 0);
      for (const { turnId } of byEnd.slice(kept.length)) {
        const turn = session.turns.get(turnId);
        if (turn) put(session.turns, turnId, { ...turn, events: [] });
      }
    },

    saveQuestion(question) {
      const json = JSON.stringify(question);
      put(hold().questions, question.questionId, json);
    },
    question(questionId) {
      return parseKept<StoredQuestion>(find()?.questions.get(questionId));
    },
    openQuestions: () => questions().filter(({ status }) => status === 'open'),
    questionsOf: (turnId) => questions().filter((question) => question.turnId === turnId),

    saveParticipant(participant) {
      const json = JSON.stringify(participant);
      put(hold().participants, participant.id, json);
    },
    participant(id) {
      return parseKept<Participant>(find()?.participants.get(id));
    },
    participants() {
      const participants = [...(find()?.participants.values() ?? [])];
      return participants.map((json): Participant => JSON.parse(json));
    },

    get: (key) => find()?.values.get(key),
    set: (key, value) => put(hold().values, key, value),

    bytes() {
      const { messages = new Map(), turns = new Map(), questions = new Map() } = find() ?? {};
      let bytes = 0;
      for (const message of messages.values()) bytes += message.bytes;
      for (const { asked } of turns.values()) bytes += byteLengthOf(asked);
      for (const json of questions.values()) bytes += byteLengthOf(json);
      return bytes;
    },
  };
}

function createSession(updatedAt: number): Session {
  return {
    updatedAt,
    messages: new Map(),
    turns: new Map(),
    turnOfPrompt: new Map(),
    questions: new Map(),
    participants: new Map(),
    values: new Map(),
  };
}

/** As if every character took one byte. */
function bytesOf({ messages, turns, questions, participants, values }: Session): number {
  let bytes = 0;
  for (const { json } of messages.values()) bytes += json.length;
  for (const { asked, events } of turns.values()) {
    bytes += asked.length;
    for (const entry of events) bytes += entry.events.length;
  }
  for (const map of [questions, participants, values]) {
    for (const text of map.values()) bytes += text.length;
  }
  return bytes;
}

function turnOf(session: Session, turnId: string): StoredTurn | undefined {
  const turn = session.turns.get(turnId);
  return turn && { ...JSON.parse(turn.asked), ...turn.changes };
}

function infoOf(session: Session, turnId: string): TurnInfo | undefined {
  const { content: _, attachments: __, ...info } = turnOf(session, turnId) ?? {};
  return 'turnId' in info ? (info as TurnInfo) : undefined;
}

function allTurnsOf(session: Session): TurnInfo[] {
  return [...session.turns.keys()].map((turnId) => infoOf(session, turnId) as TurnInfo);
}

function openTurnsOf(session: Session): TurnInfo[] {
  const turns = allTurnsOf(session);
  return [
    ...turns.filter(({ status }) => status === 'running'),
    ...turns.filter(({ status }) => status === 'queued'),
  ];
}

/** One whose end has no time counts as the first to end. */
function endOf({ endedAt = Number.MIN_SAFE_INTEGER }: TurnInfo): number {
  return endedAt;
}

function definedOf(changes: TurnChanges): TurnChanges {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

function channelOf({ channelType, channelId }: StoredMessage): Channel | undefined {
  if (channelType === undefined || channelId === undefined) return undefined;
  return { channelType, channelId };
}

function isSame(one: Channel | undefined, other: Channel): boolean {
  return one?.channelType === other.channelType && one?.channelId === other.channelId;
}

function parseKept<Kept>(json: string | undefined): Kept | undefined {
  return json === undefined ? undefined : JSON.parse(json);
}

function eventBytesOf(session: Session, turnId: string): number {
  const entries = session.turns.get(turnId)?.events ?? [];
  return entries.reduce((sum, { events }) => sum + byteLengthOf(events), 0);
}

/** The first that fit, but at least so many. */
function firstWithin<Item>(
  items: Item[],
  maxBytes: number,
  bytesOf: (item: Item) => number,
  least: number,
): Item[] {
  let bytes = 0;
  const end = items.findIndex((item, index) => {
    bytes += bytesOf(item);
    return bytes > maxBytes && index >= least;
  });
  return end < 0 ? items : items.slice(0, end);
}

function byteLengthOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
