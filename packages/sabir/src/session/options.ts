import type { Logger } from '../translator.ts';
import type { SessionStorage } from './storage.ts';

/** What somebody may do in a session; each may do what those before it may. */
export type SessionRole = 'viewer' | 'collaborator' | 'owner';

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

export type SessionTiming = {
  /** How long a prompt waits for a runner to connect. */
  runnerStartMs: number;
  /** How long a turn waits for a runner that dropped. */
  runnerGraceMs: number;
  /** How long an agent may take to stop. */
  abortMs: number;
  /** How long people have for an answer, unless the agent says otherwise. */
  questionMs: number;
};

export type SessionLimits = {
  /** How many prompts may wait. */
  queuedPrompts: number;
  /** A prompt, its files included. */
  promptBytes: number;
  /** What all of those that wait may come to. */
  queueBytes: number;
  /** What an agent may say in one turn, and at once. */
  turnBytes: number;
  eventBytes: number;
  /** How many of the latest messages a client is told when it comes. */
  initMessages: number;
  initBytes: number;
  /** How many of them a runner is told with a prompt. */
  historyMessages: number;
  historyBytes: number;
  /** What a client may be behind; one that is further behind is let go, and comes back. */
  clientBufferBytes: number;
};

export type SessionAgentOptions = {
  sessionId: string;
  storage: SessionStorage;
  clock?: Clock;
  timing?: Partial<SessionTiming>;
  limits?: Partial<SessionLimits>;
  /** Somebody has asked for something, and there is no runner. */
  onRunnerWanted?(): void;
  /** A turn has ended, and nothing waits. */
  onIdle?(): void;
  /** A turn has ended, for this reason. */
  onTurnEnd?(reason: 'end_turn' | 'error' | 'canceled'): void;
  logger?: Logger;
};

export const DEFAULT_TIMING: SessionTiming = {
  runnerStartMs: 60_000,
  runnerGraceMs: 30_000,
  abortMs: 10_000,
  questionMs: 5 * 60_000,
};

export const DEFAULT_LIMITS: SessionLimits = {
  queuedPrompts: 100,
  promptBytes: 16_000_000,
  queueBytes: 64_000_000,
  turnBytes: 32_000_000,
  eventBytes: 8_000_000,
  initMessages: 1_000,
  initBytes: 12_000_000,
  historyMessages: 200,
  historyBytes: 12_000_000,
  clientBufferBytes: 8_000_000,
};
