/** An object of unknown make, out of JSON or of another library: its fields are checked one by one. */
export type Loose = Record<string, unknown>;

export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
