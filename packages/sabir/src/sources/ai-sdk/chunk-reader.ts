import { shapeOf, targetOf } from '../../core/chunk-shapes.ts';
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import { mergeMetadata } from '../../core/merge-metadata.ts';
import type { Usage } from '../../core/outcome.ts';
import type { DriverEvent } from '../../turns/driver.ts';

type Block = { held: string; hasEnded: boolean };
type Call = { name: string; stage: number; step: number; preliminary?: { result: unknown } };
/** A call as far as it is known, for whoever is to approve it. */
export type KnownCall = { toolName: string; input: unknown; providerExecuted: boolean };

/** How far a call is: named, called, over. It never goes back. */
const NAMED = 1;
const CALLED = 2;
const OVER = 3;

/** What is said of a call that nothing more is heard of. */
const NO_RESULT = 'No result came.';
const NO_WORDS = 'The tool failed.';
const STEP_AGAIN = 'The step was begun again.';
const NOT_APPROVED = 'It was not approved.';

/** What our own sources leave in the metadata for a gateway: a session says it in its own way. */
const OUR_METADATA = ['outcome', 'reason', 'code', 'usage'];
/** Ends that a reader of the answer should know of. */
const CUT_SHORT = ['length', 'content-filter', 'interrupted'];
/** The newest client's, which takes whatever an older one takes. */
const NEWEST = targetOf(7);

/**
 * UI message chunks → what a driver says of the same answer. A push machine for one turn, which
 * may consist of several streams; it owns what is open and how far each tool call is.
 *
 * A driver's text has no parts, only deltas. Of two texts that are open at once the later one is
 * held back until the earlier has ended, so that they are not mixed word by word; reasoning
 * likewise. Nothing else ever waits for a text: there are models that end it with the step.
 */
