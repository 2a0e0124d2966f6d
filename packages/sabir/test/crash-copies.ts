import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { onTestFinished, vi } from 'vitest';

/** A copy of a file, and how much had been acknowledged when the process could have been killed with this on the disk. */
export type CrashCopy<Acknowledged> = { file: string; acknowledged: Acknowledged[] };

/**
 * Copies a SQLite file and its log after each statement that has changed them. A copy is what a process that is killed right
 * then leaves behind: whatever SQLite has not written yet is not in it.
 */
export function copyAtEveryChange<Acknowledged>(file: string) {
  const copies: CrashCopy<Acknowledged>[] = [];
  const acknowledged: Acknowledged[] = [];
  const paths = [file, `${file}-wal`];
  let seen = '';

  function look(): void {
    const hash = createHash('sha1');
    for (const path of paths) if (existsSync(path)) hash.update(readFileSync(path));
    const state = hash.digest('hex');
    if (state !== seen) {
      seen = state;
      const copy = `${file}.crash-${copies.length}`;
      copies.push({ file: copy, acknowledged: [] });
      for (const path of paths) {
        if (existsSync(path)) copyFileSync(path, path.replace(file, copy));
      }
    }
    // The later the kill, the more was acknowledged with the same bytes on the disk.
    Object.assign(copies.at(-1) ?? {}, { acknowledged: [...acknowledged] });
  }

  function lookAfter<Target extends object>(target: Target, name: keyof Target & string): void {
    const call = target[name] as (...given: unknown[]) => unknown;
    const spy = vi.spyOn(target as Record<string, () => unknown>, name);
    spy.mockImplementation(function (this: unknown, ...given: unknown[]) {
      try {
        return call.apply(this, given);
      } finally {
        look();
      }
    });
    onTestFinished(() => spy.mockRestore());
  }

  lookAfter(DatabaseSync.prototype, 'exec');
  for (const name of ['run', 'get', 'all'] as const) lookAfter(StatementSync.prototype, name);

  return {
    acknowledge(what: Acknowledged): void {
      acknowledged.push(what);
      look();
    },
    /** Ends the copying. */
    stop(): CrashCopy<Acknowledged>[] {
      vi.restoreAllMocks();
      return copies;
    },
  };
}
