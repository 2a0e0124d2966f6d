const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

/** Until when a question can be answered. */
export function ExpiryLine({ expiresAt }: { expiresAt: number | undefined }) {
  if (!expiresAt) return null;
  return <p className="mt-0.5 text-xs text-ink-soft">Open until {time.format(expiresAt)}</p>;
}

/** Why somebody's answer did not count. */
export function ProblemLine({ problem }: { problem: string | undefined }) {
  if (!problem) return null;
  return (
    <p className="px-3.5 pb-2.5 pl-9.5 text-sm text-terracotta" role="alert">
      {problem}
    </p>
  );
}
