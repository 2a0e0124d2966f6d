import type { MessageAccumulator } from '../../core/accumulator.ts';
import type { ToolCallOptions } from '../../core/accumulator-core.ts';
import { toErrorText } from '../../core/errors.ts';
import { toJsonSafe } from '../../core/json.ts';
import type { ToolCallState } from './events.ts';

/** The name of the agent's own tool for asking a person. */
export const QUESTION_TOOL = 'question';

/** Tools run beside the agent, never in the client. */
const RUNS_WITH_THE_AGENT: ToolCallOptions = { providerExecuted: true };

/** How far a call is: begun, its input known, over. It never goes back. */
const BEGUN = 1;
export const CALLED = 2;
export const OVER = 3;
const STAGES: Readonly<Record<string, number>> = {
  pending: BEGUN,
  running: CALLED,
  completed: OVER,
  error: OVER,
};

type Call = {
  name: string;
  flags: ToolCallOptions;
  stage: number;
  /** What streams in as its input: what is no object cannot follow the brace that was said. */
  input?: 'object' | 'other';
};
type InputPiece = { callId: string; toolName?: string; delta: string };
export type Calls = ReturnType<typeof createCalls>;

function stageOf({ status, args }: Pick<ToolCallState, 'status' | 'args'>): number {
  // What runs without arguments is only about to.
  return status === 'running' && args == null ? BEGUN : (STAGES[status] ?? BEGUN);
}

export function isCallState(value: { callId?: unknown; status?: unknown }): boolean {
  const { callId, status } = value;
  if (typeof callId !== 'string' || callId === '') return false;
  return typeof status === 'string' && Object.hasOwn(STAGES, status);
}

/**
 * The tool calls of a turn, told once or many times: in the V2 dialect every change, in the other
 * the whole list at every change of one. Owns how far each is, so that only what is new is said.
 */
export function createCalls(
  accumulator: MessageAccumulator,
  options: {
    /** Clients may answer a call named `question`. */
    hasAnswers: boolean;
    /** A call that was not known. */
    onBegin(): void;
    onChange(callId: string, name: string, stage: number): void;
  },
) {
  const calls = new Map<string, Call>();

  /**
   * A client answers an approval only if it believes that the tool is its own: AI SDK 6.0.9 looks
   * at `providerExecuted`. Where it stayed so after the answer, a client could take the message
   * for one it has to send again; so the flag is put right with the output.
   */
  function flagsFor(name: string): ToolCallOptions {
    const isAnswerable = options.hasAnswers && name === QUESTION_TOOL;
    return isAnswerable ? { providerExecuted: false } : RUNS_WITH_THE_AGENT;
  }

  function begin(callId: string, name: string): Call {
    const call = { name, flags: flagsFor(name), stage: 0 };
    calls.set(callId, call);
    options.onBegin();
    return call;
  }

  function update({ callId, toolName, status, args, result, error }: ToolCallState): boolean {
    const known = calls.get(callId);
    if (!known && (typeof toolName !== 'string' || toolName === '')) return false;
    const call = known ?? begin(callId, toolName as string);
    const { name, flags, stage: before } = call;
    const stage = stageOf({ status, args });
    if (stage <= before) return true;
    call.stage = stage;
    if (stage === BEGUN) {
      accumulator.toolInputStart(callId, name, flags);
      // Renderers of tool parts fail while there is no input at all.
      accumulator.toolInputDelta(callId, '{');
    } else if (before < CALLED) {
      accumulator.toolInput(callId, name, args ?? {}, flags);
    }
    if (stage === OVER) {
      if (flags !== RUNS_WITH_THE_AGENT) flags.providerExecuted = true;
      if (status === 'error') accumulator.toolError(callId, toToolErrorText(error));
      else accumulator.toolOutput(callId, result);
    }
    options.onChange(callId, name, stage);
    return true;
  }

  return {
    /** False if it says nothing: a call nobody knows, without a name. */
    update,
    /** A piece of a call's input; the pieces are its JSON, of which the brace was said already. */
    writeInput({ callId, toolName, delta }: InputPiece): boolean {
      const isKnown =
        calls.has(callId) || update({ callId, status: 'pending', ...named(toolName) });
      if (!isKnown) return false;
      const call = calls.get(callId);
      if (call?.stage !== BEGUN) return true;
      let rest = delta;
      if (!call.input) {
        const text = delta.trimStart();
        if (text === '') return true;
        call.input = text.startsWith('{') ? 'object' : 'other';
        rest = text.slice(1);
      }
      if (call.input === 'object' && rest !== '') accumulator.toolInputDelta(callId, rest);
      return true;
    },
    isOver: (callId: string): boolean => calls.get(callId)?.stage === OVER,
    /** The call that was begun last and is not over. */
    lastOpen(name?: string): string | undefined {
      let last: string | undefined;
      for (const [callId, call] of calls) {
        if (call.stage < OVER && (name === undefined || call.name === name)) last = callId;
      }
      return last;
    },
    /** No more input comes: what a call has is all it gets, and nobody reads half of a JSON text. */
    completeInputs(): void {
      for (const [callId, { name, flags, stage }] of calls) {
        if (stage === BEGUN) accumulator.toolInput(callId, name, {}, flags);
      }
    },
    /** The turn is over: no client has anything to answer any more. */
    settle(): void {
      for (const { flags } of calls.values()) {
        if (flags !== RUNS_WITH_THE_AGENT) flags.providerExecuted = true;
      }
    },
  };
}

function named(toolName: string | undefined): { toolName?: string } {
  return toolName === undefined ? {} : { toolName };
}

/** A tool's error is the agent's data: it is passed on as it is. */
function toToolErrorText(error: unknown): string {
  if (typeof error === 'string' && error !== '') return error;
  const message = (error as { message?: unknown } | null | undefined)?.message;
  if (typeof message === 'string' && message !== '') return message;
  if (error === undefined || error === null || error === '') return 'The tool failed.';
  return JSON.stringify(toJsonSafe(error)) ?? toErrorText(error);
}
