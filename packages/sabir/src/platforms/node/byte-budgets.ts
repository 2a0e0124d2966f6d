type Budget = { left: number; filledAt: number };

/** A burst is so many seconds' worth. */
const BURST_SECONDS = 16;
/** Of those who have not come back for a while, nothing is kept. */
const MOST_KEPT = 10_000;

/**
 * So many bytes a second for each user. A cost is known only after it was caused: a user who has spent too much
 * waits until the debt is paid.
 */
export function createByteBudgets(perSecond: number) {
  const burst = perSecond * BURST_SECONDS;
  const budgets = new Map<string, Budget>();

  function budgetOf(userId: string): Budget {
    const now = performance.now();
    const { left, filledAt } = budgets.get(userId) ?? { left: burst, filledAt: now };
    return { left: Math.min(burst, left + ((now - filledAt) / 1_000) * perSecond), filledAt: now };
  }

  return {
    isSpent: (userId: string) => budgetOf(userId).left <= 0,
    spend(userId: string, bytes: number): void {
      const { left, filledAt } = budgetOf(userId);
      budgets.delete(userId);
      budgets.set(userId, { left: left - bytes, filledAt });
      const [oldest] = budgets.keys();
      if (budgets.size > MOST_KEPT && oldest !== undefined) budgets.delete(oldest);
    },
  };
}
