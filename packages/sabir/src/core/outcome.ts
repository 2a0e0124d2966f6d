import type { FinishReason } from './chunks.ts';

export type Usage = {
  inputTokens?: number;
  outputTokens?: number;
  totalTokens?: number;
  reasoningTokens?: number;
  cachedInputTokens?: number;
};

/** How a turn ended. Every turn ends with exactly one, and every viewer learns which. */
export type TurnOutcome =
  | { status: 'finished'; finishReason?: FinishReason; usage?: Usage }
  /** Somebody asked for it: never shown as an error. */
  | { status: 'stopped'; reason?: string }
  | { status: 'failed'; code?: string; message?: string }
  /** May continue with the next message. */
  | { status: 'paused' }
  /** The producer vanished. */
  | { status: 'lost' };

/** What every source leaves in the message's metadata when a turn ends. */
export type MessageMetadata = {
  outcome?: TurnOutcome['status'];
  reason?: string;
  code?: string;
  usage?: Usage;
  totalCostUsd?: number;
  flowName?: string;
};
