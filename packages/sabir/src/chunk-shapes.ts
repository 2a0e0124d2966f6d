/**
 * What one chunk must look like for each release of the AI SDK client, as the client sees it:
 * after JSON. What chunks mean one after another is `verify.ts`.
 */
import { type AiSdkMajor, FIRST_MAJOR } from './chunks.ts';
import type { ViolationCode } from './verify.ts';

export type Report = (code: ViolationCode, message: string, index?: number) => void;

/** A chunk as it comes out of JSON. */
export type Wire = Record<string, unknown>;

/** Releases as numbers, so that "since" is a comparison: 6 stands for 6.0.9, 6.1 for the latest 6. */
type Release = 5 | 6 | 6.1 | 7;
export type Target = {
  oldest: Release;
  newest: Release;
  /** 6.0.9 is meant: the one client that refuses fields it does not know. */
  strict: boolean;
  finishReasons: readonly string[];
};

const REASONS = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'];
const ALL: Target = { oldest: 5, newest: 7, strict: true, finishReasons: REASONS };
const TARGETS = new Map<AiSdkMajor | undefined, Target>([
  [5, { oldest: 5, newest: 5, strict: false, finishReasons: [...REASONS, 'unknown'] }],
  [6, { oldest: 6, newest: 6.1, strict: true, finishReasons: REASONS }],
  [7, { oldest: 7, newest: 7, strict: false, finishReasons: [...REASONS, 'interrupted'] }],
]);

export function targetOf(major: AiSdkMajor | undefined): Target {
  return TARGETS.get(major) ?? ALL;
}

type Check = (value: unknown) => boolean;
type Field = { is: Check; required: boolean; since: Release };
type Shape = { fields: Map<string, Field>; required: string[] };

export const isObject = (value: unknown): value is Wire =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const any: Check = () => true;
const string: Check = (value) => typeof value === 'string';
const boolean: Check = (value) => typeof value === 'boolean';
const record: Check = isObject;
const encoding: Check = (value) => value === 'json' || value === 'text';
const optional =
  (is: Check): Check =>
  (value) =>
    value === undefined || is(value);
