/** What is wrong with one chunk by itself; what chunks mean one after another is `verify.ts`. */

import { type Shape, shapeOf, type Target } from './chunk-shapes.ts';
import { isObject, type Loose } from './loose.ts';

export const SHAPE_VIOLATION_CODES = [
  'not-a-chunk',
  'not-json',
  'forbidden-key',
  'unknown-type',
  'chunk-too-new',
  'missing-field',
  'wrong-type',
  'null-field',
  'bad-finish-reason',
  'extra-field',
] as const;
type ShapeReport = (code: (typeof SHAPE_VIOLATION_CODES)[number], message: string) => void;

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
    const member = (value as Loose)[key];
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

function checkFields(
  { fields, required }: Shape,
  type: string,
  wire: Loose,
  target: Target,
  report: ShapeReport,
): void {
  for (const key of Object.keys(wire)) {
    const value = wire[key];
    if (key === 'type' || value === undefined) continue;
    const field = fields.get(key);
    if (target.strict && (field === undefined || field.since > 6)) {
      report('extra-field', `${type}.${key} is unknown to 6.0.9, which refuses the chunk`);
    }
    if (field === undefined || field.since > target.newest || field.is(value, target)) continue;
    if (value === null && !field.required) {
      report('null-field', `${type}.${key} is null: leave an optional field out`);
    } else if (key === 'finishReason' && typeof value === 'string') {
      report('bad-finish-reason', `finishReason "${value}" is unknown to the client`);
    } else report('wrong-type', `${type}.${key} has the wrong type`);
  }
  for (const key of required) {
    if (wire[key] !== undefined) continue;
    report('missing-field', `${type} has no ${key}: send the key, with null if there is nothing`);
  }
}

/**
 * Reports what is wrong with the chunk by itself. Returns it as the client gets it, or undefined if
 * the client knows no such thing. Throws what writing the chunk as JSON throws.
 */
export function verifyShape(
  chunk: unknown,
  target: Target,
  report: ShapeReport,
): { type: string; wire: Loose } | undefined {
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
  const shape = shapeOf(type);
  if (shape === undefined) {
    report('unknown-type', `no client knows the chunk type "${type}"`);
    return undefined;
  }
  if (shape.since > target.oldest) {
    report('chunk-too-new', `${type} kills clients before ai@${shape.since}`);
  } else checkFields(shape, type, wire, target, report);
  return { type, wire };
}
