import { describe, expect, it } from 'vitest';
import { createLocalNotes } from '../turns/local-notes.ts';
import { createOwedReplays } from './owed-replays.ts';

describe('an answer that a history left out', () => {
  it('can be resumed for a minute if its turn ran, and for an hour if its prompt waited', async () => {
    let now = 0;
    const notes = createLocalNotes(() => now);
    const owed = createOwedReplays({ notes, ended: async () => [] });
    await owed.owe('carl', 'running');
    await owed.owe('carl', 'waiting', true);
    now = 60_000;
    expect(await owed.take('carl', 'running')).toBe(false);
    now = 3_599_999;
    expect(await owed.take('carl', 'waiting')).toBe(true);
    expect(await owed.take('carl', 'waiting')).toBe(false);
  });
});
