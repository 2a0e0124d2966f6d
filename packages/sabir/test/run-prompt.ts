/** Runs a prompt of an agent, as a gateway or a runner does, and keeps what came of it. */
import { expect } from 'vitest';
import type { Chunk, TextDeltaChunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { AnyToolPart } from '../src/core/fold-tools.ts';
import type { UIMessage } from '../src/core/message.ts';
import type { MessageMetadata, TurnOutcome } from '../src/core/outcome.ts';
import { verifyChunks } from '../src/core/verify.ts';
import { type AgentRunOptions, runAgent } from '../src/sources/ai-sdk/agent-run.ts';
import type { Agent, AgentFunction, AgentPrompt, SessionEvent } from '../src/turns/agent.ts';
import { outcomeOf } from '../src/turns/outcome-of.ts';
import type { Prompt } from '../src/turns/upstream.ts';
import { promptOf as upstreamPromptOf } from './upstream-turn.ts';

export { until } from './upstream-turn.ts';

export type ShownQuestion = {
  questionId: string;
  text: string;
  options?: string[];
  toolCallId?: string;
  status: string;
  [field: string]: unknown;
};

export type PromptRun = {
  /** As viewers get them. */
  readonly chunks: Chunk[];
  readonly message: UIMessage;
  readonly metadata: MessageMetadata;
  readonly text: string;
  readonly reasoning: string;
  readonly tools: AnyToolPart[];
  /** As they were asked. */
  readonly questions: ShownQuestion[];
  readonly emitted: SessionEvent[];
  /** Answers the oldest question that is open. */
  answer(answer: unknown): void;
  expire(): void;
  /** Sends a message into the turn. */
  steer(text: string, id?: string): Promise<void>;
  abort(): void;
  readonly outcome: TurnOutcome | undefined;
  /** Resolves when the agent has ended; rejects with what its turn failed with. */
  readonly done: Promise<void>;
};

type Given = Partial<Prompt> & {
  /** Called with each chunk as it comes. */
  on?: (chunk: Chunk) => void;
};

/** An agent that has not ended in this time is not going to. */
const PATIENCE_MS = 10_000;

export function runPrompt(
  given: Agent | AgentFunction,
  text: string,
  { on, ...more }: Given = {},
  options: AgentRunOptions = {},
): PromptRun {
  const agent = typeof given === 'function' ? { prompt: given } : given;
  const chunks: Chunk[] = [];
  const questions: ShownQuestion[] = [];
  const open: string[] = [];
  const emitted: SessionEvent[] = [];
  let outcome: TurnOutcome | undefined;

  function keep(told: Chunk[]): void {
    for (const chunk of told) {
      chunks.push(chunk);
      if (chunk.type === 'data-question') see(chunk.data as ShownQuestion);
      on?.(chunk);
    }
  }

  function see(question: ShownQuestion): void {
    const at = open.indexOf(question.questionId);
    if (question.status !== 'open') open.splice(at, at < 0 ? 0 : 1);
    else if (at < 0) {
      open.push(question.questionId);
      questions.push(question);
    }
  }

  const run = runAgent(
    agent,
    upstreamPromptOf(text, more),
    {
      event(event) {
        keep(run.translator.push(event));
        if (run.translator.ended) outcome ??= outcomeOf(chunks);
      },
      close(given) {
        outcome = given;
        keep(run.translator.end(given));
      },
    },
    { emit: (event) => void emitted.push(event), ...options },
  );

  async function end(): Promise<void> {
    await withPatience(run.ended);
    expect(verifyChunks(chunks, { aiSdk: 7 })).toEqual([]);
    if (outcome?.status !== 'failed') return;
    throw Object.assign(new Error(outcome.message), { code: outcome.code });
  }

  const fold = () => foldChunks(chunks);
  const written = (type: 'text' | 'reasoning') =>
    chunks.map((chunk) => (isDelta(chunk, type) ? chunk.delta : '')).join('');
  return {
    chunks,
    questions,
    emitted,
    get message() {
      return fold();
    },
    get metadata() {
      return (fold().metadata ?? {}) as MessageMetadata;
    },
    get text() {
      return written('text');
    },
    get reasoning() {
      return written('reasoning');
    },
    get tools() {
      return fold().parts.flatMap((part) => ('toolCallId' in part ? [part as AnyToolPart] : []));
    },
    answer: (answer) => run.answer({ type: 'answer', questionId: open[0] ?? '', answer }),
    expire: () => run.expire?.(open[0] ?? ''),
    steer: async (text, id = text) => run.steer?.({ type: 'steer', id, text, attachments: [] }),
    abort: () => run.stop(),
    get outcome() {
      return outcome;
    },
    get done() {
      return end();
    },
  };
}

function isDelta(chunk: Chunk, type: 'text' | 'reasoning'): chunk is TextDeltaChunk {
  return chunk.type === `${type}-delta`;
}

async function withPatience(promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The agent never ended.')), PATIENCE_MS);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A prompt for an agent that is called without anything of ours in between. */
export function promptOf(text: string, more: Partial<AgentPrompt> = {}): AgentPrompt {
  const never = () => new Promise<never>(() => undefined);
  return {
    ...upstreamPromptOf(text),
    channel: { channelType: 'web', channelId: 'default' },
    trigger: 'submit-message',
    isRestored: false,
    signal: new AbortController().signal,
    ask: never,
    answer: never,
    toolOutput: never,
    emit: () => undefined,
    ...more,
  };
}
