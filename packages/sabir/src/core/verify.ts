/**
 * What a stream of chunks must not do to a real AI SDK client.
 *
 * A verifier owns a model of the client's message: which parts are open, which tool calls there
 * are and in which step. It never throws. Every rule is held against the real clients in
 * `verify.test.ts`.
 */

import { type Target, targetOf } from './chunk-shapes.ts';
import type { AiSdkMajor, Chunk } from './chunks.ts';
import { isObject, type Loose } from './loose.ts';
import type { UIMessage } from './message.ts';
import { SHAPE_VIOLATION_CODES, verifyShape } from './verify-shape.ts';

export const VIOLATION_CODES = [
  ...SHAPE_VIOLATION_CODES,
  'no-start',
  'no-message-id',
  'second-start',
  'after-error',
  'after-finish',
  'no-finish',
  'metadata-not-object',
  'part-not-open',
  'part-already-open',
  'part-across-step',
  'part-left-open',
  'tool-unknown',
  'tool-delta-without-start',
  'tool-delta-late',
  'tool-across-step',
  'tool-reused',
  'tool-already-ended',
  'tool-dynamic-mismatch',
  'tool-name-mismatch',
  'tool-left-open',
  'approval-unknown',
  'approval-reused',
] as const;
export type ViolationCode = (typeof VIOLATION_CODES)[number];
type Report = (code: ViolationCode, message: string, index?: number) => void;

/** `index` is the chunk's place; what is missing at the end has the place after the last one. */
export type Violation = { code: ViolationCode; index: number; message: string };

export type VerifyOptions = {
  /** The client to satisfy; 6 means 6.0.9 as well as the latest 6. Without it: all of them. */
  aiSdk?: AiSdkMajor;
  /** The message that the stream goes on with, as after an approval: its tool calls are known. */
  message?: UIMessage;
};

export type Verifier = { push(chunk: Chunk): Violation[]; end(): Violation[] };

/** Where in the stream we are; a step begins with `start-step`, as it does for the client. */
type Place = { index: number; step: number };

function trackParts(kind: 'text' | 'reasoning', place: Readonly<Place>, report: Report) {
  const open = new Map<string, Place>();
  return {
    on(action: string, id: unknown): void {
      if (typeof id !== 'string') return;
      if (action === 'start') {
        if (open.has(id)) report('part-already-open', `${kind} "${id}" is open and never ends now`);
        open.set(id, { ...place });
      } else if (!open.has(id)) {
        report('part-not-open', `${kind}-${action} for "${id}", which is not open`);
      } else if (action === 'end') open.delete(id);
    },
    /** The client lets go of all of them: one that stays in the message can never be ended. */
    release(where: string, goesWithStep: boolean): void {
      for (const [id, opened] of open) {
        if (goesWithStep && opened.step === place.step) continue;
        report('part-across-step', `${kind} "${id}" is still open at ${where}`);
      }
      open.clear();
    },
    end(): void {
      for (const [id, { index }] of open) {
        report('part-left-open', `${kind} "${id}" is never ended`, index);
      }
    },
  };
}

type CallState = 'streaming' | 'open' | 'approval-requested' | 'input-error' | 'ended';
type Call = Place & {
  id: string;
  name: unknown;
  dynamic: boolean;
  state: CallState;
  approvalId?: unknown;
};

const STATE_AFTER: Record<string, CallState> = {
  'tool-input-start': 'streaming',
  'tool-input-available': 'open',
  'tool-input-error': 'input-error',
};
const STATE_OF_PART: Record<string, CallState> = {
  'input-streaming': 'streaming',
  'input-available': 'open',
  'approval-requested': 'approval-requested',
  'approval-responded': 'open',
};

