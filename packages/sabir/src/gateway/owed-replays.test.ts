import { describe, expect, it } from 'vitest';
import { createLocalNotes } from '../turns/local-notes.ts';
import type { TurnInfo } from '../turns/log.ts';
import type { Place } from './chat-route.ts';
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

  it('is looked for among the last turns, all at once, and shown oldest first', async () => {
    const notes = createLocalNotes(() => 0);
    let asking = 0;
    let most = 0;
    const turn = (id: string) =>
      ({ turnId: id, messageId: id, lastSeq: 1, outcome: { status: 'finished' } }) as TurnInfo;
    const limits: number[] = [];
    const owed = createOwedReplays({
      notes: {
        ...notes,
        async take(name) {
          most = Math.max(most, ++asking);
          await Promise.resolve();
          asking--;
          return notes.take(name);
        },
      },
      async ended(_, __, limit) {
        limits.push(limit);
        return ['one', 'two', 'three'].map(turn);
      },
    });
    const place = { user: { id: 'carl' }, logSession: 's', logChat: 'c' } as Place;
    const next = async () => (await owed.next(place, turn('three')))?.turnId;
    for (const id of ['one', 'two', 'three']) await owed.owe('carl', id, true);
    const shown = [await next(), await next(), await next(), await next()];
    expect(shown).toEqual(['one', 'two', 'three', undefined]);
    expect(most).toBe(2);
    expect(new Set(limits)).toEqual(new Set([20]));
  });
});
