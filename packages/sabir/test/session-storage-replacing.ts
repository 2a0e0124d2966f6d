import { expect, it } from 'vitest';
import {
  type Bench,
  CHANNEL,
  idsOf,
  message,
  OTHER_CHANNEL,
  says,
  sessionIdsOf,
} from './session-storage-helpers.ts';

export function describeReplacing(start: () => Bench): void {
  /** `a` to `c` in one channel, `x` in another. */
  function fill(): Bench {
    const bench = start();
    for (const id of ['a', 'b']) bench.writing().addMessage(message(id));
    bench.writing().addMessage(message('x', OTHER_CHANNEL));
    bench.writing().addMessage(message('c'));
    bench.writing('other').addMessage(message('b'));
    return bench;
  }

  it('from one of them on, in its channel and its session only', () => {
    const bench = fill();
    bench.writing().replaceMessages('b', 'p');
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['a', 'x']);
    expect(idsOf(session.messages({ channel: CHANNEL, limit: 1 }))).toEqual(['a']);
    expect(idsOf(session.messages({ before: 'x' }))).toEqual(['a']);
    expect(idsOf(session.messages({ from: 'a' }))).toEqual(['a', 'x']);
    expect(session.messages({ before: 'c' })).toEqual([]);
    expect(session.messages({ from: 'b' })).toEqual([]);
    expect(session.message('b')).toBeUndefined();
    expect(idsOf(bench.store().open('other').messages())).toEqual(['b']);
  });

  it('and keeps them, with all of their fields, under the prompt that replaced them', () => {
    const bench = start();
    const question = message('q', { authorId: 'ada', authorName: 'Ada', promptId: 'p1' });
    const answer = message('a', { role: 'assistant', promptId: 'p1', metadata: { usage: 1 } });
    for (const one of [question, answer]) bench.writing().addMessage(one);
    bench.writing().replaceMessages('q', 'p2');
    bench.writing().addMessage(message('q', { promptId: 'p2' }));
    bench.writing().replaceMessages('q', 'p3');
    const session = bench.reading();
    expect(session.replacedMessages('p2')).toEqual([question, answer]);
    expect(session.replacedMessages('p3')).toEqual([message('q', { promptId: 'p2' })]);
    expect(session.replacedMessages('p1')).toEqual([]);
    expect(session.messages()).toEqual([]);
  });

  it('and lets their ids be used again, behind all that is there', () => {
    const bench = fill();
    bench.writing().replaceMessages('a', 'p');
    const again = message('a', { parts: says('anew') });
    expect(bench.writing().addMessage(again)).toBe(true);
    expect(bench.writing().addMessage(again)).toBe(false);
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['x', 'a']);
    expect(session.message('a')).toEqual(again);
    expect(idsOf(session.messages({ before: 'a' }))).toEqual(['x']);
  });

  it('and finds the id of a replaced message in its channel, until the message is restored', () => {
    const bench = fill();
    const replaced = (id: string, channel = CHANNEL) => bench.reading().wasReplaced(id, channel);
    expect(replaced('b')).toBe(false);
    bench.writing().replaceMessages('b', 'p');
    expect([replaced('a'), replaced('b'), replaced('c'), replaced('x')]).toEqual([
      ...[false, true, true, false],
    ]);
    expect(replaced('b', OTHER_CHANNEL)).toBe(false);
    expect(bench.store().open('other').wasReplaced('b', CHANNEL)).toBe(false);
    expect(bench.store().open('never written to').wasReplaced('b', CHANNEL)).toBe(false);
    bench.writing().addMessage(message('b', { parts: says('anew') }));
    expect(replaced('b')).toBe(true);
    bench.writing().restoreMessages('p');
    expect([replaced('b'), replaced('c')]).toEqual([true, false]);
  });

  it('and puts back what a prompt replaced, to where it was', () => {
    const bench = fill();
    bench.writing().replaceMessages('c', 'p1');
    bench.writing().replaceMessages('b', 'p2');
    bench.writing().restoreMessages('p2');
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['a', 'b', 'x']);
    expect(session.replacedMessages('p2')).toEqual([]);
    expect(idsOf(session.replacedMessages('p1'))).toEqual(['c']);
    session.restoreMessages('p1');
    expect(idsOf(session.messages())).toEqual(['a', 'b', 'x', 'c']);
  });

  it('and puts back none whose id is used again', () => {
    const bench = fill();
    bench.writing().replaceMessages('b', 'p');
    const again = message('b', { parts: says('anew') });
    bench.writing().addMessage(again);
    bench.writing().restoreMessages('p');
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['a', 'x', 'c', 'b']);
    expect(session.message('b')).toEqual(again);
    expect(idsOf(session.replacedMessages('p'))).toEqual(['b']);
  });

  it('and puts back the first of two messages with one id that the same prompt replaced', () => {
    const bench = fill();
    bench.writing().replaceMessages('c', 'p');
    bench.writing().addMessage(message('c', { parts: says('anew') }));
    bench.writing().replaceMessages('c', 'p');
    bench.writing().restoreMessages('p');
    const session = bench.reading();
    expect(session.message('c')).toEqual(message('c'));
    expect(session.replacedMessages('p')).toEqual([message('c', { parts: says('anew') })]);
  });

  it('and changes nothing for a message that is not there, or nothing to put back', () => {
    const bench = fill();
    bench.writing().replaceMessages('b', 'p');
    bench.writing('other').addMessage(message('y'));
    bench.writing().replaceMessages('b', 'p2');
    bench.writing().replaceMessages('nobody', 'p2');
    bench.writing().restoreMessages('p2');
    bench.writing('never written to').replaceMessages('b', 'p2');
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual(['a', 'x']);
    expect(sessionIdsOf(bench.store())).toEqual(['other', 's']);
  });

  it('and goes on counting their bytes, and their channels', () => {
    const bench = fill();
    const before = bench.writing().bytes();
    bench.writing().replaceMessages('a', 'p');
    const session = bench.reading();
    expect(session.bytes()).toBe(before);
    expect(session.channels()).toEqual([CHANNEL, OTHER_CHANNEL]);
  });

  it('as part of a transaction: all of it or nothing', () => {
    const bench = fill();
    const session = bench.writing();
    const run = () =>
      session.transaction(() => {
        session.replaceMessages('a', 'p');
        session.addMessage(message('a', { parts: says('anew') }));
        throw new Error('undone');
      });
    expect(run).toThrow('undone');
    expect(session.messages()).toEqual([
      message('a'),
      message('b'),
      message('x', OTHER_CHANNEL),
      message('c'),
    ]);
    session.replaceMessages('b', 'p');
    const back = () =>
      session.transaction(() => {
        session.restoreMessages('p');
        throw new Error('undone');
      });
    expect(back).toThrow('undone');
    expect(idsOf(bench.reading().messages())).toEqual(['a', 'x']);
  });
}
