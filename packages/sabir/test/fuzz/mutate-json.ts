/** What can be wrong with a value that came out of JSON, and with a list of events. */
import type { Random } from './random.ts';

function nested(depth: number, kind: 'list' | 'object'): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = kind === 'list' ? [value] : { a: value };
  return value;
}

/** As `JSON.parse` makes it: a key of its own, and not the prototype. */
const withKey = (key: string, value: unknown) =>
  Object.defineProperty({}, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });

const LONG = 'long '.repeat(4_000);

/** What JSON can say, and hardly anybody expects. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -0, -1, 1.5, 2 ** 53, 1e308, -1e308, 5e-324, Number.POSITIVE_INFINITY],
  ...['', ' ', '0', 'null', 'undefined', 'NaN', 'true', '[]', '{}', '\0', '\r\n\r\n', '\ufeff'],
  ...['\ud800', 'x\udc00y', '\u2028', '__proto__', 'constructor', 'toString', 'hasOwnProperty'],
  ...['../../..', 'data: x\n\n', '[DONE]', '{"a":', '💥'.repeat(50), LONG],
  ...[[], {}, [[]], [null], [{}], { type: null }, { length: -1 }, withKey('then', 1)],
  ...[withKey('__proto__', { polluted: 1 }), withKey('__proto__', null)],
  ...[
    { constructor: { prototype: { polluted: 1 } } },
    { constructor: null },
    { prototype: { polluted: 1 } },
  ],
  ...[{ toString: null, valueOf: 1 }, { toJSON: 1 }, { hasOwnProperty: 1 }],
  ...[nested(150, 'list'), nested(150, 'object')],
];
/** Seldom, since each costs as much as a thousand others. */
const DEEP: readonly unknown[] = [nested(6_000, 'list'), nested(6_000, 'object')];
const DEEP_JSON = [
  '['.repeat(6_000) + ']'.repeat(6_000),
  `${'{"a":'.repeat(6_000)}1${'}'.repeat(6_000)}`,
];

/** JSON of what JSON could have said, however deep: `JSON.stringify` has a stack, `JSON.parse` none. */
export function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch {
    const replace = (_key: string, inner: unknown) => {
      const at = DEEP.indexOf(inner);
      return at < 0 ? inner : `deep-${at}`;
    };
    const text = JSON.stringify(value, replace) ?? 'undefined';
    return text.replace(/"deep-(\d)"/g, (_, at) => DEEP_JSON[Number(at)] as string);
  }
}
const ODD_KEYS = [
  ...['type', 'id', 'data', 'delta', 'turnId', 'toolCallId', 'messageId', 'seq', 'parts', 'extra'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'then', '', '0', 'length', '\ud800'],
];

/** What a function may be handed in the same process, beyond what JSON can say. */
const circular: Record<string, unknown> = { a: 1 };
circular.self = circular;
const throwing = new Proxy(
  {},
  {
    get() {
      throw new Error('nobody may look at this');
    },
    ownKeys() {
      throw new Error('nobody may look at this');
    },
  },
);
const LIVE: readonly unknown[] = [
  ...[undefined, Number.NaN, Number.POSITIVE_INFINITY, 10n, Symbol('odd'), () => 'odd'],
  ...[circular, throwing, new Date(Number.NaN), new Map([[1, 2]]), new Error('odd')],
  ...[Object.create(null), new Uint8Array(3), new Proxy([1], {}), new Proxy({ a: 1 }, {})],
];

export type Mutation = {
  random: Random;
  /** Strings to put in each other's places: ids of other turns, types of other events. */
  words: readonly string[];
  /** Whether values may be such as no JSON can say. */
  isLive?: boolean;
};

function oddValue({ random, words, isLive = false }: Mutation): unknown {
  if (random.chance(0.4) && words.length > 0) return random.pick(words);
  if (isLive && random.chance(0.2)) return random.pick(LIVE);
  if (random.chance(0.01)) return random.pick(DEEP);
  return random.pick(ODD);
}

function editText(text: string, { random }: Mutation): string {
  const at = random.below(text.length + 1);
  switch (random.below(6)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(at);
    case 2:
      return text + text;
    case 3:
      return `${text.slice(0, at)}${random.pick(['\ud800', '\0', '"', '\\', '\n', '💥', ' '])}${text.slice(at)}`;
    case 4:
      return text.toUpperCase();
    default:
      return `${text}${random.below(10)}`;
  }
}

