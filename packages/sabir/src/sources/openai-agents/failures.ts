import type { FinishReason } from '../../core/chunks.ts';
import {
  type ErrorKind,
  INPUT_BLOCKED,
  MAX_TURNS,
  MODEL_TIMEOUT,
  OUTPUT_BLOCKED,
  RUN_FAILED,
  TOOL_BLOCKED,
  toShownText,
} from '../../core/errors.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { isLoose, textOf } from './events.ts';

/** The SDK's errors by their names: two copies of it in one program have two classes of each. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  MaxTurnsExceededError: MAX_TURNS,
  InputGuardrailTripwireTriggered: INPUT_BLOCKED,
  OutputGuardrailTripwireTriggered: OUTPUT_BLOCKED,
  ToolInputGuardrailTripwireTriggered: TOOL_BLOCKED,
  ToolOutputGuardrailTripwireTriggered: TOOL_BLOCKED,
  ModelTimeoutError: MODEL_TIMEOUT,
};

export type Failure = {
  outcome: TurnOutcome;
  /** What the model said instead of an answer. */
  refusal?: string;
};

/**
 * How a run ended that threw. The SDK throws also where a model just said no, or had to stop: those
 * are ends with a reason, not failures.
 */
export function readFailure(
  thrown: unknown,
  {
    cutShort,
    errorText,
  }: {
    /** Why the response that was being read stopped before its end. */
    cutShort: FinishReason | undefined;
    errorText: ((error: unknown) => string) | undefined;
  },
): Failure {
  const error = unwrap(thrown);
  const name = nameOfError(error);
  if (name === 'AbortError') return { outcome: { status: 'stopped' } };
  if (name === 'ModelRefusalError') {
    const refusal = textOf((error as { refusal?: unknown }).refusal);
    return {
      outcome: { status: 'finished', finishReason: 'content-filter' },
      ...(refusal && { refusal }),
    };
  }
  if (cutShort && name === 'ModelBehaviorError') {
    return { outcome: { status: 'finished', finishReason: cutShort } };
  }
  const kind = name && Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  // A guardrail's own message quotes what tripped it, which is nothing for the person's eyes.
  const message = kind
    ? errorText
      ? toShownText(error, errorText)
      : kind.userMessage
    : toShownText(error, errorText);
  return { outcome: { status: 'failed', code: (kind ?? RUN_FAILED).code, message } };
}

/** What a tool throws is wrapped where it ends the run. */
function unwrap(error: unknown): unknown {
  if (nameOfError(error) !== 'ToolCallError') return error;
  return (error as { error?: unknown }).error ?? error;
}

function nameOfError(error: unknown): string | undefined {
  try {
    return isLoose(error) ? textOf(error.name) : undefined;
  } catch {
    // Whatever was thrown cannot even be looked at.
    return undefined;
  }
}
