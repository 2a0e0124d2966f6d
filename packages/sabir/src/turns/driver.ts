import type { UIMessage } from '../core/message.ts';
import type { Usage } from '../core/outcome.ts';
import type { AnswerBy } from '../core/roles.ts';
import type { Channel, Logger } from '../core/translator.ts';
import type { Attachment } from './upstream.ts';

export type AgentStatus = 'idle' | 'thinking' | 'streaming' | 'tool_calling' | 'error';

/** What an agent does while it answers, in its own order. */
export type DriverEvent =
  | { type: 'text'; delta: string }
  | { type: 'reasoning'; delta: string }
  /**
   * A tool call, each time something about it changes: `pending` when it is named, `running` with
   * `args` when it is called (and again with a `result` that is not the last), then `completed` with
   * a `result` or `error` with words.
   */
  | {
      type: 'tool';
      callId: string;
      toolName: string;
      status: 'pending' | 'running' | 'completed' | 'error';
      args?: unknown;
      result?: unknown;
      error?: string;
    }
  /** A call's arguments as the model writes them: JSON, piece by piece, before it is `running`. */
  | { type: 'tool-input'; callId: string; toolName: string; delta: string }
  | { type: 'source'; sourceId: string; url: string; title?: string }
  | { type: 'source'; sourceId: string; mediaType: string; title: string; filename?: string }
  | { type: 'file'; url: string; mediaType: string }
  /** What a page knows how to show; with the same name and id it replaces what was there. */
  | { type: 'data'; name: string; id?: string; data: unknown; transient?: boolean }
  /** What follows belongs to the next step. */
  | { type: 'step' }
  | { type: 'status'; status: AgentStatus; detail?: string }
  | { type: 'usage'; usage: Usage; model?: string }
  /** Passed on as it is to everybody who watches the session: git-state, diff, title, … */
  | { type: 'event'; event: { type: string; [field: string]: unknown } };

export type DriverQuestion = {
  text: string;
  /** What can be chosen; without it, any words will do. */
  options?: string[];
  /** The tool call that waits for the answer. */
  callId?: string;
  /** Default: made up. */
  questionId?: string;
  /** How long people have. Default: the session's. */
  expiresInMs?: number;
  /** Who may answer. Default: every collaborator and owner. */
  answerBy?: AnswerBy;
};

export type DriverAnswer =
  | { status: 'answered'; answer: string | boolean }
  /** Nobody answered in time. */
  | { status: 'expired' };

export type DriverPrompt = {
  readonly sessionId: string;
  readonly channel: Channel;
  readonly turnId: string;
  readonly promptId: string;
  readonly content: string;
  readonly attachments: Attachment[];
  /** The model somebody chose for this prompt. */
  readonly model?: string;
  readonly author?: { id: string; name?: string };
  /** W3C Trace Context of the turn's span, if a gateway follows it: make your spans its children. */
  readonly traceparent?: string;
  /** What was said before in this channel, if the driver `needsHistory`; the oldest first. */
  readonly messages: UIMessage[];
  /** Aborts when the turn is to stop: whatever the driver does then, the turn is `canceled`. */
  readonly signal: AbortSignal;
  /** Asks the people in the session, and waits. Rejects when the turn is to stop. */
  ask(question: DriverQuestion): Promise<DriverAnswer>;
};

export type DriverStart = {
  readonly sessionId: string;
  readonly signal: AbortSignal;
  /** Tells everybody who watches the session something that belongs to no turn. */
  emit(event: { type: string; [field: string]: unknown }): void;
  readonly logger?: Logger;
};

/**
 * An agent behind a session. An implementation
 * - MUST answer one prompt with one run of `prompt`: what it yields is the answer, returning ends it,
 *   throwing fails it with the error's message, made fit for people;
 * - MUST stop when `signal` aborts, and soon: the next prompt waits for it;
 * - MUST NOT be given a second prompt before the first has ended;
 * - MAY keep a conversation of its own for each channel; one that keeps none sets `needsHistory`;
 * - MUST hold nothing after `close`: no process, no connection, no timer.
 *
 * `test/driver-conformance.ts` checks all of it.
 */
export interface AgentDriver {
  readonly name: string;
  readonly needsHistory?: boolean;
  /** Gets ready; awaited before the first prompt. Rejects with words for whoever asked. */
  start?(where: DriverStart): Promise<void>;
  prompt(prompt: DriverPrompt): AsyncIterable<DriverEvent>;
  close?(): Promise<void>;
}
