/**
 * Chunks → what a client of one AI SDK major can parse.
 *
 * 6 means every 6 there is, and 6.0.9 dies of a field it does not know; `portable` means 5, 6 and
 * 7 alike. So below 7 only fields that all of them know pass. What a schema would refuse is left
 * out, and the chunk with it where it would say nothing without.
 */
import { type AiSdkMajor, type Chunk, FIRST_MAJOR } from './chunks.ts';

type Loose = { type: string } & Record<string, unknown>;

// `?` may be absent, `+` only 7 gets it. What a value may be depends on the field's name alone.
const TEXT = 'id providerMetadata?';
const FILE = 'url mediaType providerMetadata?';
const TOOL = 'toolCallId providerExecuted? dynamic? +toolMetadata?';
const FIELDS: Record<string, string> = {
  start: 'messageId? messageMetadata?',
  finish: 'finishReason? messageMetadata?',
  'start-step': '',
  'finish-step': '',
  'reset-step': '',
  abort: '+reason?',
  error: 'errorText',
  'message-metadata': 'messageMetadata',
  'text-start': TEXT,
  'text-delta': `${TEXT} delta`,
  'text-end': `${TEXT} +citations?`,
  'reasoning-start': TEXT,
  'reasoning-delta': `${TEXT} delta`,
  'reasoning-end': TEXT,
  'tool-input-start': `${TOOL} toolName title? +inputEncoding? +providerMetadata?`,
  'tool-input-delta': 'toolCallId inputTextDelta',
  'tool-input-available': `${TOOL} toolName input title? providerMetadata?`,
  'tool-input-error': `${TOOL} toolName input errorText title? providerMetadata?`,
  'tool-output-available': `${TOOL} output preliminary? +providerMetadata?`,
  'tool-output-error': `${TOOL} errorText +providerMetadata?`,
  'tool-output-denied': 'toolCallId',
  'tool-approval-request':
    'toolCallId approvalId +approvalDescriptor? +inputSchemaInput? +reason? +isAutomatic? +signature?',
  'tool-approval-response': 'approvalId approved reason? providerExecuted? providerMetadata?',
  'source-url': 'sourceId url title? providerMetadata?',
  'source-document': 'sourceId mediaType title filename? providerMetadata?',
  file: FILE,
  'reasoning-file': FILE,
  custom: 'kind providerMetadata?',
  'steering-message': 'id parts',
  'data-': 'id? data transient?',
};

const FINISH_REASONS = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'];
const DENIED = 'The tool call was denied.';
const STARTED_OVER = 'The step was started over before this call had an answer.';

const isString = (value: unknown) => typeof value === 'string';
const isBoolean = (value: unknown) => typeof value === 'boolean';
const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isPresent = (value: unknown) => value !== undefined;

const CHECKS: Record<string, (value: unknown) => boolean> = {
  input: isPresent,
  output: isPresent,
  data: isPresent,
  messageMetadata: isPresent,
  approvalDescriptor: isPresent,
  inputSchemaInput: isPresent,
  providerExecuted: isBoolean,
  dynamic: isBoolean,
  preliminary: isBoolean,
  transient: isBoolean,
  approved: isBoolean,
  isAutomatic: isBoolean,
  toolMetadata: isRecord,
  providerMetadata: (value) => isRecord(value) && Object.values(value).every(isRecord),
  inputEncoding: (value) => value === 'json' || value === 'text',
  citations: Array.isArray,
  parts: Array.isArray,
};

/** What to say in place of a field that must be there and is not; without one the chunk goes. */
const FALLBACKS: Record<string, unknown> = {
  input: null,
  output: null,
  data: null,
  errorText: 'Something went wrong.',
};

type Field = { isRequired: boolean; check(value: unknown): boolean };
type Shape = { fields: Map<string, Field>; required: number };
type Target = AiSdkMajor | 'portable';

const FINISH_REASONS_OF: Partial<Record<Target, string>> = { 5: 'unknown', 7: 'interrupted' };
const shapesOf = new Map<Target, Map<string, Shape>>();

