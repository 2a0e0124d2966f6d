import type { Channel } from '../core/translator.ts';
import type { TurnLog } from '../turns/log.ts';
import { memoryTurnLog } from '../turns/memory.ts';
import { isSameChannel } from './records.ts';
import type {
  Participant,
  PromptChanges,
  PromptInfo,
  PromptKey,
  SessionStorage,
  SessionStore,
} from './storage.ts';

export type MemorySessionStoreOptions = {
  /** Where the turns are kept. @default a log in memory */
  log?: TurnLog;
  /** Milliseconds since 1970. */
  now?: () => number;
};

/** Kept as JSON, so that callers cannot change it from outside. Maps remember the order of adding. */
type Session = {
  updatedAt: number;
  /** By their place. */
  messages: Map<number, KeptMessage>;
  /** The places of those that are not replaced, by id. */
  places: Map<string, number>;
  prompts: Map<string, KeptPrompt>;
  /** Prompt ids by turn id and by message id. */
  byTurn: Map<string, string>;
  byMessage: Map<string, string>;
  participants: Map<string, string>;
};

type KeptMessage = {
  id: string;
  json: string;
  bytes: number;
  channel: Channel;
  /** The prompt that replaces it. */
  replacedBy?: string;
};

/** Its text and files are apart from the rest, which is read far more often. */
type KeptPrompt = {
  info: string;
  content: string;
  bytes: number;
  changes: PromptChanges & Pick<PromptInfo, 'status'>;
};

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
  const { now = Date.now, log = memoryTurnLog({ maxTurnBytes: Infinity }) } = options;
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
    log,
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
      return [...kept].filter(([, { prompts }]) => hasOpenPrompt(prompts)).map(([id]) => id);
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
      void log.close();
    },
  };
}