function editObject(value: Record<string, unknown>, mutation: Mutation): unknown {
  const { random } = mutation;
  const copy = { ...value };
  const keys = Object.keys(copy);
  const key = keys.length > 0 ? random.pick(keys) : 'type';
  switch (random.below(4)) {
    case 0:
      delete copy[key];
      break;
    case 1: {
      const added = random.pick(ODD_KEYS);
      Object.defineProperty(copy, added, {
        value: oddValue(mutation),
        enumerable: true,
        writable: true,
        configurable: true,
      });
      break;
    }
    case 2: {
      // Two fields change places.
      const other = keys.length > 0 ? random.pick(keys) : 'id';
      [copy[key], copy[other]] = [copy[other], copy[key]];
      break;
    }
    default:
      copy[key] = oddValue(mutation);
  }
  return copy;
}

function editList(value: unknown[], mutation: Mutation): unknown {
  const { random } = mutation;
  const copy = [...value];
  const at = random.below(copy.length + 1);
  switch (random.below(4)) {
    case 0:
      copy.splice(at, 1);
      break;
    case 1:
      copy.splice(at, 0, oddValue(mutation));
      break;
    case 2:
      copy.splice(at, 0, ...copy.slice(0, 10));
      break;
    default:
      copy.reverse();
  }
  return copy;
}

/** The value with one thing in it, somewhere, that is not as it was. What is given stays as it is. */
export function mutateValue(value: unknown, mutation: Mutation): unknown {
  const { random } = mutation;
  // Nobody can look into these, or would come back from it.
  if (LIVE.includes(value) || DEEP.includes(value)) return oddValue(mutation);
  if (typeof value === 'object' && value !== null) {
    const keys = Object.keys(value);
    if (keys.length > 0 && random.chance(0.7)) {
      const key = random.pick(keys);
      const inner = mutateValue((value as Record<string, unknown>)[key], mutation);
      if (Array.isArray(value)) {
        const copy = [...value];
        copy[Number(key)] = inner;
        return copy;
      }
      return Object.defineProperty({ ...value }, key, {
        value: inner,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    if (random.chance(0.1)) return oddValue(mutation);
    return Array.isArray(value)
      ? editList(value, mutation)
      : editObject(value as Record<string, unknown>, mutation);
  }
  if (typeof value === 'string' && random.chance(0.4)) return editText(value, mutation);
  if (typeof value === 'number' && random.chance(0.4))
    return value + random.pick([-1, 1, 0.5, 1e9]);
  if (typeof value === 'boolean' && random.chance(0.5)) return !value;
  return oddValue(mutation);
}

/** Every string of the values, to be put where it does not belong; of a long list some. */
export function wordsOf(values: readonly unknown[], limit = 2_000): string[] {
  const words = new Set<string>();
  const visit = (value: unknown): void => {
    if (words.size >= limit) return;
    if (typeof value === 'string') {
      if (value.length < 80) words.add(value);
    } else if (typeof value === 'object' && value !== null) {
      for (const inner of Object.values(value)) visit(inner);
    }
  };
  for (const value of values) visit(value);
  return [...words];
}

export type Mutated<T> = {
  frames: (T | unknown)[];
  /** How many of them are not as they were, or not where they were. */
  malformed: number;
};

/** How many of a sequence's frames are played at most: the rest would only take time. */
const LONGEST = 60;

/**
 * A sequence in which things are lost, doubled, moved, changed, and mixed with another sequence:
 * about every third frame is not as it was.
 */
export function mutateSequence(
  given: readonly unknown[],
  other: readonly unknown[],
  mutation: Mutation,
): Mutated<unknown> {
  const { random } = mutation;
  const from = given.length > LONGEST && random.chance(0.3) ? random.below(given.length) : 0;
  const frames: unknown[] = given.slice(from, from + LONGEST);
  let malformed = 0;
  const edits = 1 + random.below(Math.ceil(frames.length / 2) + 3);
  for (let edit = 0; edit < edits; edit++) {
    const at = random.below(frames.length + 1);
    const kind = random.below(20);
    malformed++;
    if (kind === 0) frames.splice(at, 1);
    else if (kind === 1) frames.splice(at, 0, frames[random.below(frames.length)]);
    else if (kind === 2) frames.splice(at, 0, ...frames.splice(random.below(frames.length), 1));
    else if (kind === 3 && other.length > 0) frames.splice(at, 0, random.pick(other));
    else if (kind === 4) frames.splice(at, 0, oddValue(mutation));
    // What comes after the end, and the end more than once.
    else if (kind === 5) frames.push(...frames.slice(-2), frames[at]);
    else if (at < frames.length) frames[at] = mutateValue(frames[at], mutation);
    else frames.push(mutateValue(random.pick(given.length > 0 ? given : [{}]), mutation));
  }
  return { frames, malformed };
}
