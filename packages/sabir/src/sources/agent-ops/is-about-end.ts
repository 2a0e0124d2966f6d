/** Of the turn that was aborted: one that has run to its end is named. */
export function isUnnamedEnd(event: unknown): boolean {
  return isAboutEnd(event) && (event as { turnId?: unknown }).turnId == null;
}

/** Says that a turn is over, or that nothing runs. */
export function isAboutEnd(event: unknown): boolean {
  const { type, data } = (event ?? {}) as { type?: unknown; data?: { runnerBusy?: unknown } };
  if (type === 'status') return data?.runnerBusy === false;
  return type === 'complete' || type === 'aborted' || type === 'message.finalize';
}
