import type { ChatMessage } from '../chat-message.ts';

const count = new Intl.NumberFormat('en');
const money = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  maximumSignificantDigits: 2,
});

/** What the answer cost, over all of its agents. */
export function UsageLine({ metadata }: { metadata: NonNullable<ChatMessage['metadata']> }) {
  const { usage, totalCostUsd } = metadata;
  const figures = [
    usage?.inputTokens && `${count.format(usage.inputTokens)} tokens read`,
    usage?.outputTokens && `${count.format(usage.outputTokens)} written`,
    totalCostUsd !== undefined && money.format(totalCostUsd),
  ].filter(Boolean);
  return (
    <p className="mt-5 text-xs text-ink-soft tabular-nums" data-usage>
      {figures.join(' · ')}
    </p>
  );
}
