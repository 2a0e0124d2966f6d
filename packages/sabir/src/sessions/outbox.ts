type Entry = { runnerSeq: number; frame: string };

/** What was said to the session and has not been confirmed: after a drop it is said again. */
export function createOutbox(send: (frame: string) => void) {
  let entries: Entry[] = [];
  let runnerSeq = 0;
  let bytes = 0;
  let onEmpty: (() => void) | undefined;

  return {
    get bytes() {
      return bytes;
    },
    add(event: object): void {
      runnerSeq++;
      const frame = JSON.stringify({ ...event, runnerSeq });
      entries.push({ runnerSeq, frame });
      bytes += frame.length;
      send(frame);
    },
    confirm(upTo: number): void {
      const at = entries.findIndex((entry) => entry.runnerSeq > upTo);
      const gone = at < 0 ? entries.splice(0) : entries.splice(0, at);
      for (const { frame } of gone) bytes -= frame.length;
      if (entries.length === 0) onEmpty?.();
    },
    sendAgain(): void {
      for (const { frame } of entries) send(frame);
    },
    /** Resolves when everything is confirmed. */
    async emptied(): Promise<void> {
      if (entries.length === 0) return;
      await new Promise<void>((resolve) => {
        onEmpty = resolve;
      });
    },
    clear(): void {
      entries = [];
      bytes = 0;
    },
  };
}