function trackTools(target: Target, place: Readonly<Place>, report: Report) {
  /** The client's tool parts in their order; an id may have several, of which the last counts. */
  const parts: Call[] = [];
  const calls = new Map<string, Call>();
  /** Calls whose input text the client keeps; it never forgets one by itself. */
  const appendable = new Set<string>();
  const hasEnded = (call: Call) => call.state === 'ended' || call.state === 'input-error';
  const add = (id: string, call: Call) => {
    parts.push(call);
    calls.set(id, call);
  };

  /** The part that an input chunk goes into, if it is not a new one. */
  function partFor(id: string): Call | undefined {
    const call = calls.get(id);
    if (call === undefined) return undefined;
    const here = call.step === place.step;
    if (hasEnded(call)) {
      // 6.0.9 looks for the call in the whole message, the others in the current step.
      if (here || target.strict) report('tool-reused', `call "${id}" has ended and is overwritten`);
      return undefined;
    }
    if (here) return call;
    report('tool-across-step', `call "${id}" began in an earlier step and becomes a second part`);
    return undefined;
  }

  return {
    seed(message: UIMessage): void {
      const given = Array.isArray(message.parts) ? (message.parts as Loose[]).filter(isObject) : [];
      const lastStep = given.findLastIndex((part) => part.type === 'step-start');
      for (const [at, part] of given.entries()) {
        const { type, state, toolCallId: id } = part;
        if (typeof id !== 'string' || typeof type !== 'string') continue;
        const here = at > lastStep;
        if (here && state === 'input-streaming' && !target.strict) appendable.add(id);
        const dynamic = type === 'dynamic-tool';
        add(id, {
          id,
          index: 0,
          step: here ? place.step : place.step - 1,
          name: dynamic ? part.toolName : type.slice('tool-'.length),
          dynamic,
          approvalId: isObject(part.approval) ? part.approval.id : undefined,
          state: STATE_OF_PART[state as string] ?? (part.preliminary === true ? 'open' : 'ended'),
        });
      }
    },

    input(type: string, id: string, wire: Loose): void {
      const call = partFor(id);
      let dynamic = wire.dynamic === true;
      if (call !== undefined && call.dynamic !== dynamic) {
        if (type === 'tool-input-error' && target.oldest === 7) dynamic = call.dynamic;
        else report('tool-dynamic-mismatch', `call "${id}" changes its dynamic flag`);
      } else if (call !== undefined && !dynamic && call.name !== wire.toolName) {
        if (target.oldest !== 7) {
          report('tool-name-mismatch', `call "${id}" changes its name, its part does not`);
        }
      }
      if (type === 'tool-input-start') appendable.add(id);
      const now = { name: wire.toolName, dynamic, state: STATE_AFTER[type] ?? 'open' };
      if (call === undefined) add(id, { id, ...place, ...now });
      else Object.assign(call, now);
    },

    delta(id: string): void {
      const call = calls.get(id);
      if (call === undefined || !appendable.has(id)) {
        report('tool-delta-without-start', `tool-input-delta for "${id}" without its start`);
      } else if (call.state !== 'streaming') {
        report('tool-delta-late', `tool-input-delta throws call "${id}" back to input-streaming`);
      } else if (partFor(id) === undefined) call.step = place.step;
    },

    output(type: string, id: string, wire: Loose): void {
      const call = calls.get(id);
      if (call === undefined) {
        report('tool-unknown', `${type} for the unknown call "${id}"`);
        return;
      }
      const answers = type === 'tool-output-available' || type === 'tool-output-error';
      if (answers && target.oldest === 5 && call.dynamic !== (wire.dynamic === true)) {
        report('tool-dynamic-mismatch', `${type} for "${id}" lacks the dynamic flag of its call`);
      }
      // The AI SDK's own servers follow a tool-input-error with a tool-output-error.
      const confirms = call.state === 'input-error' && type === 'tool-output-error';
      if (hasEnded(call) && !confirms) {
        report('tool-already-ended', `${type} overwrites how call "${id}" ended`);
      }
      if (type === 'tool-approval-request') {
        const waits = (other: Call) =>
          other !== call &&
          other.state === 'approval-requested' &&
          other.approvalId === wire.approvalId;
        if (parts.some(waits)) report('approval-reused', 'another call waits for this approval id');
        call.state = 'approval-requested';
        call.approvalId = wire.approvalId;
      } else call.state = wire.preliminary === true ? 'open' : 'ended';
    },

    approvalResponse(id: unknown): void {
      const call = parts.find((candidate) => candidate.approvalId === id);
      if (call === undefined) {
        report('approval-unknown', 'tool-approval-response to a request that was not made');
      } else if (hasEnded(call)) {
        report('tool-already-ended', 'tool-approval-response for a call that has ended');
      } else call.state = 'open';
    },

    reset(): void {
      appendable.clear();
      const kept = parts.filter((call) => call.step !== place.step);
      parts.length = 0;
      calls.clear();
      for (const call of kept) add(call.id, call);
    },

    end(): void {
      for (const { id, state, index } of calls.values()) {
        if (state !== 'streaming' && state !== 'open') continue;
        report('tool-left-open', `call "${id}" never gets its output`, index);
      }
    },
  };
}

