import { describe, expect, it } from 'vitest';
import { memorySessionStore } from './memory-store.ts';
import { watchStore } from './watched-store.ts';

describe('a watched session store', () => {
  function watchedStore() {
    const state = { errors: 0, now: 0 };
    const watched = watchStore(memorySessionStore(), {
      onError: () => void state.errors++,
      now: () => state.now,
    });
    const storage = watched.store.open('s');
    const fail = () =>
      storage.transaction(() => {
        storage.saveParticipant({ id: 'ann', name: 1n } as never);
      });
    return { state, watched, storage, fail };
  }

  it('counts an error once, however many transactions it passes', () => {
    const { state, storage, fail } = watchedStore();
    expect(() => storage.transaction(fail)).toThrow(TypeError);
    expect(state.errors).toBe(1);
  });

  it('is failing until a transaction succeeds, or for ten seconds', () => {
    const { state, watched, storage, fail } = watchedStore();
    expect(watched.isFailing).toBe(false);
    expect(fail).toThrow(TypeError);
    expect(watched.isFailing).toBe(true);
    storage.transaction(() => undefined);
    expect(watched.isFailing).toBe(false);
    expect(fail).toThrow(TypeError);
    state.now = 9_999;
    expect(watched.isFailing).toBe(true);
    state.now = 10_000;
    expect(watched.isFailing).toBe(false);
  });
});
