import type { Chunk } from '../core/chunks.ts';
import type { Translator } from '../core/translator.ts';
import { createChunkTranslator } from '../sources/ai-sdk/translate.ts';
import type { SessionEvent } from '../turns/agent.ts';
import type { Answer, Steer } from '../turns/log.ts';
import type { Prompt } from '../turns/upstream.ts';
import type { SessionTiming } from './options.ts';
import {
  RUNNER_PROTOCOL,
  type RunnerCommand,
  type RunnerFrame,
  readRunnerFrame,
} from './runner-protocol.ts';

/** What a frame of a runner is about. */
export type RunnerSaid =
  | { kind: 'hello'; hello: Extract<RunnerFrame, { type: 'hello' }> }
  | { kind: 'bye' }
  | RunnerTurnSaid
  /** Events of a turn that is not known. */
  | { kind: 'other' }
  | { kind: 'event'; event: SessionEvent }
  | { kind: 'ping' }
  | { kind: 'malformed'; type: string };

/** Events of a turn; without an id they are of the one that runs. */
export type RunnerTurnSaid = {
  kind: 'turn';
  turnId?: string;
  seq?: number;
  events: unknown[];
  /** The runner has ended the turn. */
  isEnd?: boolean;
  /** It says what the agent does, and not that the agent goes on with the turn. */
  isHint?: boolean;
};

/** How a session and its runner talk: in chunks, or in V2 with a deployed one. */
export interface RunnerDialect {
  /** The runner says which turns it knows when it connects. */
  readonly saysHello: boolean;
  /** A turn that was stopped has to end before the next prompt is sent. */
  readonly mustEndFirst: boolean;
  toInit(sessionId: string): object | undefined;
  toPrompt(prompt: Prompt): object;
  toStop(prompt: Prompt): object;
  toAnswer(prompt: Prompt, answer: Answer): object;
  /** Without it the runner takes no message into a running turn. */
  toSteer?(prompt: Prompt, message: Steer): object;
  toExpiry(prompt: Prompt, questionId: string): object;
  /** An event that tells the translator how a question ended, where the runner does not; without an answer it expired. */
  settled?(questionId: string, answer?: unknown): object;
  toAck?(turnId: string, seq: number): object;
  /** Translates the events of one turn, of which these chunks are written already. */
  createTranslator(prompt: Prompt, written: readonly Chunk[]): Translator<unknown>;
  read(value: unknown): RunnerSaid;
}

/** Of a runner of ours. */
export function createRunnerDialect({
  questionMs,
}: Pick<SessionTiming, 'questionMs'>): RunnerDialect {
  const command = (given: RunnerCommand) => given;
  return {
    saysHello: true,
    mustEndFirst: false,
    toInit: (id) => command({ type: 'init', session: { id }, protocol: RUNNER_PROTOCOL }),
    toPrompt({ errorText: _, isRestored: __, ...prompt }) {
      return command({ type: 'prompt', prompt, questionMs });
    },
    toStop: ({ turnId }) => command({ type: 'stop', turnId }),
    toAnswer: ({ turnId }, { questionId, answer }) =>
      command({ type: 'answer', turnId, questionId, answer }),
    toSteer: ({ turnId }, message) => command({ type: 'steer', turnId, message }),
    toExpiry: ({ turnId }, questionId) => command({ type: 'expire', turnId, questionId }),
    toAck: (turnId, seq) => command({ type: 'ack', turnId, seq }),
    createTranslator: createWrittenTranslator,
    read(value) {
      const frame = readRunnerFrame(value);
      switch (frame?.type) {
        case 'hello':
          return { kind: 'hello', hello: frame };
        case 'chunks':
          return { kind: 'turn', turnId: frame.turnId, seq: frame.seq, events: frame.chunks };
        case 'event':
          return { kind: 'event', event: frame.event };
        case 'bye':
        case 'ping':
          return { kind: frame.type };
        default: {
          const { type } = Object(value) as { type?: unknown };
          return { kind: 'malformed', type: typeof type === 'string' ? type : '(no type)' };
        }
      }
    },
  };
}

/** A translator that has seen what is written. The message has the id that the session gave it. */
export function createWrittenTranslator(
  { messageId, errorText }: Prompt,
  written: readonly Chunk[],
): Translator<unknown> {
  const translator = createChunkTranslator({
    messageId,
    isMessageIdFixed: true,
    ...(errorText && { errorText }),
  });
  for (const chunk of written) translator.push(chunk);
  return translator;
}
