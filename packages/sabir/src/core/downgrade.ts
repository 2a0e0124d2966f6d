/**
 * Chunks → what a client of one AI SDK major can parse.
 *
 * 6 means every 6 there is, and 6.0.9 dies of a field it does not know; `portable` means 5, 6 and
 * 7 alike. So below 7 only fields that 6.0.9 knows pass; 5 ignores those it lacks. What a schema
 * would refuse is left out, and the chunk with it where it would say nothing without.
 */

import {
  type Field,
  type Release,
  type Shape,
  shapeOf,
  type Target,
  targetOf,
} from './chunk-shapes.ts';
import type { AiSdkMajor, Chunk, TextDeltaChunk } from './chunks.ts';
import { isObject } from './loose.ts';

type Loose = { type: string } & Record<string, unknown>;

const DENIED = 'The tool call was denied.';
const STARTED_OVER = 'The step was started over before this call had an answer.';

/** What to say in place of a field that must be there and is not; without one the chunk goes. */
const FALLBACKS: Record<string, unknown> = {
  input: null,
  output: null,
  data: null,
  errorText: 'Something went wrong.',
};

/** Makes of a chunk what the client takes of it; undefined if it says nothing then. */
function createFit(target: Target, newest: Release) {
  const isStrict = newest < 7;
  const isKnown = (field: Field | undefined): field is Field =>
    field !== undefined && field.since <= newest;
  const isGood = (value: unknown, { is, required }: Field) =>
    value !== undefined && (required || value !== null) && is(value, target);

  /** Whether the client takes the chunk as it is. Runs for every chunk of every viewer. */
  function isFit(chunk: Loose, { fields, required }: Shape): boolean {
    let found = 0;
    for (const name in chunk) {
      if (name === 'type') continue;
      const field = fields.get(name);
      if (isKnown(field)) {
        if (!isGood(chunk[name], field)) return false;
        if (field.required) found++;
      } else if (isStrict) return false;
    }
    return found === required.length;
  }

  return (chunk: Loose, shape: Shape): Loose | undefined => {
    if (isFit(chunk, shape)) return chunk;
    const fitted: Loose = { type: chunk.type };
    for (const [name, field] of shape.fields) {
      if (!isKnown(field)) continue;
      const value = chunk[name];
      if (isGood(value, field)) fitted[name] = value;
      else if (name === 'finishReason' && value != null) fitted[name] = 'other';
      else if (field.required) {
        if (!Object.hasOwn(FALLBACKS, name)) return undefined;
        fitted[name] = FALLBACKS[name];
      }
    }
    if (isStrict) return fitted;
    for (const name of Object.keys(chunk)) {
      if (name !== 'type' && name !== '__proto__' && !shape.fields.has(name))
        fitted[name] = chunk[name];
    }
    return fitted;
  };
}

/** What older clients are told instead of chunks they do not have. */
function rename(chunk: Loose, hasApprovals: boolean): Loose {
  if (chunk.type === 'reasoning-file') return { ...chunk, type: 'file' };
  if (chunk.type !== 'tool-output-denied' || hasApprovals) return chunk;
  return { type: 'tool-output-error', toolCallId: chunk.toolCallId, errorText: DENIED };
}

/**
 * Orders chunks as clients before 7 need them. There a text ends with its step; a step cannot be
 * taken back, so what it left open is closed; and 5 finds a dynamic tool only by the flag.
 */
