/**
 * What one chunk must look like for each release of the AI SDK client, as the client sees it:
 * after JSON. The only spelling of it: `verify-shape.ts` reports by it, `downgrade.ts` repairs.
 */
import { type AiSdkMajor, FIRST_MAJOR } from './chunks.ts';
import { isObject, type Loose } from './loose.ts';

/** Releases as numbers, so that "since" is a comparison: 6 stands for 6.0.9, 6.1 for the latest 6. */
export type Release = 5 | 6 | 6.1 | 7;
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
export type Field = {
  /** Never asked about undefined, which JSON leaves out. */
  is: (value: unknown, target: Target) => boolean;
  required: boolean;
  since: Release;
};
export type Shape = {
  since: AiSdkMajor;
  fields: ReadonlyMap<string, Field>;
  required: readonly string[];
};

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
  (is: (item: Loose) => boolean): Check =>
  (value) =>
    // Spread, because `every` skips the holes for which JSON writes null.
    Array.isArray(value) && [...value].every((item) => isObject(item) && is(item));

const source = (item: Loose) =>
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

const finishReason: Field['is'] = (value, target) => target.finishReasons.includes(value as string);

const need = (is: Check): Field => ({ is, required: true, since: 5 });
const may = (is: Field['is'], since: Release = 5): Field => ({ is, required: false, since });

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
  finish: { finishReason: may(finishReason), ...messageMetadata },
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
      since: FIRST_MAJOR[type] ?? 5,
      fields: new Map(Object.entries(fields)),
      required: Object.keys(fields).filter((key) => fields[key]?.required),
    },
  ]),
);

/** The shape of a chunk type; undefined if no client knows the type. */
export function shapeOf(type: string): Shape | undefined {
  return SHAPES.get(type.startsWith('data-') ? 'data-' : type);
}
