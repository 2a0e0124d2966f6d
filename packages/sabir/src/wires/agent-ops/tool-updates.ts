import { toJsonSafe } from '../../core/json.ts';
import type { Loose } from '../../core/loose.ts';
import type { Emit } from './events.ts';

/** How far a call is. It never goes back. */
const NAMED = 1;
const CALLED = 2;
const OVER = 3;

type Call = { name: string; stage: number; step: number; preliminary?: { result: unknown } };
type End = { result: unknown } | { error: string };

/** The accumulator closes a call that gave no result with the same text. */
export const NO_RESULT = 'The tool gave no result.';
const NO_TEXT = 'The tool failed.';
export const NOT_APPROVED = 'It was not approved.';
const STEP_AGAIN = 'The step was begun again.';

type ToolUpdatesOptions = {
  emit: Emit;
  /** A call is named or called. */
  onCall(toolName: string): void;
  /** Whether people were asked about the call and have neither answered nor let the time run out. */
  isUnanswered(callId: string): boolean;
};

/** The tool calls of a turn: owns how far each of them is. */
export function createToolUpdates({ emit, onCall, isUnanswered }: ToolUpdatesOptions) {
  const calls = new Map<string, Call>();
  /** The call of each approval, and why people refused a call. */
  const approvals = new Map<string, string>();
  const refusals = new Map<string, string>();
  let step = 0;

  function begin(callId: string, name: string): Call {
    const call = calls.get(callId) ?? { name, stage: 0, step };
    calls.set(callId, call);
    return call;
  }

  function end(callId: string, call: Call, how: End): void {
    if (call.stage === OVER) return;
    call.stage = OVER;
    // To readers of V2 the end of a call answers its question. They close this call with the turn.
    if ('error' in how && how.error === NO_RESULT && isUnanswered(callId)) return;
    const status = 'error' in how ? 'error' : 'completed';
    emit('message.part.tool-update', { callId, toolName: call.name, status, ...how });
  }

  function readInput(type: string, chunk: Loose): void {
    const callId = chunk.toolCallId as string;
    const call = begin(callId, chunk.toolName as string);
    const { name: toolName } = call;
    if (call.stage === OVER) return;
    if (type === 'tool-input-start') {
      if (call.stage >= NAMED) return;
      call.stage = NAMED;
      onCall(toolName);
      emit('message.part.tool-update', { callId, toolName, status: 'pending' });
      return;
    }
    // A call without arguments has not begun for readers of V2.
    const args = toJsonSafe(chunk.input) ?? {};
    if (type === 'tool-input-available') {
      call.stage = CALLED;
      onCall(toolName);
      emit('message.part.tool-update', { callId, toolName, status: 'running', args });
    } else {
      call.stage = OVER;
      const error = (chunk.errorText as string) || NO_TEXT;
      emit('message.part.tool-update', { callId, toolName, status: 'error', args, error });
    }
  }

  function readDelta(callId: string, delta: string): void {
    const call = calls.get(callId);
    if (call?.stage !== NAMED || delta === '') return;
    emit('message.part.tool-input-delta', { callId, toolName: call.name, delta });
  }

  function readOutput(type: string, chunk: Loose): void {
    const callId = chunk.toolCallId as string;
    const call = calls.get(callId);
    if (!call || call.stage === OVER) return;
    if (type === 'tool-output-error') {
      end(callId, call, { error: (chunk.errorText as string) || NO_TEXT });
    } else if (type === 'tool-output-denied') {
      end(callId, call, { error: refusals.get(callId) || NOT_APPROVED });
    } else if (chunk.preliminary !== true) {
      end(callId, call, { result: toJsonSafe(chunk.output) });
    } else {
      call.stage = CALLED;
      call.preliminary = { result: toJsonSafe(chunk.output) };
      const { name: toolName, preliminary } = call;
      emit('message.part.tool-update', { callId, toolName, status: 'running', ...preliminary });
    }
  }

  return {
    push(type: string, chunk: Loose): void {
      if (type === 'tool-input-delta') {
        readDelta(chunk.toolCallId as string, chunk.inputTextDelta as string);
      } else if (type.startsWith('tool-input-')) readInput(type, chunk);
      else if (type.startsWith('tool-output-')) readOutput(type, chunk);
      else if (type === 'tool-approval-request') {
        approvals.set(chunk.approvalId as string, chunk.toolCallId as string);
      } else if (type === 'tool-approval-response' && typeof chunk.reason === 'string') {
        const callId = approvals.get(chunk.approvalId as string);
        if (callId !== undefined) refusals.set(callId, chunk.reason);
      }
    },
    startStep(): void {
      step++;
    },
    /** V2 cannot take back a part that was sent: the calls of the step end. */
    resetStep(): void {
      for (const [callId, call] of calls) {
        if (call.step === step) end(callId, call, { error: STEP_AGAIN });
      }
    },
    /** The turn is over: no call stays open. */
    endAll(): void {
      for (const [callId, call] of calls) {
        end(callId, call, call.preliminary ?? { error: NO_RESULT });
      }
    },
  };
}