function createOrder(...from: Partial<OrderState>) {
  const open = new Map(from[0]);
  // Texts that we ended with their step; 7 lets them go on.
  const cut = new Map(from[1]);
  const isDynamic = new Map(from[2]);
  const callsOfStep = new Set(from[3]);
  // Calls of a step that was taken back: its second try may bring them again.
  const withdrawn = new Set(from[4]);
  // Calls of tools that run on the server, and those of them that wait for an approval.
  const serverCalls = new Map(from[5]);
  const approvals = new Set(from[6]);

  function endTexts(): Loose[] {
    const starts = [...open.values()];
    open.clear();
    return starts.map(({ type, id }) => ({ type: type.replace('start', 'end'), id }));
  }

  function endWithdrawn(): Loose[] {
    const calls = [...withdrawn];
    withdrawn.clear();
    return calls.map((toolCallId) =>
      flag({ type: 'tool-output-error', toolCallId, errorText: STARTED_OVER }),
    );
  }

  function flag(chunk: Loose): Loose {
    const wanted = isDynamic.get(chunk.toolCallId as string);
    if (wanted === undefined || wanted === (chunk.dynamic === true)) return chunk;
    const { dynamic: _, ...rest } = chunk;
    return wanted ? { ...chunk, dynamic: true } : (rest as Loose);
  }

  function onText(chunk: Loose): Loose[] {
    const { type } = chunk;
    const isStart = type.endsWith('-start');
    const isEnd = type.endsWith('-end');
    if (!isStart && !isEnd && cut.size === 0) return [chunk];
    const key = `${type.slice(0, type.indexOf('-'))} ${chunk.id}`;
    const start = cut.get(key);
    cut.delete(key);
    if (isStart) open.set(key, chunk);
    if (isEnd) open.delete(key);
    if (isStart || start === undefined) return [chunk];
    if (isEnd) return [];
    open.set(key, start);
    return [{ type: start.type, id: start.id }, chunk];
  }

  function onTool(chunk: Loose): Loose[] {
    const { type } = chunk;
    const id = chunk.toolCallId as string;
    if (type === 'tool-input-delta') return [chunk];
    if (type === 'tool-approval-request') return onApproval(chunk, id);
    withdrawn.delete(id);
    if (type === 'tool-input-start' || type === 'tool-input-available') {
      callsOfStep.add(id);
      isDynamic.set(id, chunk.dynamic === true);
      if (chunk.providerExecuted === true) serverCalls.set(id, chunk);
      return [chunk];
    }
    if (type === 'tool-input-error' && !isDynamic.has(id))
      isDynamic.set(id, chunk.dynamic === true);
    if (chunk.preliminary !== true) {
      callsOfStep.delete(id);
      serverCalls.delete(id);
    }
    const isToFlag = approvals.delete(id) && chunk.providerExecuted !== true;
    if (type === 'tool-output-denied') return [chunk];
    // The tool is the server's again: a client may send by itself once its own tools are done.
    return [flag(isToFlag ? { ...chunk, providerExecuted: true } : chunk)];
  }

  /** 6.0.9 sends the answer only for a tool that it takes for its own. */
  function onApproval(chunk: Loose, id: string): Loose[] {
    const call = serverCalls.get(id);
    if (call?.type !== 'tool-input-available') return [chunk];
    serverCalls.delete(id);
    approvals.add(id);
    return [{ ...call, providerExecuted: false }, chunk];
  }

  function put(chunk: Loose): Loose[] {
    const { type } = chunk;
    if (type.startsWith('text-') || type.startsWith('reasoning-')) return onText(chunk);
    if (type.startsWith('tool-')) return onTool(chunk);
    switch (type) {
      case 'start-step':
        callsOfStep.clear();
        // Said again in a later step, a call would become a second part.
        serverCalls.clear();
        return [chunk];
      case 'finish-step':
        for (const [key, start] of open) cut.set(key, start);
        return [...endTexts(), ...endWithdrawn(), chunk];
      case 'reset-step':
        for (const id of callsOfStep) withdrawn.add(id);
        callsOfStep.clear();
        serverCalls.clear();
        cut.clear();
        return endTexts();
      case 'finish':
      case 'error':
        return [...endWithdrawn(), chunk];
      default:
        return [chunk];
    }
  }

  return {
    put,
    /** Texts that were ended with their step may go on: then deltas need a start. */
    isMending: () => cut.size > 0,
    fork: () => createOrder(open, cut, isDynamic, callsOfStep, withdrawn, serverCalls, approvals),
  };
}

type OrderState = [
  open: Map<string, Loose>,
  cut: Map<string, Loose>,
  isDynamic: Map<string, boolean>,
  callsOfStep: Set<string>,
  withdrawn: Set<string>,
  serverCalls: Map<string, Loose>,
  approvals: Set<string>,
];

/** A text delta with nothing but what every client knows: most chunks are. */
export function isPlainText(given: unknown): given is TextDeltaChunk {
  const { type, id, delta } = (given ?? {}) as Loose;
  if (type !== 'text-delta' || typeof id !== 'string' || typeof delta !== 'string') return false;
  let fields = 0;
  for (const _ in given as object) fields++;
  return fields === 3;
}

export type Downgrade = ((chunk: Chunk) => Chunk[]) & {
  /** Whether plain text would pass as it is, and so need not be asked about. */
  passesText(): boolean;
  /** Another one in the same state: from here on each goes its own way. */
  fork(): Downgrade;
};

/**
 * Makes chunks fit a client. Holds state: one for each viewer and turn, fed with every chunk that
 * viewer gets. A chunk that fits already is passed on as it is.
 *
 * ```ts
 * const downgrade = createDowngrade(5);
 * for (const chunk of chunks) for (const sent of downgrade(chunk)) write(encodeSse(sent));
 * ```
 */
export function createDowngrade(client: AiSdkMajor | 'portable'): Downgrade {
  const major = client === 'portable' ? 5 : client;
  const target = targetOf(client === 'portable' ? undefined : client);
  const fit = createFit(target, major < 7 ? 6 : 7);
  return createOrdered(major, fit, major < 7 ? createOrder() : undefined);
}

function createOrdered(
  major: AiSdkMajor,
  fit: ReturnType<typeof createFit>,
  order: ReturnType<typeof createOrder> | undefined,
): Downgrade {
  const passesText = () => !order?.isMending();
  const downgrade = (given: unknown) => {
    if (isPlainText(given) && passesText()) return [given];
    if (!isObject(given) || typeof given.type !== 'string') return [];
    const chunk = order ? rename(given as Loose, major >= 6) : (given as Loose);
    const { type } = chunk;
    const shape = shapeOf(type);
    if (shape === undefined || (shape.since > major && type !== 'reset-step')) return [];
    const fitted = fit(chunk, shape);
    if (fitted === undefined) return [];
    return (order ? order.put(fitted) : [fitted]) as Chunk[];
  };
  const fork = () => createOrdered(major, fit, order?.fork());
  return Object.assign(downgrade, { passesText, fork });
}
