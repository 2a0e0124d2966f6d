/**
 * The text of the parts of a turn, told in deltas and again in snapshots. Owns what has been told of
 * each part, so that everything is told once.
 */
export function createPartTexts() {
  const parts = new Map<string, { told: string; isCut: boolean }>();

  function get(partId: string) {
    const part = parts.get(partId) ?? { told: '', isCut: false };
    parts.set(partId, part);
    return part;
  }

  return {
    /** What is new in a delta: nothing if some before it may be missing. */
    delta(partId: string, delta: string): string {
      const part = get(partId);
      if (part.isCut) return '';
      part.told += delta;
      return delta;
    },
    /** What is new in the whole text. What was told otherwise before cannot be taken back. */
    whole(partId: string, text: string): string {
      const part = get(partId);
      if (!text.startsWith(part.told)) return '';
      const news = text.slice(part.told.length);
      part.told = text;
      return news;
    },
    /** Deltas of it may have been missed: only its whole text is to be trusted from now on. */
    cut(partId: string): void {
      get(partId).isCut = true;
    },
  };
}
