/**
 * What a runner and its session send each other: chunks, numbered within their turn, and session events beside them.
 * docs/SESSIONS.md is the same for people. Deployed Agent Ops runners speak V2 instead (`sources/agent-ops`).
 */
import type { Chunk } from '../core/chunks.ts';
import { isObject, type Loose } from '../core/loose.ts';
import type { Steer } from '../turns/log.ts';
import type { Prompt } from '../turns/upstream.ts';
import { readTyped } from './read-typed.ts';

export const RUNNER_PROTOCOL = { name: 'sabir-runner', version: 1 } as const;

/** From a session to its runner. */
export type RunnerCommand =
  | { type: 'init'; session: { id: string }; protocol: typeof RUNNER_PROTOCOL }
  | {
      type: 'prompt';
      prompt: Omit<Prompt, 'errorText' | 'isRestored'>;
      /** How long people have for an answer, unless the agent says otherwise. */
      questionMs: number;
    }
  | { type: 'stop'; turnId: string }
  | { type: 'answer'; turnId: string; questionId: string; answer: unknown }
  /** A message for the running turn. The runner's chunks say what came of it. */
  | { type: 'steer'; turnId: string; message: Steer }
  | { type: 'expire'; turnId: string; questionId: string }
  /** Everything of this turn up to and with this frame is in the session's log. */
  | { type: 'ack'; turnId: string; seq: number }
  | { type: 'pong' };

/** From a runner to its session. */
export type RunnerFrame =
  | {
      type: 'hello';
      /** The turn it is working on. */
      turnId: string | null;
      /** The turns it has been given, the latest last: one that is not among them never reached it. */
      known: string[];
      /** It wants `messages` with each prompt. */
      needsHistory?: boolean;
    }
  /** The next chunks of a turn. `seq` counts the frames of the turn, from 1. */
  | { type: 'chunks'; turnId: string; seq: number; chunks: Chunk[] }
  /** Something for everybody in the session that belongs to no turn. */
  | { type: 'event'; event: { type: string; [field: string]: unknown } }
  /** It takes no more prompts. The session answers with `pong`: no prompt follows that. */
  | { type: 'bye' }
  | { type: 'ping' };

const isString = (value: unknown): value is string => typeof value === 'string';
const isPlace = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;

const FRAMES: Record<RunnerFrame['type'], (frame: Loose) => boolean> = {
  hello: ({ turnId, known }) =>
    (turnId === null || isString(turnId)) && Array.isArray(known) && known.every(isString),
  chunks: ({ turnId, seq, chunks }) => isString(turnId) && isPlace(seq) && Array.isArray(chunks),
  event: ({ event }) => isObject(event) && isString(event.type),
  bye: () => true,
  ping: () => true,
};

const COMMANDS: Record<RunnerCommand['type'], (command: Loose) => boolean> = {
  init: ({ protocol }) => isObject(protocol) && protocol.name === RUNNER_PROTOCOL.name,
  prompt: ({ prompt, questionMs }) =>
    isObject(prompt) &&
    [prompt.turnId, prompt.messageId, prompt.text].every(isString) &&
    isObject(prompt.user) &&
    Array.isArray(prompt.attachments) &&
    Array.isArray(prompt.messages) &&
    typeof questionMs === 'number',
  stop: ({ turnId }) => isString(turnId),
  answer: ({ turnId, questionId }) => isString(turnId) && isString(questionId),
  steer: ({ turnId, message }) =>
    isString(turnId) &&
    isObject(message) &&
    [message.id, message.text].every(isString) &&
    Array.isArray(message.attachments),
  expire: ({ turnId, questionId }) => isString(turnId) && isString(questionId),
  // Anything but a number would confirm frames that the session does not have.
  ack: ({ turnId, seq }) => isString(turnId) && isPlace(seq),
  pong: () => true,
};

/** Undefined where it is not a frame of a runner. */
export function readRunnerFrame(value: unknown): RunnerFrame | undefined {
  return readTyped<RunnerFrame>(FRAMES, value);
}

/** Undefined where it is not a command of a session. */
export function readRunnerCommand(value: unknown): RunnerCommand | undefined {
  return readTyped<RunnerCommand>(COMMANDS, value);
}
