import type { Chunk } from '../core/chunks.ts';
import type { RunnerFrame } from './runner-protocol.ts';

type Entry = { turnId: string; seq: number; frame: string };

/** The frames that the session has not confirmed: after a drop they are sent again. */
export function createOutbox(send: (frame: string) => void) {
  let entries: Entry[] = [];
  /** How many frames each turn has; forgotten when all of them are confirmed and another turn has begun. */
  const counts = new Map<string, number>();
  let bytes = 0;
  let onEmpty: (() => void) | undefined;

  return {
    get bytes() {
      return bytes;
    },
    add(turnId: string, chunks: Chunk[]): void {
      const seq = (counts.get(turnId) ?? 0) + 1;
      if (seq === 1) {
        for (const known of counts.keys()) {
          if (!entries.some((entry) => entry.turnId === known)) counts.delete(known);
        }
      }
      counts.set(turnId, seq);
      const frame = JSON.stringify({ type: 'chunks', turnId, seq, chunks } satisfies RunnerFrame);
      entries.push({ turnId, seq, frame });
      bytes += frame.length;
      send(frame);
    },
    /** The session has everything of this turn up to and with this frame. */
    confirm(turnId: string, upTo: number): void {
      entries = entries.filter((entry) => {
        const isKept = entry.turnId !== turnId || entry.seq > upTo;
        if (!isKept) bytes -= entry.frame.length;
        return isKept;
      });
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
  };
}
