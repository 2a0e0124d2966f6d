import { expect, it } from 'vitest';
import {
  type Bench,
  idsOf,
  message,
  participant,
  question,
  turn,
  turnIdsOf,
} from './session-storage-helpers.ts';

export function describeTransactions(start: () => Bench): void {
  it('and gives what it gave', () => {
    const bench = start();
    const given = bench.writing().transaction(() => {
      bench.writing().addMessage(message('a'));
      return bench.writing().addTurn(turn('t'));
    });
    expect(given).toBe(true);
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['a']);
    expect(turnIdsOf(session.openTurns())).toEqual(['t']);
  });

  it('of each kind there is, throwing the error on', () => {
    const bench = start();
    const session = bench.writing();
    session.addTurn(turn('t1', { status: 'running' }));
    session.appendEvents('t1', 1, '1');
    session.addTurn(turn('t2', { status: 'ended', endedAt: 1 }));
    session.appendEvents('t2', 1, '1');
    session.saveQuestion(question('q'));
    session.saveParticipant(participant('p'));
    session.set('k', 'before');
    const listed = bench.store().list();
    const error = new Error('no');
    const run = () =>
      session.transaction(() => {
        session.addMessage(message('m'));
        session.addTurn(turn('t3'));
        session.updateTurn('t1', { status: 'ended', endedAt: 2 });
        session.appendEvents('t1', 2, '2');
        session.trimEvents(0);
        session.saveQuestion(question('q', { status: 'expired' }));
        session.saveQuestion(question('q2'));
        session.saveParticipant(participant('p', { name: 'P' }));
        session.saveParticipant(participant('p2'));
        session.set('k', 'after');
        session.set('k2', 'after');
        // What it has done so far, it sees.
        expect([session.get('k'), session.messages().length]).toEqual(['after', 1]);
        throw error;
      });
    expect(run).toThrow(error);
    const after = bench.reading();
    expect(after.messages()).toEqual([]);
    expect(after.openTurns()).toMatchObject([{ turnId: 't1', status: 'running' }]);
    expect([after.turn('t3'), after.turnOfPrompt('p-t3')]).toEqual([undefined, undefined]);
    expect([after.events('t1', 0), after.events('t2', 0)]).toEqual([['1'], ['1']]);
    expect(after.openQuestions()).toEqual([question('q')]);
    expect(after.participants()).toEqual([participant('p')]);
    expect([after.get('k'), after.get('k2')]).toEqual(['before', undefined]);
    expect(bench.store().list()).toEqual(listed);
  });

  it('so that a session that began in it never did', () => {
    const bench = start();
    const run = () =>
      bench.writing().transaction(() => {
        bench.writing().set('k', 'v');
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
          session.transaction(() => session.set('k', 'deep'));
          throw new Error('inner');
        });
      expect(inner).toThrow('inner');
      expect(idsOf(session.messages())).toEqual(['before']);
      session.addMessage(message('after'));
    });
    const after = bench.reading();
    expect(idsOf(after.messages())).toEqual(['before', 'after']);
    expect(after.get('k')).toBeUndefined();
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
      session.transaction(() => session.set(id, id));
    }
    const after = bench.reading();
    expect(idsOf(after.messages())).toEqual(['a', 'b']);
    expect([after.get('a'), after.get('b')]).toEqual(['a', 'b']);
  });
}
