/**
 * The names of everything that is kept. What one step of a turn changes has the same hash tag, so
 * that in a cluster it is on one node: a chat's tag, which its turns' ids begin with.
 */
export type TurnKeys = {
  /** A hash: who writes it, how far it is, how it ended. */
  turn: string;
  /** A stream: an entry for each append, under the number of its last chunk. */
  chunks: string;
  /** A list that only grows: whoever goes on with a turn begins at its start. */
  commands: string;
  /** A sorted set: the processes that read it, by when they were last heard. */
  readers: string;
  /** Where whoever reads it is told what is new. */
  channel: string;
};

export type Keys = ReturnType<typeof createKeys>;

const TAG_LENGTH = 2;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

export function createKeys(prefix: string) {
  return {
    ofTurn(turnId: string): TurnKeys {
      const name = (kind: string) => `${prefix}:{${tagOf(turnId)}}:${kind}:${turnId}`;
      return {
        turn: name('turn'),
        chunks: name('chunks'),
        commands: name('commands'),
        readers: name('readers'),
        channel: name('news'),
      };
    },
    /** A sorted set: a chat's turns in the order they began. */
    ofChat(sessionId: string, chatId: string): string {
      const chat = JSON.stringify([sessionId, chatId]);
      return `${prefix}:{${tagFor(chat)}}:chat:${chat}`;
    },
    /** The channel on which a chat's turns are announced when they begin. */
    ofBeginnings: (sessionId: string, chatId: string) =>
      `${prefix}:begun:${JSON.stringify([sessionId, chatId])}`,
    /** A sorted set: a session's turns that have not ended, in the order they began. */
    ofSession: (sessionId: string) => `${prefix}:session:${sessionId}`,
    /** A list: as many entries as promises of that name. */
    ofNote: (name: string) => `${prefix}:note:${name}`,
    /** The id of the turn that answers it. */
    ofRequest(sessionId: string, chatId: string, requestId: string): string {
      const tag = tagFor(JSON.stringify([sessionId, chatId]));
      return `${prefix}:{${tag}}:request:${JSON.stringify([sessionId, chatId, requestId])}`;
    },
    /** A sorted set: turns that have not ended, by when somebody should look at them. */
    live: `${prefix}:live`,
    /** A sorted set and a sum: ended turns and their bytes. */
    ended: `${prefix}:{ended}:turns`,
    endedBytes: `${prefix}:{ended}:bytes`,
    /** Where it is told that a turn was given up. */
    orphans: `${prefix}:orphans`,
    /** Where a process is told of commands for the turns it writes. */
    ofInbox: (processId: string) => `${prefix}:inbox:${processId}`,
  };
}

/** Hard to guess, and short: it is in the id of every frame. */
export function createTurnId(sessionId: string, chatId: string): string {
  return tagFor(JSON.stringify([sessionId, chatId])) + createToken();
}

export function createToken(): string {
  let token = '';
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) token += LETTERS[byte & 63];
  return token;
}

function tagOf(turnId: string): string {
  return turnId.slice(0, TAG_LENGTH);
}

/** One of 4,096, spread over a cluster's slots. */
function tagFor(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  const folded = (hash ^ (hash >>> 12) ^ (hash >>> 24)) & 0xfff;
  return `${LETTERS[folded >> 6]}${LETTERS[folded & 63]}`;
}
