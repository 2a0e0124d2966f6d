import type { SabirError } from '../core/errors.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Channel } from '../core/translator.ts';
import type { Steer, TurnInfo } from '../turns/log.ts';
import type { SessionLease } from '../turns/session-pool.ts';
import type { SessionIdentity } from '../turns/upstream.ts';
import type { PromptPost } from './chat-post.ts';
import type { Place } from './chat-route.ts';
import type { ChatEvents, ChatWatch } from './chat-watch.ts';
import type { QueueWatch } from './queued-viewer.ts';

/** What a turn begins with. One that goes on has its message already, and nothing new is asked. */
export type Beginning = Omit<PromptPost, 'userMessage'> & {
  userMessage?: UIMessage;
  /** Of a turn that goes on. */
  messageId?: string;
  /** The id of the answer, where the client names its attempts: `answerIdOf`. @default a new id */
  answerId?: string;
  isRestored?: true;
};

/** The request that asks for a turn. */
export type Asking = {
  place: Place;
  channel: Channel | undefined;
  requestId: string;
  askedAt: number;
  headers: Headers;
  /** The client sends it again because it got no response. */
  isRepeat?: boolean;
  /** Runs once, when a turn that was begun for it has ended here. */
  onEnd?: () => void;
};

/** A turn that was begun, or found. */
export type Begun = {
  turn: TurnInfo;
  isNew: boolean;
  /** Of a new one: see `Turn`. */
  accepted?: Promise<TurnOutcome | undefined> | undefined;
};

/** What runs the turns of a place: this gateway on an upstream, or a session in this process. */
export type TurnHost = {
  /** @param refusal Why no new turn may begin; one that was asked for before is still found. */
  begin(post: Beginning, asking: Asking, refusal: SabirError | undefined): Promise<Begun>;
  /** For what is read of a session beside its turns. */
  lease(
    place: SessionIdentity & Pick<Place, 'upstream'>,
    signal: AbortSignal,
  ): Promise<SessionLease>;
  /** The prompts of this conversation whose turns the log does not have yet. */
  queued(place: Place): Promise<TurnInfo[]>;
  /** Where a turn waits, or may come to wait, that has not begun; undefined once it has. */
  queueOf(turn: TurnInfo, place: Place): QueueWatch | undefined;
  /** Stops a turn, or withdraws its prompt if it waits; false if it has ended, or the user may not stop it. */
  stop(turn: TurnInfo, place: Place, reason: string): Promise<boolean>;
  /** Gives a message to a turn that runs; the log tells whether its agent takes it. False where the turn has ended or has the message. */
  steer(turn: TurnInfo, message: Steer, place: Place): Promise<boolean>;
  /** Whether a turn was asked for in this very chat; a conversation may be seen as several chats. */
  isOfChat(turn: TurnInfo, place: Place): boolean;
  /** Whether this user has asked for a turn in this very chat, as far as is known. */
  isAskedBy(turn: TurnInfo, place: Place): boolean;
  /** The answers of this session to prompts whose turns the log does not have yet. */
  unbegun(place: Pick<Place, 'sessionId'>): string[];
  /** Whether the session has a user's message, or had it; undefined where no session in this process keeps them. */
  hasMessage(messageId: string, place: Place): boolean | undefined;
  /** A user begins to watch. Gives the function to call when they leave. */
  enter(place: Place): () => void;
  /** What happens in a conversation beside its turns. */
  watch(place: Place, on: ChatEvents): ChatWatch;
};