export function createChunkReader() {
  const blocks = { text: new Map<string, Block>(), reasoning: new Map<string, Block>() };
  const calls = new Map<string, Call>();
  const known = new Map<string, KnownCall>();
  /** Which call each approval is about, why it was refused, and whether people did so. */
  const approvals = new Map<string, string>();
  const refusals = new Map<string, string>();
  const refused = new Set<string>();
  let out: DriverEvent[] = [];
  let step = 0;
  let isStepEmpty = true;
  let metadata: unknown;
  let usage: Usage | undefined;

  function say(event: DriverEvent): void {
    isStepEmpty = false;
    out.push(event);
  }

  function sayText(type: 'text' | 'reasoning', delta: string): void {
    if (delta !== '') say({ type, delta });
  }

  /** What was held back behind a text that has ended, up to the next that has not. */
  function release(kind: 'text' | 'reasoning'): void {
    for (const [id, block] of blocks[kind]) {
      sayText(kind, block.held);
      block.held = '';
      if (!block.hasEnded) return;
      blocks[kind].delete(id);
    }
  }

  function endTexts(): void {
    for (const kind of ['text', 'reasoning'] as const) {
      for (const block of blocks[kind].values()) block.hasEnded = true;
      release(kind);
    }
  }

  function readText(kind: 'text' | 'reasoning', verb: string, chunk: Loose): void {
    const open = blocks[kind];
    const id = chunk.id as string;
    const block = open.get(id) ?? { held: '', hasEnded: false };
    if (verb !== 'end') open.set(id, block);
    if (verb === 'delta') block.held += chunk.delta as string;
    else if (verb === 'end') block.hasEnded = true;
    const [first] = open.keys();
    if (first === id) release(kind);
  }

  function callOf(callId: string): Call {
    const call = calls.get(callId) ?? { name: 'unknown', stage: 0, step };
    calls.set(callId, call);
    return call;
  }

  function refusalOf(callId: string): string {
    return refusals.get(callId) || NOT_APPROVED;
  }

  function endCall(callId: string, end: { result: unknown } | { error: string }): void {
    const call = callOf(callId);
    if (call.stage === OVER) return;
    call.stage = OVER;
    const ended = { type: 'tool' as const, callId, toolName: call.name };
    // There are agents that take the refusal for what the tool gave.
    if (refused.has(callId)) say({ ...ended, status: 'error', error: refusalOf(callId) });
    else say({ ...ended, status: 'error' in end ? 'error' : 'completed', ...end });
  }

  function readInput(type: string, chunk: Loose): void {
    const callId = chunk.toolCallId as string;
    const call = callOf(callId);
    if (type === 'tool-input-delta') {
      const delta = chunk.inputTextDelta as string;
      if (call.stage !== NAMED || delta === '') return;
      say({ type: 'tool-input', callId, toolName: call.name, delta });
      return;
    }
    if (call.stage === OVER) return;
    const toolName = chunk.toolName as string;
    call.name = toolName;
    if (type === 'tool-input-start') {
      if (call.stage >= NAMED) return;
      call.stage = NAMED;
      say({ type: 'tool', callId, toolName, status: 'pending' });
      return;
    }
    const args = toJsonSafe(chunk.input);
    known.set(callId, { toolName, input: args, providerExecuted: chunk.providerExecuted === true });
    if (type === 'tool-input-available') {
      call.stage = CALLED;
      say({ type: 'tool', callId, toolName, status: 'running', args });
    } else {
      call.stage = OVER;
      const error = (chunk.errorText as string) || NO_WORDS;
      say({ type: 'tool', callId, toolName, status: 'error', args, error });
    }
  }

  function readOutput(type: string, chunk: Loose): void {
    const callId = chunk.toolCallId as string;
    const call = callOf(callId);
    if (type === 'tool-output-error') {
      endCall(callId, { error: (chunk.errorText as string) || NO_WORDS });
    } else if (type === 'tool-output-denied') {
      endCall(callId, { error: refusalOf(callId) });
    } else if (chunk.preliminary !== true) endCall(callId, { result: toJsonSafe(chunk.output) });
    else if (call.stage !== OVER) {
      call.stage = CALLED;
      call.preliminary = { result: toJsonSafe(chunk.output) };
      say({ type: 'tool', callId, toolName: call.name, status: 'running', ...call.preliminary });
    }
  }

  function readMetadata({ messageMetadata, finishReason }: Loose): void {
    metadata = mergeMetadata(metadata, messageMetadata);
    if (CUT_SHORT.includes(finishReason as string)) {
      metadata = mergeMetadata(metadata, { finishReason });
    }
    const said = isObject(messageMetadata) ? messageMetadata.usage : undefined;
    if (isObject(said)) usage = said;
  }

  /** The next step, where something was said in the last one. */
  function beginStep(): void {
    endTexts();
    step++;
    if (isStepEmpty) return;
    out.push({ type: 'step' });
    isStepEmpty = true;
  }

  /** What has been said cannot be taken back; what has not been answered never will be. */
  function resetStep(): void {
    endTexts();
    for (const [callId, call] of calls) {
      if (call.step === step) endCall(callId, { error: STEP_AGAIN });
    }
    beginStep();
  }

  function readData(name: string, { id, data, transient }: Loose): void {
    say({
      type: 'data',
      name,
      data: toJsonSafe(data),
      ...(typeof id === 'string' && { id }),
      ...(transient === true && { transient }),
    });
  }

  function readSource(type: string, chunk: Loose): void {
    const { sourceId, url, title, mediaType, filename } = chunk as Record<string, string>;
    const source = { type: 'source' as const, sourceId: sourceId as string };
    if (type === 'source-url') {
      const named = typeof title === 'string' && { title };
      say({ ...source, url: url as string, ...named });
    } else {
      const file = typeof filename === 'string' && { filename };
      say({ ...source, mediaType: mediaType as string, title: title as string, ...file });
    }
  }

  function read(type: string, chunk: Loose): void {
    const [kind = '', verb = ''] = type.split('-');
    if (type === 'file' || type === 'reasoning-file') {
      say({ type: 'file', url: chunk.url as string, mediaType: chunk.mediaType as string });
    } else if (kind === 'text' || kind === 'reasoning') readText(kind, verb, chunk);
    else if (type.startsWith('tool-input-')) readInput(type, chunk);
    else if (type.startsWith('tool-output-')) readOutput(type, chunk);
    else if (type === 'tool-approval-request') {
      approvals.set(chunk.approvalId as string, chunk.toolCallId as string);
    } else if (type === 'tool-approval-response') {
      const callId = approvals.get(chunk.approvalId as string);
      if (callId !== undefined && typeof chunk.reason === 'string') {
        refusals.set(callId, chunk.reason);
      }
    } else if (kind === 'data') readData(type.slice('data-'.length), chunk);
    else if (kind === 'source') readSource(type, chunk);
    else if (type === 'start-step') beginStep();
    else if (type === 'finish-step') endTexts();
    else if (type === 'reset-step') resetStep();
    else if (type === 'custom' || type === 'steering-message') {
      const { type: _, id, ...data } = chunk;
      readData(type, { id, data });
    } else if ('messageMetadata' in chunk || type === 'finish') readMetadata(chunk);
  }

  function take(): DriverEvent[] {
    const events = out;
    out = [];
    return events;
  }

  return {
    /** What no client would take for a chunk is left out. */
    push(chunk: unknown): DriverEvent[] {
      if (isChunk(chunk)) read(chunk.type as string, chunk);
      return take();
    },
    call(callId: string): KnownCall {
      const { name: toolName } = callOf(callId);
      return known.get(callId) ?? { toolName, input: undefined, providerExecuted: false };
    },
    /** People did not approve a call: its end says so, and why. */
    refuse(callId: string, reason = ''): void {
      refused.add(callId);
      refusals.set(callId, reason);
    },
    /** A stream has ended, though another may follow: what it held back, and what it has cost. */
    endStream(): DriverEvent[] {
      endTexts();
      if (usage) out.push({ type: 'usage', usage });
      usage = undefined;
      return take();
    },
    /** The turn is over: no call stays open. */
    end(): DriverEvent[] {
      for (const [callId, { stage, preliminary }] of calls) {
        if (stage > 0) endCall(callId, preliminary ?? { error: NO_RESULT });
      }
      const rest = isObject(metadata) ? Object.entries(metadata) : [];
      const data = Object.fromEntries(rest.filter(([key]) => !OUR_METADATA.includes(key)));
      const name = 'message-metadata';
      if (Object.keys(data).length > 0) readData(name, { id: name, data });
      return take();
    },
  };
}

/** Whether it has what its type needs. In process a value may be `undefined`, which JSON knows not. */
function isChunk(value: unknown): value is Loose {
  if (!isObject(value) || typeof value.type !== 'string') return false;
  const shape = shapeOf(value.type);
  return (
    shape?.required.every((name) => shape.fields.get(name)?.is(value[name] ?? null, NEWEST)) ??
    false
  );
}
