/**
 * What every `SessionStore` is held to: each MUST above the interface in `src/sessions/storage.ts`,
 * and each method. Rigs that can be reopened are, between writing and reading.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { SessionStore, TurnChanges } from '../src/sessions/storage.ts';
import {
  type Bench,
  CHANNEL,
  idsOf,
  message,
  OTHER_CHANNEL,
  participant,
  question,
  type SetUpSessionStore,
  turn,
  turnIdsOf,
} from './session-storage-helpers.ts';
import { describeAgreement } from './session-storage-model.ts';
import { describeSessions } from './session-storage-sessions.ts';
import { describeTransactions } from './session-storage-transactions.ts';
import { describeAnyJson } from './session-storage-values.ts';

export type { SetUpSessionStore } from './session-storage-helpers.ts';

export function describeSessionStore(name: string, setUp: SetUpSessionStore): void {
  const opened: SessionStore[] = [];
  const start = (): Bench => {
    let time = 0;
    const rig = setUp({ now: () => ++time });
    let store = rig.store;
    opened.push(store);
    return {
      store: () => store,
      writing: (sessionId = 's') => store.open(sessionId),
      reading(sessionId = 's') {
        store = rig.reopen?.() ?? store;
        opened.push(store);
        return store.open(sessionId);
      },
    };
  };

  describe(`${name} as a session store`, () => {
    afterEach(() => {
      for (const store of opened.splice(0)) store.close();
    });
    describe('keeps messages', () => describeMessages(start));
    describe('keeps turns', () => describeTurns(start));
    describe('keeps events', () => describeEvents(start));
    describe('keeps questions, participants and values', () => describeTheRest(start));
    describe('keeps whatever it is given', () => describeAnyJson(start));
    describe('keeps all of a transaction or nothing', () => describeTransactions(start));
    describe('keeps many sessions', () => describeSessions(start));
    describe('agrees with a simple model', () => describeAgreement(start));
  });
}

function describeMessages(start: () => Bench): void {
  it('in the order they were added, whatever their ids and times', () => {
    const bench = start();
    for (const id of ['b', 'c', 'a']) {
      expect(bench.writing().addMessage(message(id, { createdAt: id.charCodeAt(0) }))).toBe(true);
    }
    const added = ['b', 'c', 'a'].map((id) => message(id, { createdAt: id.charCodeAt(0) }));
    expect(bench.reading().messages()).toEqual(added);
  });

  it('once: the same id again is refused and changes nothing', () => {
    const bench = start();
    bench.writing().addMessage(message('a', { content: 'first' }));
    bench.writing('other').addMessage(message('x'));
    expect(bench.writing().addMessage(message('a', { content: 'second' }))).toBe(false);
    expect(bench.reading().messages()).toEqual([message('a', { content: 'first' })]);
    expect(bench.store().list()[0]?.sessionId).toBe('other');
  });

  it('and gives the last so many, the oldest first', () => {
    const bench = start();
    for (const id of ['a', 'b', 'c']) bench.writing().addMessage(message(id));
    const session = bench.reading();
    expect(idsOf(session.messages({ limit: 2 }))).toEqual(['b', 'c']);
    expect(idsOf(session.messages({ limit: 0 }))).toEqual([]);
    expect(idsOf(session.messages({ limit: 4 }))).toEqual(['a', 'b', 'c']);
    expect(idsOf(session.messages({ limit: Number.POSITIVE_INFINITY }))).toEqual(['a', 'b', 'c']);
  });

  it('and gives the latest that fit, in bytes of UTF-8, and none behind one that does not', () => {
    const bench = start();
    const sizes = ['x', 'é'.repeat(1_000), 'x'.repeat(10), 'x'].map((content, index) => {
      const added = message(`m${index}`, { content });
      bench.writing().addMessage(added);
      return Buffer.byteLength(JSON.stringify(added));
    });
    const session = bench.reading();
    const within = (maxBytes: number, limit = 10) => idsOf(session.messages({ maxBytes, limit }));
    const [first = 0, second = 0, third = 0, fourth = 0] = sizes;
    expect(within(fourth - 1)).toEqual([]);
    expect(within(fourth)).toEqual(['m3']);
    expect(within(fourth + third + first)).toEqual(['m2', 'm3']);
    expect(within(fourth + third + second - 1)).toEqual(['m2', 'm3']);
    expect(within(fourth + third + second)).toEqual(['m1', 'm2', 'm3']);
    expect(within(Infinity, 1)).toEqual(['m3']);
  });

  it('and gives those before one of them', () => {
    const bench = start();
    for (const id of ['a', 'b', 'c']) bench.writing().addMessage(message(id));
    bench.writing().addMessage(message('d', OTHER_CHANNEL));
    const session = bench.reading();
    expect(idsOf(session.messages({ before: 'c' }))).toEqual(['a', 'b']);
    expect(idsOf(session.messages({ before: 'd', channel: CHANNEL, limit: 2 }))).toEqual([
      'b',
      'c',
    ]);
    expect(idsOf(session.messages({ before: 'a' }))).toEqual([]);
    expect(session.messages({ before: 'nobody' })).toEqual([]);
  });

  it('and gives those of one channel', () => {
    const bench = start();
    bench.writing().addMessage(message('a'));
    bench.writing().addMessage(message('b', OTHER_CHANNEL));
    bench.writing().addMessage(message('c'));
    bench.writing().addMessage(message('d', { channelType: 'chat', channelId: 'default' }));
    const session = bench.reading();
    expect(idsOf(session.messages({ channel: CHANNEL }))).toEqual(['a', 'c']);
    expect(idsOf(session.messages({ channel: CHANNEL, limit: 1 }))).toEqual(['c']);
    expect(idsOf(session.messages({ channel: OTHER_CHANNEL }))).toEqual(['b']);
    expect(session.messages({ channel: { channelType: 'no', channelId: 'default' } })).toEqual([]);
  });

  it('and tells its channels, in the order of their first messages', () => {
    const bench = start();
    expect(bench.writing().channels()).toEqual([]);
    bench.writing().addMessage(message('a', OTHER_CHANNEL));
    bench.writing().addMessage(message('b'));
    bench.writing().addMessage(message('c', OTHER_CHANNEL));
    expect(bench.reading().channels()).toEqual([OTHER_CHANNEL, CHANNEL]);
  });

  it('that are in no channel, and then in none of them', () => {
    const bench = start();
    const { channelType: _, channelId: __, ...lone } = message('a');
    bench.writing().addMessage(lone);
    const session = bench.reading();
    expect(session.messages()).toEqual([lone]);
    expect(session.channels()).toEqual([]);
    expect(session.messages({ channel: CHANNEL })).toEqual([]);
  });
}

function describeTurns(start: () => Bench): void {
  it('and finds them by their id and by their prompt', () => {
    const bench = start();
    const whole = turn('t1', {
      attachments: [{ type: 'file', mime: 'text/plain', url: 'data:,x', filename: 'x.txt' }],
      model: 'm',
      authorName: 'Ada',
    });
    expect(bench.writing().addTurn(whole)).toBe(true);
    const session = bench.reading();
    const { content: _, attachments: __, ...info } = whole;
    expect(session.turn('t1')).toEqual(whole);
    expect(session.turnInfo('t1')).toEqual(info);
    expect(session.turnOfPrompt('p-t1')).toEqual(info);
    expect(session.turn('p-t1')).toBeUndefined();
    expect(session.turnOfPrompt('t1')).toBeUndefined();
  });

  it('once: the same turn id or prompt id again is refused and changes nothing', () => {
    const bench = start();
    bench.writing().addTurn(turn('t1'));
    bench.writing('other').addMessage(message('x'));
    expect(bench.writing().addTurn(turn('t1', { promptId: 'p-new' }))).toBe(false);
    expect(bench.writing().addTurn(turn('t-new', { promptId: 'p-t1' }))).toBe(false);
    const session = bench.reading();
    expect(turnIdsOf(session.openTurns())).toEqual(['t1']);
    expect(session.turnOfPrompt('p-new')).toBeUndefined();
    expect(session.turn('t-new')).toBeUndefined();
    expect(bench.store().list()[0]?.sessionId).toBe('other');
  });

  it('with what became of them; what is not said stays', () => {
    const bench = start();
    bench.writing().addTurn(turn('t1'));
    bench.writing().addTurn(turn('t2'));
    bench.writing().updateTurn('t1', { status: 'running', startedAt: 5 });
    bench.writing().updateTurn('t1', { status: 'ended', endedAt: 0, reason: 'error', error: '' });
    bench.writing().updateTurn('t1', {});
    bench.writing().updateTurn('t1', { startedAt: undefined } as unknown as TurnChanges);
    const ended = {
      status: 'ended',
      startedAt: 5,
      endedAt: 0,
      reason: 'error',
      error: '',
    } as const;
    const session = bench.reading();
    expect(session.turn('t1')).toEqual(turn('t1', ended));
    expect(session.turnOfPrompt('p-t1')).toMatchObject(ended);
    expect(session.turn('t2')).toEqual(turn('t2'));
  });

  it('and changes nothing of one that is not there', () => {
    const bench = start();
    bench.writing().updateTurn('t1', { status: 'running' });
    expect(bench.reading().turn('t1')).toBeUndefined();
    expect(bench.store().list()).toEqual([]);
  });

  it('and tells which are open: what runs, then what waits, as it was added', () => {
    const bench = start();
    for (const id of ['d', 'c', 'b', 'a']) {
      bench.writing().addTurn(turn(id, { askedAt: id.charCodeAt(0) }));
    }
    bench.writing().updateTurn('b', { status: 'running' });
    bench.writing().updateTurn('c', { status: 'ended', endedAt: 1, reason: 'withdrawn' });
    expect(turnIdsOf(bench.reading().openTurns())).toEqual(['b', 'd', 'a']);
  });
}

function describeEvents(start: () => Bench): void {
  it('each entry as it was appended, from where it is asked', () => {
    const bench = start();
    bench.writing().addTurn(turn('t1'));
    bench.writing().addTurn(turn('t2'));
    bench.writing().appendEvents('t1', 1, '{"seq":1}');
    bench.writing().appendEvents('t2', 1, '{"other":1}');
    bench.writing().appendEvents('t1', 4, '{"seq":2},{"seq":3},{"seq":4}');
    bench.writing().appendEvents('t1', 10, '{"seq":"to 10"}');
    const session = bench.reading();
    const [first, second, third] = [
      '{"seq":1}',
      '{"seq":2},{"seq":3},{"seq":4}',
      '{"seq":"to 10"}',
    ];
    expect(session.events('t1', 0)).toEqual([first, second, third]);
    expect(session.events('t1', 1)).toEqual([second, third]);
    // It has some before and some after.
    expect(session.events('t1', 3)).toEqual([second, third]);
    expect(session.events('t1', 4)).toEqual([third]);
    expect(session.events('t1', 10)).toEqual([]);
    expect(session.events('t3', 0)).toEqual([]);
  });

  it('as many as fit, but always one', () => {
    const bench = start();
    bench.writing().addTurn(turn('t1'));
    for (const seq of [1, 2, 3]) bench.writing().appendEvents('t1', seq, '"éé"');
    const session = bench.reading();
    expect(session.events('t1', 0, 0)).toHaveLength(1);
    expect(session.events('t1', 0, 11)).toHaveLength(1);
    expect(session.events('t1', 0, 12)).toHaveLength(2);
    expect(session.events('t1', 1, 18)).toHaveLength(2);
  });

  it('of the last turns that ended as far as they fit', () => {
    const bench = start();
    for (const [endedAt, id] of ['a', 'b', 'c'].entries()) {
      bench.writing().addTurn(turn(id));
      bench.writing().appendEvents(id, 1, '"1234"');
      bench.writing().updateTurn(id, { status: 'ended', endedAt });
    }
    bench.writing().trimEvents(3, 12);
    const left = ['a', 'b', 'c'].filter((id) => bench.reading().events(id, 0).length > 0);
    expect(left).toEqual(['b', 'c']);
    bench.writing().trimEvents(3, 5);
    expect(bench.reading().events('c', 0)).toEqual([]);
  });

  it('of turns that are there, in their order', () => {
    const bench = start();
    bench.writing().appendEvents('t1', 1, '{}');
    bench.writing().addTurn(turn('t1'));
    expect(bench.writing().events('t1', 0)).toEqual([]);
    bench.writing().appendEvents('t1', 2, '"two"');
    for (const late of [2, 1]) {
      expect(() => bench.writing().appendEvents('t1', late, '{}')).toThrow(/out of order/);
    }
    expect(bench.reading().events('t1', 0)).toEqual(['"two"']);
  });

  it('of the last turns that ended, and of all that have not', () => {
    const bench = start();
    const ends = { a: 30, b: 10, c: 20, d: 20 };
    for (const id of ['a', 'b', 'c', 'd', 'running', 'queued']) {
      bench.writing().addTurn(turn(id));
      bench.writing().appendEvents(id, 1, `"${id}"`);
    }
    bench.writing().updateTurn('running', { status: 'running' });
    for (const [id, endedAt] of Object.entries(ends)) {
      bench.writing().updateTurn(id, { status: 'ended', endedAt });
    }
    const left = () =>
      ['a', 'b', 'c', 'd', 'running', 'queued'].filter(
        (id) => bench.reading().events(id, 0).length > 0,
      );
    bench.writing().trimEvents(4);
    expect(left()).toEqual(['a', 'b', 'c', 'd', 'running', 'queued']);
    bench.writing().trimEvents(2);
    expect(left()).toEqual(['a', 'd', 'running', 'queued']);
    bench.writing().trimEvents(0);
    expect(left()).toEqual(['running', 'queued']);
    expect(bench.reading().turn('a')).toEqual(turn('a', { status: 'ended', endedAt: 30 }));
  });
}

function describeTheRest(start: () => Bench): void {
  it('a question as it was saved last, in its first place', () => {
    const bench = start();
    for (const id of ['q2', 'q1', 'q3']) bench.writing().saveQuestion(question(id));
    bench.writing().saveQuestion(question('q3', { turnId: 't2' }));
    bench.writing().saveQuestion(question('q1', { status: 'answered', answer: false }));
    bench.writing().saveQuestion(question('q2', { expiresAt: 7 }));
    const session = bench.reading();
    const [first, second] = [
      question('q2', { expiresAt: 7 }),
      question('q1', { status: 'answered', answer: false }),
    ];
    const third = question('q3', { turnId: 't2' });
    expect(session.question('q1')).toEqual(second);
    expect(session.question('q4')).toBeUndefined();
    expect(session.openQuestions()).toEqual([first, third]);
    expect(session.questionsOf('t1')).toEqual([first, second]);
    expect(session.questionsOf('t2')).toEqual([third]);
    expect(session.questionsOf('t3')).toEqual([]);
  });

  it('a participant as saved last, in its first place', () => {
    const bench = start();
    for (const id of ['b', 'a']) bench.writing().saveParticipant(participant(id));
    bench
      .writing()
      .saveParticipant(participant('b', { name: 'Bea', role: 'owner', lastSeenAt: 9 }));
    const session = bench.reading();
    const bea = participant('b', { name: 'Bea', role: 'owner', lastSeenAt: 9 });
    expect(session.participant('b')).toEqual(bea);
    expect(session.participant('c')).toBeUndefined();
    expect(session.participants()).toEqual([bea, participant('a')]);
  });

  it('a value as it was set last', () => {
    const bench = start();
    expect(bench.writing().get('k')).toBeUndefined();
    bench.writing().set('k', '1');
    bench.writing().set('k', '');
    bench.writing().set('other', '2');
    const session = bench.reading();
    expect([session.get('k'), session.get('other'), session.get('none')]).toEqual([
      '',
      '2',
      undefined,
    ]);
  });
}
