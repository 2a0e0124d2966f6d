import { createMessageAccumulator } from '../../core/accumulator.ts';
import { toShownText } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import type { MessageMetadata, TurnOutcome, Usage } from '../../core/outcome.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import {
  countSkipped,
  type Logger,
  type Translator,
  type TranslatorStats,
} from '../../core/translator.ts';
import type { OpenCodeEvent, OpenCodeQuestionData, OpenCodeToolState } from './events.ts';
import { toFailureText } from './failures.ts';
import { createOpenCodeReader, type OpenCodeSignal } from './read-events.ts';
import type { OpenCodeRequest } from './requests.ts';

export interface OpenCodeOptions {
  /** Default: made up. */
  messageId?: string;
  /** Only events of this session are read. Default: the session of the first message. */
  sessionId?: string;
  /** The last message of the turns before: nothing up to it is part of this one. */
  after?: string;
  /** Default true. */
  sendReasoning?: boolean;
  /** What a person is shown of an error. Default: its own message, without stack and paths. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
}

type Mapping = {
  [Kind in OpenCodeSignal['kind']]: (signal: Extract<OpenCodeSignal, { kind: Kind }>) => void;
};

/** Tools run beside the agent, never in the client. */
const FLAGS = { providerExecuted: true };

/**
 * OpenCode events → chunks, for one turn of one session.
 *
 * Owns the questions and the sums of the turn. What the events mean is the reader's; part ids and
 * order are the accumulator's.
 */
export function createOpenCodeTranslator(options: OpenCodeOptions = {}): Translator<OpenCodeEvent> {
  const accumulator = createMessageAccumulator(options.messageId ?? createId());
  const logger = toSafeLogger(options.logger);
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  const questions = new Map<string, OpenCodeQuestionData[]>();
  /** The calls whose input is not known yet. */
  const begun = new Map<string, string>();
  const metadata: MessageMetadata = {};
  let blockPart: string | undefined;
  let isInStep = false;

  const reader = createOpenCodeReader({
    sessionId: options.sessionId,
    after: options.after,
    // The table pairs each kind with its own signal; TypeScript cannot follow the pairing.
    signal: (signal) => mapping[signal.kind as 'step'](signal as { kind: 'step' }),
  });

  const mapping: Mapping = {
    text: write,
    reasoning: (signal) => {
      if (options.sendReasoning !== false) write(signal);
    },
    step() {
      accumulator.startStep();
      isInStep = true;
    },
    tool: ({ callId, toolName, state }) => updateTool(callId, toolName, state),
    file({ url, mediaType }) {
      ensureStep();
      accumulator.part({ type: 'file', url, mediaType });
    },
    usage: ({ usage, costUsd }) => addUsage(usage, costUsd),
    asked: ({ request }) => ask(request),
    replied: ({ requestId, answers }) => settle(requestId, answers),
    busy: () => accumulator.start(),
    retry({ message }) {
      const detail = toShownText(message, options.errorText);
      accumulator.data('agent-status', { status: 'thinking', detail }, { transient: true });
    },
    end({ outcome, error }) {
      end(outcome, error && toFailureText(error));
    },
  };

  function ensureStep(): void {
    if (!isInStep) accumulator.startStep();
    isInStep = true;
  }

  function write({ kind, partId, delta }: OpenCodeSignal & { kind: 'text' | 'reasoning' }): void {
    ensureStep();
    if (blockPart !== partId) accumulator.closeBlock();
    blockPart = partId;
    accumulator.delta(kind, delta);
  }

  function updateTool(callId: string, toolName: string, state: OpenCodeToolState): void {
    ensureStep();
    if (state.status === 'pending') {
      if (begun.has(callId)) return;
      begun.set(callId, toolName);
      accumulator.toolInputStart(callId, toolName, FLAGS);
      // Renderers of tool parts fail while there is no input at all.
      accumulator.toolInputDelta(callId, '{');
      return;
    }
    begun.delete(callId);
    accumulator.toolInput(callId, toolName, state.input ?? {}, FLAGS);
    if (state.status === 'error') accumulator.toolError(callId, state.error || 'The tool failed.');
    if (state.status !== 'completed') return;
    accumulator.toolOutput(callId, state.output);
    for (const { url, mime } of state.attachments ?? []) {
      accumulator.part({ type: 'file', url, mediaType: mime });
    }
  }

  function addUsage(usage: Usage, costUsd: number): void {
    metadata.usage ??= {};
    for (const [key, tokens] of Object.entries(usage) as [keyof Usage, number][]) {
      metadata.usage[key] = (metadata.usage[key] ?? 0) + tokens;
    }
    if (costUsd > 0) metadata.totalCostUsd = (metadata.totalCostUsd ?? 0) + costUsd;
  }

  function ask({ requestId, questions: asked }: OpenCodeRequest): void {
    ensureStep();
    const open = asked.map((question) => ({ ...question, status: 'open' as const }));
    questions.set(requestId, open);
    for (const question of open) show(question);
  }

  function show(question: OpenCodeQuestionData): void {
    accumulator.data('question', question, { id: question.questionId });
  }

  function settle(requestId: string, answers?: string[]): void {
    for (const [at, question] of (questions.get(requestId) ?? []).entries()) {
      const answer = answers?.[at];
      show(
        answers
          ? { ...question, status: 'answered', ...(answer !== undefined && { answer }) }
          : { ...question, status: 'withdrawn' },
      );
    }
    questions.delete(requestId);
  }

  function end(outcome: TurnOutcome | undefined, error?: unknown): void {
    if (accumulator.isEnded) return;
    // No more input comes: what a call has is all it gets, and nobody reads half of a JSON text.
    for (const [callId, name] of begun) accumulator.toolInput(callId, name, {}, FLAGS);
    if (outcome?.status !== 'paused') for (const id of [...questions.keys()]) settle(id);
    const cause = error ?? (outcome?.status === 'failed' ? outcome.message : undefined);
    const text = cause === undefined ? undefined : toShownText(cause, options.errorText);
    accumulator.end(outcome, metadata, text);
  }

  function count(kind: keyof TranslatorStats, type: string): void {
    const key = countSkipped(stats, kind, type);
    if (key) logger?.warn(`${kind} OpenCode event`, { type: key });
  }

  return {
    stats,
    get ended() {
      return accumulator.isEnded;
    },
    push(event) {
      if (accumulator.isEnded) return [];
      const { repairs } = accumulator;
      let type = '(no type)';
      let problem: keyof TranslatorStats | undefined = 'malformed';
      try {
        const given = (event as { type?: unknown } | null | undefined)?.type;
        if (typeof given === 'string') type = given;
        problem = reader.read(event);
        if (accumulator.repairs !== repairs) problem = 'malformed';
      } catch {
        // A proxy or a getter of somebody else's event threw: the rest of the turn is still good.
      }
      if (problem) count(problem, type);
      return accumulator.take();
    },
    end(outcome) {
      end(outcome);
      return accumulator.take();
    },
  };
}
