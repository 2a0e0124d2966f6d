import { expect, it } from 'vitest';
import {
  type Bench,
  idsOf,
  message,
  participant,
  prompt,
  promptIdsOf,
} from './session-storage-helpers.ts';

export function describeTransactions(start: () => Bench): void {
  it('and returns what it returned', () => {
    const bench = start();
    const given = bench.writing().transaction(() => {
      bench.writing().addMessage(message('a'));
      return bench.writing().addPrompt(prompt('p'));
    });
    expect(given).toBe(true);
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['a']);
    expect(promptIdsOf(session.openPrompts())).toEqual(['p']);
  });

  it('of each kind there is, throwing the error on', () => {
    const bench = start();
    const session = bench.writing();
    session.addPrompt(prompt('p1', { status: 'running' }));
    session.addPrompt(prompt('p2', { status: 'ended', endedAt: 1 }));
    session.saveParticipant(participant('p'));
    const [listed, bytes] = [bench.store().list(), session.bytes()];
    const error = new Error('no');
    const run = () =>
      session.transaction(() => {
        session.addMessage(message('m'));
        session.addPrompt(prompt('p3'));
        session.updatePrompt('p1', { status: 'ended', endedAt: 2, outcome: 'finished' });
        session.updatePrompt('p2', { error: 'late' });
        session.saveParticipant(participant('p', { name: 'P' }));
        session.saveParticipant(participant('p2'));
        // What it has done so far, it sees.
        expect(session.prompt('p3')).toEqual(prompt('p3'));
        expect([session.messages().length, session.openPrompts().length]).toEqual([1, 1]);
        throw error;
      });
    expect(run).toThrow(error);
    const after = bench.reading();
    expect([after.messages(), after.channels()]).toEqual([[], []]);
    expect(after.prompt('p1')).toEqual(prompt('p1', { status: 'running' }));
    expect(after.prompt('p2')).toEqual(prompt('p2', { status: 'ended', endedAt: 1 }));
    expect(promptIdsOf(after.openPrompts())).toEqual(['p1']);
    for (const key of ['promptId', 'turnId', 'messageId'] as const) {
      expect(after.promptInfo(key, prompt('p3')[key])).toBeUndefined();
    }
    expect(after.participants()).toEqual([participant('p')]);
    expect(after.bytes()).toBe(bytes);
    expect(bench.store().list()).toEqual(listed);
    // What was undone can be done.
    expect(after.addPrompt(prompt('p3'))).toBe(true);
    expect(after.addMessage(message('m'))).toBe(true);
  });

  it('so that a session that began in it never did', () => {
    const bench = start();
    const run = () =>
      bench.writing().transaction(() => {
        bench.writing().saveParticipant(participant('p'));
        throw new Error('no');
      });
    expect(run).toThrow('no');
    bench.reading();
    expect(bench.store().list()).toEqual([]);
  });

  it('so that a session that was deleted in it is there', () => {
    const bench = start();
    bench.writing().addMessage(message('m'));
    const run = () =>
      bench.writing().transaction(() => {
        bench.store().delete('s');
        bench.writing().addMessage(message('n'));
        throw new Error('no');
      });
    expect(run).toThrow('no');
    expect(idsOf(bench.reading().messages())).toEqual(['m']);
  });

  it('over several sessions', () => {
    const bench = start();
    const run = () =>
      bench.writing('one').transaction(() => {
        for (const id of ['one', 'two']) bench.writing(id).addMessage(message('m'));
        throw new Error('no');
      });
    expect(run).toThrow('no');
    bench.reading();
    expect(bench.store().list()).toEqual([]);
  });

  it('with those within it: undone with it, though they went well', () => {
    const bench = start();
    const session = bench.writing();
    const run = () =>
      session.transaction(() => {
        session.transaction(() => session.addMessage(message('inner')));
        throw new Error('outer');
      });
    expect(run).toThrow('outer');
    expect(bench.reading().messages()).toEqual([]);
  });

  it('with those within it: undone by themselves, if only they throw', () => {
    const bench = start();
    const session = bench.writing();
    session.transaction(() => {
      session.addMessage(message('before'));
      const inner = () =>
        session.transaction(() => {
          session.addMessage(message('within'));
          session.transaction(() => session.addPrompt(prompt('deep')));
          throw new Error('inner');
        });
      expect(inner).toThrow('inner');
      expect(idsOf(session.messages())).toEqual(['before']);
      session.addMessage(message('after'));
    });
    const after = bench.reading();
    expect(idsOf(after.messages())).toEqual(['before', 'after']);
    expect(after.prompt('deep')).toBeUndefined();
  });

  it('and is ready for the next', () => {
    const bench = start();
    const session = bench.writing();
    for (const id of ['a', 'b']) {
      expect(() =>
        session.transaction(() => {
          throw new Error(id);
        }),
      ).toThrow(id);
      session.addMessage(message(id));
      session.transaction(() => session.addPrompt(prompt(id)));
    }
    const after = bench.reading();
    expect(idsOf(after.messages())).toEqual(['a', 'b']);
    expect(promptIdsOf(after.openPrompts())).toEqual(['a', 'b']);
  });
}
