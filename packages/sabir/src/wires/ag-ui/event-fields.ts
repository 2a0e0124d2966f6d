/** Fields of AG-UI events that follow from their chunks alone. */
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { Usage } from '../../core/outcome.ts';

/** The counts that AG-UI has; its schemas take whole numbers only. */
const COUNTS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
] as const;

/** What an event has no field for goes into its metadata, which clients keep with the message or the call. */
export function metadataOf(fields: Loose): { metadata?: Loose } {
  const said = Object.entries(fields).filter(([, value]) => value !== undefined);
  return said.length > 0 ? { metadata: Object.fromEntries(said) } : {};
}

export function usageOf({ usage }: Loose): { usage?: Usage[] } {
  if (!isObject(usage)) return {};
  const counts: Usage = {};
  for (const name of COUNTS) {
    const count = usage[name];
    if (Number.isSafeInteger(count) && (count as number) >= 0) counts[name] = count as number;
  }
  return Object.keys(counts).length > 0 ? { usage: [counts] } : {};
}

/** Whether a text is this JSON, spaces apart. */
export function isSameJson(text: string, json: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === json;
  } catch {
    // What streamed was cut off.
    return false;
  }
}

export function toJson(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(toJsonSafe(value));
}

/** AG-UI's schemas take strings only. An object is not converted: its `toString` may be anything. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
