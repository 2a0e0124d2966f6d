import type { Usage } from '../../core/outcome.ts';

const TOKENS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
] as const;

/** What was used before, and what the entries of a report say; what is no number is not counted. */
export function addUsage(before: Usage | undefined, entries: readonly unknown[]): Usage {
  const total: Usage = { ...before };
  for (const entry of entries) {
    for (const key of TOKENS) {
      const tokens = (entry as Usage | null | undefined)?.[key];
      if (Number.isFinite(tokens)) total[key] = (total[key] ?? 0) + (tokens as number);
    }
  }
  return total;
}
