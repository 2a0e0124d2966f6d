import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome, Usage } from '../core/outcome.ts';
import type { Logger } from '../core/translator.ts';
import type { Agent, AgentFunction, SessionEvent } from '../turns/agent.ts';
import type { TurnLog } from '../turns/log.ts';
import type { TurnTiming } from '../turns/turn-options.ts';
import type { User } from '../turns/upstream.ts';
import type { QueuedPrompt } from './prompt-queue.ts';
import type { PromptInfo, SessionStorage, StoredMessage } from './storage.ts';

export type { Role as SessionRole } from '../core/roles.ts';

/** As much of a socket as a session needs, whatever platform it is on. */
export interface SessionSocket {
  send(frame: string): void;
  close(code?: number, reason?: string): void;
  /** What was sent and has not left yet, in bytes, where the platform can tell. */
  readonly bufferedAmount?: number;
}

/** What the platform tells of a socket that was handed in. */
export interface SocketEvents {
  message(frame: string): void;
  /** The socket is gone, whoever closed it. */
  close(): void;
}

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Runs once; gives what calls it off. Must not keep a process alive. */
  after(ms: number, run: () => void): () => void;
}

export type SessionTiming = Omit<TurnTiming, 'connectMs'> & {
  /**
   * How long a prompt waits for a runner to connect.
   * @default 60_000
   */
  runnerStartMs: number;
  /**
   * How long a turn waits for a runner that dropped.
   * @default 30_000
   */
  runnerGraceMs: number;
  /**
   * How long an agent may take to stop.
   * @default 10_000
   */
  abortMs: number;
  /**
   * How long people have for an answer, unless the agent says otherwise.
   * @default 300_000
   */
  questionMs: number;
  /**
   * How long an agent in this process may take to stop before it is closed and made anew.
   * @default 5_000
   */
  stopMs: number;
};

export type SessionLimits = {
  /**
   * How many prompts may wait in a session.
   * @default 100
   */
  queuedPrompts: number;
  /**
   * How many of them may be one user's.
   * @default 50
   */
  queuedPromptsPerUser: number;
  /**
   * A prompt, its files included, and any other message of a collaborator or an owner.
   * @default 12_000_000
   */
  promptBytes: number;
  /**
   * A message of a viewer: `ping` or `follow`.
   * @default 4_096
   */
  viewerMessageBytes: number;
  /**
   * What all prompts that wait may come to.
   * @default 64_000_000
   */
  queueBytes: number;
  /**
   * What an agent may say in one turn.
   * @default 32_000_000
   */
  turnBytes: number;
  /**
   * How many questions an agent may ask in one turn.
   * @default 1_000
   */
  turnQuestions: number;
  /**
   * What an agent may say at once.
   * @default 8_000_000
   */
  eventBytes: number;
  /**
   * What a session may store: messages and prompts. Past it prompts are refused, and a turn
   * that would exceed it fails.
   * @default 256_000_000
   */
  sessionBytes: number;
  /**
   * How many channels a session may have. Past it prompts in a new one are refused.
   * @default 1_000
   */
  channels: number;
  /**
   * How many of the latest messages a client gets when it connects.
   * @default 1_000
   */
  initMessages: number;
  /**
   * What those messages may come to.
   * @default 12_000_000
   */
  initBytes: number;
  /**
   * How many of the latest messages a runner gets with a prompt.
   * @default 200
   */
  historyMessages: number;
  /**
   * What those messages may come to.
   * @default 12_000_000
   */
  historyBytes: number;
  /**
   * How far behind a client may be; one that is further behind is closed with 4008, and comes back.
   * @default 8_000_000
   */
  clientBufferBytes: number;
};

export type SessionOptions = {
  sessionId: string;
  storage: SessionStorage;
  /** Where its turns are kept. */
  log: TurnLog;
  /** Makes the agent in this process, when there is something to do. @default runners answer */
  agent?: () => Agent | AgentFunction;
  clock?: Clock;
  timing?: Partial<SessionTiming>;
  limits?: Partial<SessionLimits>;
  /** A prompt waits, and there is neither an agent nor a runner. */
  onRunnerWanted?(): void;
  /** Something was refused because of this limit. */
  onLimit?(limit: keyof SessionLimits): void;
  /** What a person is shown of the agent's own errors. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
};

/** What happens in a session, in order. What a turn says is in the log. */
export type SessionNotice =
  /** A prompt has to wait. */
  | { type: 'queued'; prompt: QueuedPrompt }
  /** A prompt that waited is being answered. */
  | { type: 'dequeued'; prompt: QueuedPrompt }
  | { type: 'withdrawn'; prompt: QueuedPrompt }
  /** This prompt regenerates or edits a message: these, the oldest first, are not in the conversation any more. */
  | { type: 'replaced'; prompt: PromptInfo; messages: StoredMessage[] }
  /** The prompt that replaced them was withdrawn before it was answered: they are in the conversation again. */
  | { type: 'restored'; prompt: PromptInfo; messages: StoredMessage[] }
  /** The prompt became a message. */
  | { type: 'asked'; message: StoredMessage }
  /** The log has the turn. */
  | { type: 'begun'; prompt: PromptInfo }
  | { type: 'ended'; prompt: PromptInfo; outcome: TurnOutcome; message: UIMessage; usage?: Usage }
  /** Nothing runs and nothing waits. */
  | { type: 'idle' }
  | { type: 'runner'; isConnected: boolean }
  | { type: 'joined' | 'left'; user: User }
  /** What has not ended is left to the next process. */
  | { type: 'closed' }
  | { type: 'event'; event: SessionEvent };

export const DEFAULT_TIMING: SessionTiming = {
  runnerStartMs: 60_000,
  runnerGraceMs: 30_000,
  abortMs: 10_000,
  questionMs: 5 * 60_000,
  stopMs: 5_000,
  idleMs: 120_000,
  toolLimitMs: 30 * 60_000,
  hookMs: 10_000,
};

export const DEFAULT_LIMITS: SessionLimits = {
  queuedPrompts: 100,
  queuedPromptsPerUser: 50,
  promptBytes: 12_000_000,
  viewerMessageBytes: 4_096,
  queueBytes: 64_000_000,
  turnBytes: 32_000_000,
  turnQuestions: 1_000,
  eventBytes: 8_000_000,
  sessionBytes: 256_000_000,
  channels: 1_000,
  initMessages: 1_000,
  initBytes: 12_000_000,
  historyMessages: 200,
  historyBytes: 12_000_000,
  clientBufferBytes: 8_000_000,
};
