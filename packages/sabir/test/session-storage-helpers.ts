import type {
  Participant,
  SessionStore,
  StoredMessage,
  StoredQuestion,
  StoredTurn,
  TurnInfo,
} from '../src/sessions/storage.ts';

type SessionStoreRig = {
  store: SessionStore;
  /** Ends what is there and starts it again, where that is something. */
  reopen?(): SessionStore;
};

export type SetUpSessionStore = (options: { now: () => number }) => SessionStoreRig;

/** What is written with the one is read with the other, which may be a store opened anew. */
export type Bench = {
  writing(sessionId?: string): ReturnType<SessionStore['open']>;
  reading(sessionId?: string): ReturnType<SessionStore['open']>;
  store(): SessionStore;
};

export const CHANNEL = { channelType: 'web', channelId: 'default' };
export const OTHER_CHANNEL = { channelType: 'web', channelId: 'other' };

export function message(id: string, fields: Partial<StoredMessage> = {}): StoredMessage {
  return {
    id,
    role: 'user',
    content: `says ${id}`,
    createdAt: 1_700_000_000,
    ...CHANNEL,
    ...fields,
  };
}

/** Its prompt has the id `p-…`. */
export function turn(turnId: string, fields: Partial<StoredTurn> = {}): StoredTurn {
  return {
    ...CHANNEL,
    turnId,
    promptId: `p-${turnId}`,
    status: 'queued',
    content: `asks ${turnId}`,
    attachments: [],
    authorId: 'ada',
    askedAt: 1_700_000_000_000,
    ...fields,
  };
}

export function question(questionId: string, fields: Partial<StoredQuestion> = {}): StoredQuestion {
  return {
    askedAs: questionId,
    questionId,
    turnId: 't1',
    status: 'open',
    event: { type: 'question', questionId, text: 'Really?' },
    expiresAt: 1_700_000_060_000,
    ...fields,
  };
}

export function participant(id: string, fields: Partial<Participant> = {}): Participant {
  return { id, role: 'collaborator', firstSeenAt: 1, lastSeenAt: 2, ...fields };
}

export const idsOf = (messages: StoredMessage[]) => messages.map(({ id }) => id);
export const turnIdsOf = (turns: TurnInfo[]) => turns.map(({ turnId }) => turnId);
