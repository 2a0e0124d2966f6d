import type { Loose } from '../../core/loose.ts';

export type OpenCall = {
  toolName: string;
  parentMessageId: string;
  /** The arguments that have streamed. */
  args: string;
};

/** What an encoder remembers of its run. */
export type EncoderState = {
  isBegun: boolean;
  isEnded: boolean;
  isAborted: boolean;
  messageId: string | undefined;
  metadata: Loose;
  /** How many messages the answer has so far. */
  messages: number;
  /** The assistant message that the next tool call belongs to. */
  parent: string | undefined;
  steps: number;
  isInStep: boolean;
  /** The messages of open parts, by the ids of the parts. */
  texts: Map<string, string>;
  reasonings: Map<string, string>;
  /** The calls whose arguments are not complete. */
  calls: Map<string, OpenCall>;
  begunCalls: Set<string>;
  answeredCalls: Set<string>;
};

export function createState(isBegun = false): EncoderState {
  return {
    isBegun,
    isEnded: false,
    isAborted: false,
    messageId: undefined,
    metadata: {},
    messages: 0,
    parent: undefined,
    steps: 0,
    isInStep: false,
    texts: new Map(),
    reasonings: new Map(),
    calls: new Map(),
    begunCalls: new Set(),
    answeredCalls: new Set(),
  };
}

export function forkState(state: EncoderState): EncoderState {
  const { texts, reasonings, calls, begunCalls, answeredCalls } = state;
  return {
    ...state,
    texts: new Map(texts),
    reasonings: new Map(reasonings),
    calls: new Map(calls),
    begunCalls: new Set(begunCalls),
    answeredCalls: new Set(answeredCalls),
  };
}
