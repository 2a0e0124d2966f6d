import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome, Usage } from '../core/outcome.ts';
import type { Logger, TranslatorStats } from '../core/translator.ts';
import type { TurnLog, TurnWriter } from './log.ts';
import type { SessionLease } from './session-pool.ts';
import type { Prompt } from './upstream.ts';

export type TurnTiming = {
  /** How long the agent may take to be reached. */
  connectMs: number;
  /** How long it may say nothing. Does not run while the prompt is queued or a question is open. */
  idleMs: number;
  /** How long it may say nothing while a tool works. */
  toolLimitMs: number;
  /**
   * How long `authenticate`, `access`, `enabled`, `admit` and `routes.metrics` may take before the
   * request is answered with a 503, and how long a turn waits for `onFinish`.
   *
   * @default 10_000
   */
  hookMs: number;
};

export type TakenOver = {
  /** How much is written. */
  lastSeq: number;
  /** How much of what the agent said that is, in its own count. */
  mark: number;
  /** Whether there is enough known to ask the agent for the rest. */
  canAttach: boolean;
};

export type FinishedTurn = {
  message: UIMessage;
  outcome: TurnOutcome;
  usage?: Usage;
  sessionId: string;
  chatId: string;
  turnId: string;
};

export type TurnOptions = {
  log: TurnLog;
  writer: TurnWriter;
  prompt: Prompt;
  /** Another process began it and is gone: it goes on where that one's writing ended. */
  takenOver?: TakenOver | undefined;
  /** Enough is kept for another process to go on with it. */
  isKept?: boolean;
  open(signal: AbortSignal): Promise<SessionLease>;
  timing: TurnTiming;
  /** How much may wait for a slow log. */
  queueBytes: number;
  /** The agent could not be reached. */
  onUnreachable?: () => void;
  /** The process that numbers the turn cannot be reached for now: its viewers here should not wait for it. */
  onCutOff?: () => void;
  /**
   * Keeps what follows from the turn, such as its message in a history, in the step that ends the turn. It may run again
   * when that step has failed or the turn was taken over, so that it has to be idempotent.
   */
  store?: ((turn: FinishedTurn) => void) | undefined;
  /** Runs once, after the end, viewers or none. */
  onFinish?: ((turn: FinishedTurn) => unknown) | undefined;
  /** A hook, by its name, took longer than `timing.hookMs`. */
  onHookTimeout?: (hook: string) => void;
  /** Runs once, before `onFinish`. */
  onEnd?: (outcome: TurnOutcome, stats: TranslatorStats) => void;
  /** Runs once, instead of both: the turn goes on elsewhere, or ends there. */
  onTaken?: () => void;
  logger?: Logger | undefined;
};

/** One run of an agent, from the prompt to its one outcome. */
export interface Turn {
  readonly prompt: Prompt;
  /** The id its message has; the source may name another than the prompt's. */
  readonly messageId: string;
  /** The highest number that its log has confirmed; 0 while there is none. */
  readonly lastSeq: number;
  /** Its prompt waits behind others, as far as its agent says. */
  readonly isQueued: boolean;
  /** Where its prompt waits, as far as its agent says. */
  readonly queue: {
    readonly hasBegun: boolean;
    position(): number;
    subscribe(listener: () => void): () => void;
    /** Settles when the turn says something, or has ended. */
    whenBegun(): Promise<boolean>;
  };
  /** It waits for an answer, and whoever keeps it can go on with it another time. */
  readonly canWait: boolean;
  /** Ends it here; the agent behind it is not told to stop. */
  abandon(outcome: TurnOutcome): void;
  /** Gives it to whoever shares the log, if they can go on with it; false if not. */
  handOver(): Promise<boolean>;
  /** Settles when the agent has taken the prompt; with the outcome if the turn has ended before that. */
  readonly accepted: Promise<TurnOutcome | undefined>;
  /** Settles when everything is written and `onFinish` has run. */
  readonly done: Promise<void>;
}
