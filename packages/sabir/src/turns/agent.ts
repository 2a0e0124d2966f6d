import type { Trigger } from '../core/chat-request.ts';
import type { Chunk, ChunkType } from '../core/chunks.ts';
import type { UIMessage } from '../core/message.ts';
import type { AnswerBy } from '../core/roles.ts';
import type { Channel, Logger } from '../core/translator.ts';
import type { Prompt, WaitingChat, WaitingTurn } from './upstream.ts';

/** Words without the id of a part, and without its start and end: the translator adds them. */
export type LooseDelta = { type: 'text-delta' | 'reasoning-delta'; delta: string };

/** What an agent yields. A generator's chunks are checked one by one; the AI SDK's own streams are taken as they are. */
export type AgentChunks = AsyncIterable<Chunk | LooseDelta> | ReadableStream<{ type: ChunkType }>;

/** An event of the session that belongs to no turn: git-state, diff, title, models, … */
export type SessionEvent = { type: string; [field: string]: unknown };

/** A choice with an id of its own, for agents whose labels repeat. */
export type QuestionOption = { id: string; label: string };

export type AgentQuestion = {
  text: string;
  /** What people can choose. Without it they answer in their own words. */
  options?: readonly (string | QuestionOption)[];
  /** The tool call that waits for the answer: the question is then an approval. */
  callId?: string;
  /** @default a new id */
  questionId?: string;
  /** How long people have. @default the time that the session or the gateway allows */
  expiresInMs?: number;
  /** Who may answer. @default every collaborator and owner */
  answerBy?: AnswerBy;
};

export type AgentAnswer =
  | {
      status: 'answered';
      /** As it was given: words, a label, yes or no, or `{ approved, reason? }`. `toDecision` reads all of them. */
      answer: unknown;
      /** The id of the option that was chosen, where the question had options and the answer is one of them. */
      optionId?: string;
    }
  | { status: 'expired' };

/** How an agent waits for a tool call that a client runs. */
export type ToolWait = {
  /** How long clients have. @default as long as people have for a question; 5 minutes where they have no limit */
  expiresInMs?: number;
  /** Whose clients may run the tool. @default the user whose prompt is answered */
  answerBy?: AnswerBy;
};

/** What came of a tool call that a client was to run. */
export type AgentToolOutput =
  | { status: 'done'; output: unknown }
  | { status: 'failed'; errorText: string }
  | { status: 'expired' };

/** One prompt, as an agent gets it. */
export type AgentPrompt<Body extends object = Record<string, unknown>> = Pick<
  Prompt,
  | 'sessionId'
  | 'chatId'
  | 'chatKey'
  | 'turnId'
  | 'messageId'
  | 'user'
  | 'text'
  | 'attachments'
  | 'traceparent'
  | 'replaces'
> & {
  /** Whether the message is answered for the first time or after an edit, or its answer is regenerated. */
  trigger: Trigger;
  /** The conversation, with the message of this prompt last. Behind a gateway it is what the client sent. */
  messages: UIMessage[];
  /** The conversation of the session that it belongs to. */
  channel: Channel;
  /** The model that a person chose for this prompt. */
  model?: string;
  /** What the application added to the request's body, unchecked. */
  body: Body;
  /**
   * Nothing new is asked: the turn that `restore` named goes on. The agent yields again what it has said, its open
   * question included, then waits for the answer.
   */
  isRestored: boolean;
  /**
   * Aborts when the turn is stopped or lost, and when the agent itself is done. Its reason is an `AbortError` where a
   * person stopped the turn, else a `SabirError` whose `code` says what happened.
   */
  signal: AbortSignal;
  /** Asks the people who watch, and waits. The turn shows the question. Rejects when the turn ends. */
  ask(question: AgentQuestion): Promise<AgentAnswer>;
  /**
   * Waits for the answer to a question that the agent's own chunks ask (`data-question`). The first answer counts, also
   * one that has come already. Rejects when the question expires or the turn ends.
   */
  answer(questionId: string): Promise<unknown>;
  /**
   * Waits for the output of a call that a client runs. The agent's chunks show the call first: `tool-input-available` without
   * `providerExecuted`. The first output counts, and the turn shows it. Rejects when the turn ends.
   */
  toolOutput(toolCallId: string, wait?: ToolWait): Promise<AgentToolOutput>;
  /** Sends an event to everybody in the session. Behind a gateway without sessions it has no receiver. */
  emit(event: SessionEvent): void;
};

export type AgentStart = {
  readonly sessionId: string;
  readonly signal: AbortSignal;
  emit(event: SessionEvent): void;
  readonly logger?: Logger;
};

/** A message for a turn that runs, from the user who sent it. */
export type SteeringMessage = Pick<
  Prompt,
  'sessionId' | 'chatId' | 'chatKey' | 'turnId' | 'text' | 'attachments'
> & {
  /** The id of the message. */
  id: string;
  user: { id: string };
};

/** A function that answers prompts is an agent that takes prompts concurrently. */
export type AgentFunction<Body extends object = Record<string, unknown>> = (
  prompt: AgentPrompt<Body>,
) => AgentChunks | Promise<AgentChunks>;

/**
 * What answers a prompt with chunks, in this process. An implementation
 * - MUST answer one prompt with one run of `prompt`: what it yields is the answer, returning ends it,
 *   throwing fails it with the error's message, made fit for people;
 * - MAY leave out steps; and `start`, `finish`, the ids of texts, their starts and ends, which are added;
 * - MUST stop when `signal` aborts, and soon: the next prompt waits for it;
 * - is not given a second prompt of a session before the first has ended, unless it is `concurrent`;
 * - MAY keep a conversation of its own for each channel; one that keeps none sets `needsHistory`;
 * - MUST, if it can `steer`, resolve with true only for a message that whatever answers is certain to see in this turn,
 *   and with false for one that comes too late. It is called while `prompt` runs, once for each message;
 * - MAY show a message that it has taken by yielding its `steering-message` before it resolves; else the chunk is added;
 * - MUST hold nothing after `close`: no process, no connection, no timer.
 *
 * `test/agent-conformance.ts` checks all of it.
 */
export interface Agent<Body extends object = Record<string, unknown>> {
  readonly name: string;
  /** @default false */
  readonly concurrent?: boolean;
  /** In a session, `messages` also holds what was said before in the channel. @default false: only the prompt */
  readonly needsHistory?: boolean;
  /** Gets ready; awaited before the first prompt. Rejects with a text fit for people. */
  start?(where: AgentStart): Promise<void>;
  prompt: AgentFunction<Body>;
  /**
   * Takes a message into the turn that runs. False where it cannot any more: the message then becomes a prompt of its own,
   * where there is a queue. Without it no message is taken.
   */
  steer?(message: SteeringMessage): boolean | Promise<boolean>;
  /** The turn of this chat that waits for an answer though no process runs it, as after a restart. */
  restore?(
    chat: WaitingChat & { sessionId: string },
  ): Promise<WaitingTurn | undefined> | WaitingTurn | undefined;
  close?(): Promise<void>;
}

export function toAgent<Body extends object>(
  agent: Agent<Body> | AgentFunction<Body>,
): Agent<Body> {
  if (typeof agent !== 'function') return agent;
  return { name: agent.name || 'agent', concurrent: true, prompt: agent };
}
