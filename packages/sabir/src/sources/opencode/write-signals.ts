import { createMessageAccumulator } from '../../core/accumulator.ts';
import { toShownText } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import type { MessageMetadata, TurnOutcome, Usage } from '../../core/outcome.ts';
import type { OpenCodeQuestionData, OpenCodeToolState } from './events.ts';
import { toFailureText } from './failures.ts';
import type { OpenCodeSignal } from './read-events.ts';
import type { OpenCodeRequest } from './requests.ts';

export interface SignalWriterOptions {
  /** Default: made up. */
  messageId?: string;
  /** Default true. */
  sendReasoning?: boolean;
  /** What a person is shown of an error. Default: its own message, without stack and paths. */
  errorText?: (error: unknown) => string;
}

type Mapping = {
  [Kind in OpenCodeSignal['kind']]: (signal: Extract<OpenCodeSignal, { kind: Kind }>) => void;
};

/** Tools run beside the agent, never in the client. */
const FLAGS = { providerExecuted: true };

/**
 * Signals of a turn → chunks. Owns the questions and the sums of the turn. What the events mean is the
 * reader's; part ids and order are the accumulator's.
 */
export function createSignalWriter(options: SignalWriterOptions) {
  const accumulator = createMessageAccumulator(options.messageId ?? createId());
  const questions = new Map<string, OpenCodeQuestionData[]>();
  /** The calls whose input is not known yet. */
  const begun = new Map<string, string>();
  const metadata: MessageMetadata = {};
  let blockPart: string | undefined;
  let isInStep = false;

  const mapping: Mapping = {
    text: say,
    reasoning: (signal) => {
      if (options.sendReasoning !== false) say(signal);
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

  function say({ kind, partId, delta }: OpenCodeSignal & { kind: 'text' | 'reasoning' }): void {
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

  return {
    get isEnded() {
      return accumulator.isEnded;
    },
    /** How many values had to be changed so that JSON can carry them. */
    get repairs() {
      return accumulator.repairs;
    },
    /** What the turn has used so far. */
    get metadata(): MessageMetadata {
      return structuredClone(metadata);
    },
    // The table pairs each kind with its own signal; TypeScript cannot follow the pairing.
    write: (signal: OpenCodeSignal) => mapping[signal.kind as 'step'](signal as { kind: 'step' }),
    end: (outcome?: TurnOutcome) => end(outcome),
    /** The chunks since the last call. */
    take: () => accumulator.take(),
  };
}
