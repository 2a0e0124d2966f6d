import { expect, it } from 'vitest';
import { type Bench, message, participant, question, turn } from './session-storage-helpers.ts';

export function describeSessions(start: () => Bench): void {
  it('apart: the same ids in two of them are two things', () => {
    const bench = start();
    for (const id of ['one', 'two']) {
      const session = bench.writing(id);
      expect(session.addMessage(message('m', { content: id }))).toBe(true);
      expect(session.addTurn(turn('t', { content: id }))).toBe(true);
      session.appendEvents('t', 1, `"${id}"`);
      session.saveQuestion(question('q', { turnId: 't', event: { id } }));
      session.saveParticipant(participant('p', { name: id }));
      session.set('k', id);
    }
    bench.writing('one').updateTurn('t', { status: 'ended', endedAt: 1 });
    bench.writing('one').trimEvents(0);
    const two = bench.reading('two');
    expect(two.messages()).toEqual([message('m', { content: 'two' })]);
    expect(two.turn('t')).toEqual(turn('t', { content: 'two' }));
    expect(two.events('t', 0)).toEqual(['"two"']);
    expect(two.questionsOf('t')).toEqual([question('q', { turnId: 't', event: { id: 'two' } })]);
    expect(two.participants()).toEqual([participant('p', { name: 'two' })]);
    expect(two.get('k')).toBe('two');
    expect(bench.store().open('one').events('t', 0)).toEqual([]);
  });

  it('and lists them, those that something happened in last first', () => {
    const bench = start();
    bench.writing('never written to').messages();
    for (const id of ['a', 'b', 'c', 'd']) bench.writing(id).set('k', 'v');
    bench.writing('b').addMessage(message('m'));
    bench.writing('a').addTurn(turn('t'));
    bench.writing('c').addTurn(turn('t'));
    bench.writing('a').updateTurn('t', { status: 'running' });
    // Neither of these is something that happened.
    bench.writing('d').set('k', 'w');
    bench.writing('b').saveParticipant(participant('p'));
    bench.reading();
    const listed = bench.store().list();
    expect(listed.map(({ sessionId }) => sessionId)).toEqual(['a', 'c', 'b', 'd']);
    expect(listed.map(({ updatedAt }) => updatedAt)).toEqual(
      listed.map(({ updatedAt }) => updatedAt).sort((one, other) => other - one),
    );
    expect(bench.store().list(2)).toEqual(listed.slice(0, 2));
    expect(bench.store().list(0)).toEqual([]);
  });

  it('and knows which have a turn that has not ended', () => {
    const bench = start();
    for (const id of ['ended', 'running', 'queued']) bench.writing(id).addTurn(turn('t'));
    bench.writing('running').addTurn(turn('u'));
    bench.writing('running').updateTurn('t', { status: 'running' });
    bench.writing('ended').updateTurn('t', { status: 'ended' });
    bench.writing('no turns').addMessage(message('m'));
    bench.reading();
    expect(bench.store().unfinished().sort()).toEqual(['queued', 'running']);
  });

  it('and deletes one with all that is in it, and nothing else', () => {
    const bench = start();
    for (const id of ['gone', 'kept']) {
      const session = bench.writing(id);
      session.addMessage(message('m'));
      session.addTurn(turn('t'));
      session.appendEvents('t', 1, '"e"');
      session.saveQuestion(question('q', { turnId: 't' }));
      session.saveParticipant(participant('p'));
      session.set('k', 'v');
    }
    const before = bench.writing('gone');
    bench.store().delete('gone');
    bench.store().delete('never there');
    expect([before.messages(), before.channels(), before.openTurns()]).toEqual([[], [], []]);
    expect([before.events('t', 0), before.questionsOf('t'), before.participants()]).toEqual([
      [],
      [],
      [],
    ]);
    expect([before.get('k'), before.turn('t'), before.turnOfPrompt('p-t')]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    // The runner of a session that was deleted may not have heard of it yet.
    before.appendEvents('t', 2, '"late"');
    before.updateTurn('t', { status: 'ended' });
    bench.reading();
    expect(
      bench
        .store()
        .list()
        .map(({ sessionId }) => sessionId),
    ).toEqual(['kept']);
    expect(bench.store().unfinished()).toEqual(['kept']);
    expect(bench.store().open('kept').events('t', 0)).toEqual(['"e"']);
    expect(bench.store().open('gone').addTurn(turn('t'))).toBe(true);
    expect(bench.store().open('gone').events('t', 0)).toEqual([]);
  });

  it('until it is closed: then it says so', () => {
    const bench = start();
    const session = bench.writing();
    session.addMessage(message('m'));
    const store = bench.store();
    store.close();
    store.close();
    for (const call of [
      () => session.messages(),
      () => session.addMessage(message('n')),
      () => session.set('k', 'v'),
      () => session.transaction(() => 1),
      () => store.open('s'),
      () => store.list(),
      () => store.unfinished(),
      () => store.delete('s'),
    ]) {
      expect(call).toThrow('The session store is closed.');
    }
  });
}