function memorySessionStorage(sessions: Sessions, sessionId: string): SessionStorage {
  const find = () => sessions.find(sessionId);
  const hold = () => sessions.hold(sessionId);

  function put<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
    const isNew = !map.has(key);
    const before = map.get(key) as Value;
    map.set(key, value);
    sessions.undoable(() => (isNew ? map.delete(key) : map.set(key, before)));
  }

  function drop<Key, Value>(map: Map<Key, Value>, key: Key): void {
    const before = map.get(key) as Value;
    map.delete(key);
    sessions.undoable(() => map.set(key, before));
  }

  return {
    transaction: sessions.transaction,

    addMessage(message) {
      const json = JSON.stringify(message);
      const { id, channelType, channelId } = message;
      if (find()?.places.has(id)) return false;
      const session = hold();
      const place = session.messages.size;
      const channel = { channelType, channelId };
      put(session.messages, place, { id, json, bytes: byteLengthOf(json), channel });
      put(session.places, id, place);
      sessions.touch(session);
      return true;
    },
    messages({ channel, before, from, limit = Infinity, maxBytes = Infinity } = {}) {
      const { messages = [], places } = find() ?? {};
      const placeOf = (id: string | undefined) => (id === undefined ? undefined : places?.get(id));
      const end = before === undefined ? Infinity : (placeOf(before) ?? 0);
      const start = from === undefined ? 0 : (placeOf(from) ?? Infinity);
      const chosen: ReturnType<SessionStorage['messages']> = [];
      let bytes = 0;
      for (const [place, message] of [...messages].reverse()) {
        const isWithin = place < end && place >= start && message.replacedBy === undefined;
        if (!isWithin || (channel && !isSameChannel(message.channel, channel))) continue;
        bytes += message.bytes;
        if (chosen.length >= limit || bytes > maxBytes) break;
        chosen.push(JSON.parse(message.json));
      }
      return chosen.reverse();
    },
    message(id) {
      const session = find();
      const place = session?.places.get(id);
      return place === undefined ? undefined : parseKept(session?.messages.get(place)?.json);
    },
    replaceMessages(from, promptId) {
      const session = find();
      const start = session?.places.get(from);
      const first = start === undefined ? undefined : session?.messages.get(start);
      if (!session || start === undefined || !first) return;
      for (const [place, message] of session.messages) {
        const isBehind = place >= start && isSameChannel(message.channel, first.channel);
        if (!isBehind || message.replacedBy !== undefined) continue;
        put(session.messages, place, { ...message, replacedBy: promptId });
        drop(session.places, message.id);
      }
      sessions.touch(session);
    },
    replacedMessages(promptId) {
      const messages = [...(find()?.messages.values() ?? [])];
      const replaced = messages.filter(({ replacedBy }) => replacedBy === promptId);
      return replaced.map(({ json }) => JSON.parse(json));
    },
    wasReplaced(id, channel) {
      const messages = [...(find()?.messages.values() ?? [])];
      return messages.some(
        (one) =>
          one.id === id && one.replacedBy !== undefined && isSameChannel(one.channel, channel),
      );
    },
    restoreMessages(promptId) {
      const session = find();
      for (const [place, { replacedBy, ...message }] of session?.messages ?? []) {
        if (!session || replacedBy !== promptId || session.places.has(message.id)) continue;
        put(session.messages, place, message);
        put(session.places, message.id, place);
        sessions.touch(session);
      }
    },
    channels() {
      const seen: Channel[] = [];
      for (const { channel } of find()?.messages.values() ?? []) {
        if (!seen.some((one) => isSameChannel(one, channel))) seen.push({ ...channel });
      }
      return seen;
    },

    addPrompt(prompt) {
      const { text, attachments, body, ...rest } = prompt;
      const { promptId, turnId, messageId, status } = prompt;
      const info = JSON.stringify(rest);
      const content = JSON.stringify({ text, attachments, body });
      // As one object they have a comma in place of a pair of braces.
      const bytes = byteLengthOf(info) + byteLengthOf(content) - 1;
      const found = find();
      const isKnown =
        found?.prompts.has(promptId) ||
        found?.byTurn.has(turnId) ||
        found?.byMessage.has(messageId);
      if (isKnown) return false;
      const session = hold();
      put(session.prompts, promptId, { info, content, bytes, changes: { status } });
      put(session.byTurn, turnId, promptId);
      put(session.byMessage, messageId, promptId);
      sessions.touch(session);
      return true;
    },
    prompt(promptId) {
      const prompt = find()?.prompts.get(promptId);
      return prompt && { ...toInfo(prompt), ...JSON.parse(prompt.content) };
    },
    promptInfo(key, id) {
      const session = find();
      const promptId = session && promptIdOf(session, key, id);
      const prompt = promptId === undefined ? undefined : session?.prompts.get(promptId);
      return prompt && toInfo(prompt);
    },
    updatePrompt(promptId, changes) {
      const session = find();
      const prompt = session?.prompts.get(promptId);
      if (!session || !prompt) return;
      const changed = { ...prompt.changes, ...definedOf(changes) };
      put(session.prompts, promptId, { ...prompt, changes: changed });
      sessions.touch(session);
    },
    openPrompts() {
      const prompts = [...(find()?.prompts.values() ?? [])];
      const are = (status: PromptInfo['status']) =>
        prompts.filter(({ changes }) => changes.status === status).map(toInfo);
      return [...are('running'), ...are('queued')];
    },

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

    bytes() {
      const session = find();
      return session ? bytesOf(session) : 0;
    },
  };
}

function createSession(updatedAt: number): Session {
  return {
    updatedAt,
    messages: new Map(),
    places: new Map(),
    prompts: new Map(),
    byTurn: new Map(),
    byMessage: new Map(),
    participants: new Map(),
  };
}

function bytesOf({ messages, prompts }: Session): number {
  let bytes = 0;
  for (const message of messages.values()) bytes += message.bytes;
  for (const prompt of prompts.values()) bytes += prompt.bytes;
  return bytes;
}

function promptIdOf(
  { byTurn, byMessage }: Session,
  key: PromptKey,
  id: string,
): string | undefined {
  if (key === 'promptId') return id;
  return (key === 'turnId' ? byTurn : byMessage).get(id);
}

function toInfo({ info, changes }: KeptPrompt): PromptInfo {
  return { ...JSON.parse(info), ...changes };
}

function hasOpenPrompt(prompts: Session['prompts']): boolean {
  return [...prompts.values()].some(({ changes }) => changes.status !== 'ended');
}

function definedOf(changes: PromptChanges): PromptChanges {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

function parseKept<Kept>(json: string | undefined): Kept | undefined {
  return json === undefined ? undefined : JSON.parse(json);
}

function byteLengthOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
