import type { Loose } from '../../core/loose.ts';
import type { Usage } from '../../core/outcome.ts';
import { isLoose } from './events.ts';

const KEYS: readonly (keyof Usage)[] = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'reasoningTokens',
  'cachedInputTokens',
];

/** The tokens of all responses of a turn, in the SDK's spelling or in the API's own. */
export function createUsage() {
  let sum: Usage | undefined;

  function add(key: keyof Usage, ...said: unknown[]): void {
    const value = said.find((one) => typeof one === 'number' && Number.isFinite(one));
    if (value === undefined) return;
    sum ??= {};
    sum[key] = (sum[key] ?? 0) + (value as number);
  }

  return {
    add(usage: unknown): void {
      if (!isLoose(usage)) return;
      add('inputTokens', usage.inputTokens, usage.input_tokens);
      add('outputTokens', usage.outputTokens, usage.output_tokens);
      add('totalTokens', usage.totalTokens, usage.total_tokens);
      const input = detailsOf(usage.inputTokensDetails ?? usage.input_tokens_details);
      const output = detailsOf(usage.outputTokensDetails ?? usage.output_tokens_details);
      for (const one of input) add('cachedInputTokens', one.cached_tokens);
      for (const one of output) add('reasoningTokens', one.reasoning_tokens);
    },
    /** What a message has cost before. */
    goOnWith(usage: unknown): void {
      if (!isLoose(usage)) return;
      for (const key of KEYS) add(key, usage[key]);
    },
    total: (): { usage?: Usage } => (sum ? { usage: { ...sum } } : {}),
  };
}

/** One set of details, or one for each request. */
function detailsOf(details: unknown): Loose[] {
  return (Array.isArray(details) ? details : [details]).filter(isLoose);
}