const recordOf =
  (is: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(optional(is));
const metadata = recordOf(record);
const offset = optional((value) => Number.isSafeInteger(value) && (value as number) >= 0);
const listOf =
  (is: (item: Wire) => boolean): Check =>
  (value) =>
    Array.isArray(value) && value.every((item) => isObject(item) && is(item));

const source = (item: Wire) =>
  item.type === 'source' &&
  string(item.id) &&
  optional(metadata)(item.providerMetadata) &&
  (item.sourceType === 'url'
    ? string(item.url) && optional(string)(item.title)
    : item.sourceType === 'document' &&
      string(item.mediaType) &&
      string(item.title) &&
      optional(string)(item.filename));
const citations = listOf(
  (item) =>
    isObject(item.source) &&
    source(item.source) &&
    offset(item.startIndex) &&
    offset(item.endIndex) &&
    optional(string)(item.citedText),
);
const steering = listOf(
  (item) =>
    optional(metadata)(item.providerMetadata) &&
    (item.type === 'text'
      ? string(item.text)
      : item.type === 'file' &&
        string(item.mediaType) &&
        string(item.url) &&
        optional(string)(item.filename) &&
        optional(recordOf(string))(item.providerReference)),
);

const need = (is: Check): Field => ({ is, required: true, since: 5 });
const may = (is: Check, since: Release = 5): Field => ({ is, required: false, since });

const provider = { providerMetadata: may(metadata) };
const part = { id: need(string), ...provider };
const delta = { ...part, delta: need(string) };
const call = { toolCallId: need(string) };
const flags = { providerExecuted: may(boolean), dynamic: may(boolean) };
const described = { title: may(string, 6), toolMetadata: may(record, 6.1) };
const input = { ...call, toolName: need(string), ...flags, ...described };
const output = {
  ...call,
  ...flags,
  providerMetadata: may(metadata, 6.1),
  toolMetadata: may(record, 6.1),
};
const file = { url: need(string), mediaType: need(string), ...provider };
const messageMetadata = { messageMetadata: may(any) };

const TABLE: Record<string, Record<string, Field>> = {
  start: { messageId: may(string), ...messageMetadata },
  finish: { finishReason: may(string), ...messageMetadata },
  'message-metadata': { messageMetadata: need(any) },
  'start-step': {},
  'finish-step': {},
  abort: { reason: may(string, 6.1) },
  error: { errorText: need(string) },
  'text-start': part,
  'text-delta': delta,
  'text-end': { ...part, citations: may(citations, 7) },
  'reasoning-start': part,
  'reasoning-delta': delta,
  'reasoning-end': part,
  'tool-input-start': {
    ...input,
    providerMetadata: may(metadata, 6.1),
    inputEncoding: may(encoding, 6.1),
  },
  'tool-input-delta': { ...call, inputTextDelta: need(string) },
  'tool-input-available': { ...input, ...provider, input: need(any) },
  'tool-input-error': { ...input, ...provider, input: need(any), errorText: need(string) },
  'tool-output-available': { ...output, output: need(any), preliminary: may(boolean) },
  'tool-output-error': { ...output, errorText: need(string) },
  'source-url': { sourceId: need(string), url: need(string), title: may(string), ...provider },
  'source-document': {
    sourceId: need(string),
    mediaType: need(string),
    title: need(string),
    filename: may(string),
    ...provider,
  },
  file,
  'tool-approval-request': {
    ...call,
    approvalId: need(string),
    approvalDescriptor: may(any, 6.1),
    inputSchemaInput: may(any, 6.1),
    signature: may(string, 6.1),
    reason: may(string, 7),
    isAutomatic: may(boolean, 7),
  },
  'tool-output-denied': call,
  'tool-approval-response': {
    approvalId: need(string),
    approved: need(boolean),
    reason: may(string),
    providerExecuted: may(boolean),
    ...provider,
  },
  custom: { kind: need(string), ...provider },
  'reasoning-file': file,
  'reset-step': {},
  'steering-message': { id: need(string), parts: need(steering) },
  'data-': { id: may(string), data: need(any), transient: may(boolean) },
};

// Maps, because a type or a field may be named like something every object inherits.
const SHAPES = new Map<string, Shape>(
  Object.entries(TABLE).map(([type, fields]) => [
    type,
    {
      fields: new Map(Object.entries(fields)),
      required: Object.keys(fields).filter((key) => fields[key]?.required),
    },
  ]),
);

const PLAIN = 0;
/** JSON changes it or cannot say it: only writing it tells what the client gets. */
const ODD = 1;
const FORBIDDEN = 2;
const MAX_FAST_DEPTH = 100;

/** Looks a value through for what JSON would change and for the keys at which clients throw. */
function scan(value: unknown, strict: boolean, depth: number): number {
  if (typeof value === 'string' || typeof value === 'boolean' || value == null) return PLAIN;
  if (typeof value === 'number') return Number.isFinite(value) ? PLAIN : ODD;
  if (typeof value !== 'object' || depth <= 0) return ODD;
  let found = PLAIN;
  if (Array.isArray(value)) {
    // In a list undefined becomes null.
    for (const item of value) found |= item === undefined ? ODD : scan(item, strict, depth - 1);
    return found;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return ODD;
  for (const key of Object.keys(value)) {
    const member = (value as Wire)[key];
    found |= scan(member, strict, depth - 1);
    if (key === '__proto__') found |= FORBIDDEN;
    else if (key === 'constructor' && member !== undefined) {
      // 6.0.9 looks for the prototype without asking whether there is an object to have one.
      const refused = member === null ? strict : Object.hasOwn(member as object, 'prototype');
      if (refused) found |= FORBIDDEN;
    }
  }
  return found;
}

/** The chunk as the client gets it, and whether JSON lost something on the way. */
function toWire(chunk: unknown): { wire: unknown; lost: boolean } {
  let lost = false;
  const text = JSON.stringify(chunk, (_key, value: unknown) => {
    lost ||=
      typeof value === 'function' ||
      typeof value === 'symbol' ||
      (typeof value === 'number' && !Number.isFinite(value)) ||
      value instanceof Map ||
      value instanceof Set;
    return value;
  });
  return { wire: text === undefined ? undefined : JSON.parse(text), lost };
}

function checkFields(type: string, wire: Wire, shape: Shape, target: Target, report: Report): void {
  for (const key of Object.keys(wire)) {
    const value = wire[key];
    if (key === 'type' || value === undefined) continue;
    const field = shape.fields.get(key);
    if (target.strict && (field === undefined || field.since > 6)) {
      report('extra-field', `${type}.${key} is unknown to 6.0.9, which refuses the chunk`);
    }
    if (field === undefined || field.since > target.newest || field.is(value)) continue;
    if (value === null && !field.required) {
      report('null-field', `${type}.${key} is null: leave an optional field out`);
    } else report('wrong-type', `${type}.${key} has the wrong type`);
  }
  for (const key of shape.required) {
    if (wire[key] !== undefined) continue;
    report('missing-field', `${type} has no ${key}: send the key, with null if there is nothing`);
  }
  const reason = type === 'finish' ? wire.finishReason : undefined;
  if (typeof reason === 'string' && !target.finishReasons.includes(reason)) {
    report('bad-finish-reason', `finishReason "${reason}" is unknown to the client`);
  }
}

/**
 * The chunk as the client gets it, or undefined if the client knows no such thing. Throws what
 * writing the chunk as JSON throws.
 */
export function readChunk(
  chunk: unknown,
  target: Target,
  report: Report,
): { type: string; wire: Wire } | undefined {
  let wire = chunk;
  let problems = scan(chunk, target.strict, MAX_FAST_DEPTH);
  if (problems & ODD) {
    const written = toWire(chunk);
    if (written.lost) report('not-json', 'JSON drops or changes a value of this chunk');
    wire = written.wire;
    problems = scan(wire, target.strict, Number.POSITIVE_INFINITY);
  }
  if (problems & FORBIDDEN) {
    report('forbidden-key', 'clients refuse the keys "__proto__" and "constructor.prototype"');
  }
  if (!isObject(wire) || typeof wire.type !== 'string') {
    report('not-a-chunk', 'a chunk is an object with a type');
    return undefined;
  }
  const type = wire.type;
  const shape = SHAPES.get(type.startsWith('data-') ? 'data-' : type);
  if (shape === undefined) {
    report('unknown-type', `no client knows the chunk type "${type}"`);
    return undefined;
  }
  const first = FIRST_MAJOR[type] ?? 5;
  if (first > target.oldest) report('chunk-too-new', `${type} kills clients before ai@${first}`);
  else checkFields(type, wire, shape, target, report);
  return { type, wire };
}
