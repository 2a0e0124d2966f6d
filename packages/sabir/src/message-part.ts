/** A part of a message that is being folded, of whatever kind. */
export type Part = { type: string } & Record<string, unknown>;

/**
 * Takes over the named fields, or all there are. One without a value is absent, not `undefined`,
 * and of all fields only inputs and outputs have `null` for a value.
 */
export function copy<T extends object>(target: T, source: object, names = Object.keys(source)): T {
  for (const name of names) {
    const value = (source as Part)[name];
    if (value !== undefined && (value !== null || /put$/.test(name)))
      (target as Part)[name] = value;
  }
  return target;
}
