import { describe, expect, it } from 'vitest';
import { idsOf, message, sessionIdsOf } from '../../test/session-storage-helpers.ts';
import { memorySessionStore } from './memory-store.ts';
import { watchStore } from './watched-store.ts';

describe('a watched session store', () => {
  function watchedStore() {
    const state = { errors: 0, now: 0 };
    const store = memorySessionStore();
    const watched = watchStore(store, {
      onError: () => void state.errors++,
      now: () => state.now,
    });
    const storage = watched.store.open('s');
    const fail = () =>
      storage.transaction(() => {
        storage.saveParticipant({ id: 'ann', name: 1n } as never);
      });
    return { state, store, watched, storage, fail };
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

  it('has the log of the store, and what is written through it is in the store', () => {
    const { store, watched, storage } = watchedStore();
    expect(watched.store.log).toBe(store.log);
    storage.addMessage(message('m'));
    expect(idsOf(store.open('s').messages())).toEqual(['m']);
    expect(sessionIdsOf(watched.store)).toEqual(['s']);
  });
});
