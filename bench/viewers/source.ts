/** What both servers stream, and what they tell the process that measures them. */
import { setTimeout } from 'node:timers/promises';

const [, , perSecond = '200', seconds = '10'] = process.argv;

/** Deltas at a steady pace, those that are due at once in one batch; each holds its time of sending. */
export async function* deltas(): AsyncGenerator<string[]> {
  const count = Number(perSecond) * Number(seconds);
  const start = performance.now();
  for (let sent = 0; sent < count; ) {
    const due = Math.floor(((performance.now() - start) * Number(perSecond)) / 1000);
    const batch: string[] = [];
    for (; sent < Math.min(due, count); sent++) batch.push(`${process.hrtime.bigint()} `);
    if (batch.length > 0) yield batch;
    await setTimeout(1);
  }
}

export function whenTold(what: string): Promise<void> {
  return new Promise((resolve) => {
    process.on('message', (message) => message === what && resolve());
  });
}

/** Tells that the server listens, and on `mark` what it has used so far, garbage collected or not. */
export function answerMarks(ready: { port: number }): void {
  process.on('message', (message) => {
    if (message === 'collect') globalThis.gc?.();
    if (message !== 'mark' && message !== 'collect') return;
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    process.send?.({ cpuMs: (user + system) / 1000, rss, heapUsed });
  });
  process.on('disconnect', () => process.exit());
  process.send?.(ready);
}
