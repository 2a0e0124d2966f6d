/**
 * The events of a turn as deployed Agent Ops clients read them. What each event means is written in
 * `sources/agent-ops/events.ts`, which reads the same vocabulary; the wire writes a part of it.
 */
import type { Channel } from '../../core/translator.ts';
import type { EventOf, MessagePart, Place } from '../../sources/agent-ops/events.ts';

/** `turnId` is V2's word for the id of the answer's message, `promptId` for the id of the prompt's message. */
type OfTurn = { turnId: string; promptId?: string } & Partial<Channel>;

type V2Type =
  | 'message.create'
  | 'message.part.text-delta'
  | 'message.part.reasoning-delta'
  | 'message.part.tool-update'
  | 'message.part.tool-input-delta'
  | 'message.part.step'
  | 'message.part.source'
  | 'message.part.file'
  | 'message.part.data'
  | 'question'
  | 'status'
  | 'agentStatus'
  | 'usage-report'
  | 'message.finalize'
  | 'complete';

export type V2Event = EventOf<V2Type> & OfTurn;

type Without<Event, Key extends PropertyKey> = Event extends unknown ? Omit<Event, Key> : never;
type FieldsOf<Type extends V2Type> = Without<EventOf<Type>, 'type' | 'seq' | keyof OfTurn>;

/** Writes one event; the encoder adds what every event of the turn carries. */
export type Emit = <Type extends V2Type>(type: Type, fields: FieldsOf<Type>) => void;

/** A message of the session, in `init`, `message` and `message.updated`. */
type KeptMessage = Place & {
  id: string;
  /** All text. */
  content: string;
  /** Seconds since 1970. */
  createdAt: number;
};

export type AnswerMessage = KeptMessage & {
  role: 'assistant';
  parts: MessagePart[];
  promptId?: string;
};

export type PromptMessage = KeptMessage & {
  role: 'user';
  /** Files; absent if there is none. */
  parts?: PromptFile[];
  authorId?: string;
  authorName?: string;
};

export type PromptFile = { type: 'file'; mime: string; url: string; filename?: string };
