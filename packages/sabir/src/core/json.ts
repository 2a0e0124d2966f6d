/** Makes any value something JSON can carry, so that a tool's output cannot break a stream. */

// Deeper values are copied. A cycle is found only here, so a larger limit would cost time.
const MAX_DEPTH = 100;

/** True when JSON carries the value as it is. A cycle is simply too deep. */
function isJson(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true;
  if (typeof value !== 'object') return value === undefined && depth > 0;
  if (depth > MAX_DEPTH) return false;
  if (Array.isArray(value)) {
    for (const child of value) if (!isJson(child, depth + 1)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  // Anything else than plain data may have a toJSON that throws, or says something else.
  if ((prototype !== Object.prototype && prototype !== null) || isRefused(value)) return false;
  for (const key in value) {
    if (!isJson((value as Record<string, unknown>)[key], depth + 1)) return false;
  }
  return true;
}

/** Clients refuse a whole frame with such a key anywhere in it, for fear of a polluted prototype. */
function isRefused(value: object): boolean {
  const given: unknown = Object.hasOwn(value, 'constructor') && value.constructor;
  if (given === null || Object.hasOwn(value, '__proto__')) return true;
  return typeof given === 'object' && Object.hasOwn(given, 'prototype');
}

/** The value itself where JSON can carry it, else a copy in which it can; nothing gives null. */
export function toJsonSafe(value: unknown): unknown {
  try {
    // Twice: JSON writes a `constructor` that is no number as null, which clients refuse.
    return isJson(value, 0) ? value : copyOf(copyOf(value));
  } catch {
    // A getter or a proxy of somebody else's object threw, or it nests without end.
    return '[unreadable]';
  }
}

function copyOf(value: unknown): unknown {
  const ancestors: unknown[] = [];
  function replace(this: unknown, _key: string, child: unknown): unknown {
    if (typeof child === 'bigint') return `${child}`;
    if (child instanceof Error) return child.message;
    if (typeof child !== 'object' || child === null) return child;
    while (ancestors.length > 0 && ancestors.at(-1) !== this) ancestors.pop();
    if (ancestors.includes(child)) return '[circular]';
    ancestors.push(child);
    if (!isRefused(child)) return child;
    const { __proto__: _, constructor: __, ...rest } = child as Record<string, unknown>;
    // JSON goes on with the copy, so that is what the children will know as their parent.
    ancestors.push(rest);
    return rest;
  }
  return JSON.parse(JSON.stringify(value, replace) ?? null);
}
