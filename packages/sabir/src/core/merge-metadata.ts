/** How AI SDK's clients put objects together. */

type Fields = Record<string, unknown>;

/**
 * Takes over the named fields, or all there are. One without a value is absent, not `undefined`,
 * and of all fields only inputs, outputs and data have `null` for a value.
 */
export function copy<T extends object>(target: T, source: object, names = Object.keys(source)): T {
  for (const name of names) {
    const value = (source as Fields)[name];
    if (value !== undefined && (value !== null || /(put|^data)$/.test(name))) {
      (target as Fields)[name] = value;
    }
  }
  return target;
}

// Neither an array nor a date.
const isMergeable = (value: unknown): value is object =>
  Object.prototype.toString.call(value) === '[object Object]';

function merge(base: object, overrides: object): object {
  const merged: Fields = { ...base };
  for (const [key, value] of Object.entries(overrides)) {
    if (value === undefined || /^(__proto__|constructor|prototype)$/.test(key)) continue;
    merged[key] =
      isMergeable(merged[key]) && isMergeable(value) ? merge(merged[key], value) : value;
  }
  return merged;
}

/** The metadata of a message to which more is said. */
export function mergeMetadata(metadata: unknown, added: unknown): unknown {
  if (added == null) return metadata;
  if (metadata == null) return added;
  return typeof metadata === 'object' ? merge(metadata, Object(added)) : metadata;
}