/**
 * Watches a stream while it is sent: `push` tells what is wrong with a chunk, `end` what is
 * missing.
 *
 * ```ts
 * const verifier = createVerifier({ aiSdk: 6 });
 * for await (const chunk of stream) warn(verifier.push(chunk));
 * warn(verifier.end());
 * ```
 */
export function createVerifier(options?: VerifyOptions): Verifier {
  const target = targetOf(options?.aiSdk);
  const continued = isObject(options?.message) ? options.message : undefined;
  const place: Place = { index: -1, step: 0 };
  let found: Violation[] = [];
  const report: Report = (code, message, index = place.index) => {
    found.push({ code, index, message });
  };
  const text = trackParts('text', place, report);
  const reasoning = trackParts('reasoning', place, report);
  const tools = trackTools(target, place, report);

  let begun = false;
  let started = false;
  let failed = false;
  let finished = false;
  let ended = false;
  let metadata: unknown = continued?.metadata;

  function onStart(id: unknown): void {
    if (id === undefined) {
      report('no-message-id', 'the client invents an id, and a resume duplicates the message');
    }
    if (started) report('second-start', 'a second start copies the message or renames it');
    else if (continued !== undefined && id !== continued.id) {
      report('second-start', `the message to go on with is "${continued.id}"`);
    }
    started = true;
  }

  function onMetadata(value: unknown): void {
    if (value == null) return;
    if (metadata != null && !(isObject(metadata) && isObject(value))) {
      report('metadata-not-object', 'metadata that is not an object cannot be merged');
    } else metadata = value;
  }

  function onChunk(type: string, wire: Loose): void {
    if (type.startsWith('text-')) text.on(type.slice(5), wire.id);
    else if (type === 'reasoning-file') return;
    else if (type.startsWith('reasoning-')) reasoning.on(type.slice(10), wire.id);
    else if (type === 'tool-approval-response') tools.approvalResponse(wire.approvalId);
    else if (type.startsWith('tool-')) {
      const id = wire.toolCallId;
      if (typeof id !== 'string') return;
      if (type === 'tool-input-delta') tools.delta(id);
      else if (type in STATE_AFTER) tools.input(type, id, wire);
      else tools.output(type, id, wire);
    } else if (type === 'start-step') place.step++;
    else if (type === 'finish-step' && target.oldest !== 7) {
      text.release(type, false);
      reasoning.release(type, false);
    } else if (type === 'reset-step') {
      text.release(type, true);
      reasoning.release(type, true);
      tools.reset();
    } else if (type === 'error') failed = true;
    else if (type === 'start' || type === 'finish' || type === 'message-metadata') {
      if (type === 'start') onStart(wire.messageId);
      onMetadata(wire.messageMetadata);
    }
  }

  function verify(chunk: unknown): void {
    const read = verifyShape(chunk, target, report);
    if (read === undefined) return;
    const { type, wire } = read;
    if (!begun && type !== 'start') report('no-start', `the stream begins with ${type}`);
    begun = true;
    if (finished) report('after-finish', `${type} after finish`);
    else if (failed && type !== 'finish') {
      report('after-error', `${type} after error, where clients stop reading`);
    }
    if (type === 'finish') finished = true;
    if (!failed) onChunk(type, wire);
  }

  if (continued !== undefined) tools.seed(continued);

  return {
    push(chunk) {
      place.index++;
      found = [];
      try {
        verify(chunk);
      } catch (error) {
        report('not-json', `cannot be written as JSON: ${reasonOf(error)}`);
      }
      return found;
    },
    end() {
      found = [];
      if (ended) return found;
      ended = true;
      const after = place.index + 1;
      if (!begun) report('no-start', 'the stream has no start', after);
      if (!finished) report('no-finish', 'the stream ends without finish', after);
      text.end();
      reasoning.end();
      tools.end();
      return found;
    },
  };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'it throws when it is read';
}

/** Verifies a whole stream. No violation means: every client of the target folds it as meant. */
export function verifyChunks(chunks: Iterable<Chunk>, options?: VerifyOptions): Violation[] {
  const verifier = createVerifier(options);
  const violations: Violation[] = [];
  let index = 0;
  try {
    for (const chunk of chunks) {
      violations.push(...verifier.push(chunk));
      index++;
    }
  } catch (error) {
    violations.push({ code: 'not-a-chunk', index, message: `unreadable: ${reasonOf(error)}` });
  }
  violations.push(...verifier.end());
  return violations;
}
