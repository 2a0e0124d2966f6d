import type { UIMessagePart } from '../src/core/message.ts';
import type {
  Participant,
  PromptInfo,
  SessionStore,
  StoredMessage,
  StoredPrompt,
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

export const says = (text: string): UIMessagePart[] => [{ type: 'text', text }];

export function message(id: string, fields: Partial<StoredMessage> = {}): StoredMessage {
  return {
    id,
    role: 'user',
    parts: says(`says ${id}`),
    createdAt: 1_700_000_000_000,
    ...CHANNEL,
    ...fields,
  };
}

/** Its turn has the id `t-…`, and its answer's message the id `m-…`. */
export function prompt(promptId: string, fields: Partial<StoredPrompt> = {}): StoredPrompt {
  return {
    ...CHANNEL,
    promptId,
    turnId: `t-${promptId}`,
    messageId: `m-${promptId}`,
    status: 'queued',
    text: `asks ${promptId}`,
    attachments: [],
    body: {},
    authorId: 'ada',
    askedAt: 1_700_000_000_000,
    ...fields,
  };
}

export function infoOf({ text: _, attachments: __, body: ___, ...info }: StoredPrompt): PromptInfo {
  return info;
}

export function participant(id: string, fields: Partial<Participant> = {}): Participant {
  return { id, role: 'collaborator', firstSeenAt: 1, lastSeenAt: 2, ...fields };
}

export const idsOf = (messages: StoredMessage[]) => messages.map(({ id }) => id);
export const promptIdsOf = (prompts: PromptInfo[]) => prompts.map(({ promptId }) => promptId);
export const sessionIdsOf = (store: SessionStore) => store.list().map(({ sessionId }) => sessionId);