function toShapes(target: Target): Map<string, Shape> {
  let shapes = shapesOf.get(target);
  if (shapes) return shapes;
  const own = FINISH_REASONS_OF[target];
  const isReason = (value: unknown) =>
    FINISH_REASONS.includes(value as string) || (own !== undefined && value === own);
  shapes = new Map();
  for (const [type, list] of Object.entries(FIELDS)) {
    const shape: Shape = { fields: new Map(), required: 0 };
    for (const word of list.match(/\S+/g) ?? []) {
      if (word.startsWith('+') && target !== 7) continue;
      const name = word.replace(/\W/g, '');
      const isRequired = !word.endsWith('?');
      if (isRequired) shape.required++;
      const check = name === 'finishReason' ? isReason : (CHECKS[name] ?? isString);
      shape.fields.set(name, { isRequired, check });
    }
    shapes.set(type, shape);
  }
  shapesOf.set(target, shapes);
  return shapes;
}

const isGood = (value: unknown, { isRequired, check }: Field) =>
  check(value) && (isRequired || value !== null);

/** Whether the client takes the chunk as it is. Runs for every chunk of every viewer. */
function isFit(chunk: Loose, { fields, required }: Shape, isStrict: boolean): boolean {
  let found = 0;
  for (const name in chunk) {
    if (name === 'type') continue;
    const field = fields.get(name);
    if (field !== undefined) {
      if (!isGood(chunk[name], field)) return false;
      if (field.isRequired) found++;
    } else if (isStrict) return false;
  }
  return found === required;
}

/** The chunk with what the client takes of it; undefined if it says nothing then. */
function fit(chunk: Loose, shape: Shape, isStrict: boolean): Loose | undefined {
  if (isFit(chunk, shape, isStrict)) return chunk;
  const fitted: Loose = { type: chunk.type };
  for (const [name, field] of shape.fields) {
    const value = chunk[name];
    if (isGood(value, field)) fitted[name] = value;
    else if (name === 'finishReason' && value != null) fitted[name] = 'other';
    else if (field.isRequired) {
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
function createOrder(): (chunk: Loose) => Loose[] {
  const open = new Map<string, Loose>();
  // Texts that we ended with their step; 7 lets them go on.
  const cut = new Map<string, Loose>();
  const isDynamic = new Map<string, boolean>();
  const callsOfStep = new Set<string>();
  // Calls of a step that was taken back: its second try may bring them again.
  const withdrawn = new Set<string>();

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
    if (type === 'tool-input-delta' || type === 'tool-approval-request') return [chunk];
    withdrawn.delete(id);
    if (type === 'tool-input-start' || type === 'tool-input-available') {
      callsOfStep.add(id);
      isDynamic.set(id, chunk.dynamic === true);
      return [chunk];
    }
    if (type === 'tool-input-error' && !isDynamic.has(id))
      isDynamic.set(id, chunk.dynamic === true);
    if (chunk.preliminary !== true) callsOfStep.delete(id);
    return type === 'tool-output-denied' ? [chunk] : [flag(chunk)];
  }

  return (chunk) => {
    const { type } = chunk;
    if (type.startsWith('text-') || type.startsWith('reasoning-')) return onText(chunk);
    if (type.startsWith('tool-')) return onTool(chunk);
    switch (type) {
      case 'start-step':
        callsOfStep.clear();
        return [chunk];
      case 'finish-step':
        for (const [key, start] of open) cut.set(key, start);
        return [...endTexts(), ...endWithdrawn(), chunk];
      case 'reset-step':
        for (const id of callsOfStep) withdrawn.add(id);
        callsOfStep.clear();
        cut.clear();
        return endTexts();
      case 'finish':
      case 'error':
        return [...endWithdrawn(), chunk];
      default:
        return [chunk];
    }
  };
}

/**
 * Makes chunks fit a client. Holds state: one for each viewer and turn, fed with every chunk that
 * viewer gets. A chunk that fits already is passed on as it is.
 *
 * ```ts
 * const downgrade = createDowngrade(5);
 * for (const chunk of chunks) for (const sent of downgrade(chunk)) write(encodeSse(sent));
 * ```
 */
export function createDowngrade(target: Target): (chunk: Chunk) => Chunk[] {
  const shapes = toShapes(target);
  const major = target === 'portable' ? 5 : target;
  const order = major < 7 ? createOrder() : undefined;

  return (given) => {
    if (!isRecord(given) || !isString((given as Loose).type)) return [];
    const chunk = order ? rename(given as Loose, major >= 6) : (given as Loose);
    const { type } = chunk;
    if (major < (FIRST_MAJOR[type] ?? 5) && type !== 'reset-step') return [];
    const shape = shapes.get(type.startsWith('data-') ? 'data-' : type);
    const fitted = shape && fit(chunk, shape, order !== undefined);
    if (fitted === undefined) return [];
    return (order ? order(fitted) : [fitted]) as Chunk[];
  };
}
