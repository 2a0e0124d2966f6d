import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { SessionStorage } from '../src/sessions/storage.ts';
import {
  type Bench,
  idsOf,
  message,
  participant,
  question,
  turn,
} from './session-storage-helpers.ts';

const LARGE = 'é'.repeat(2.5 * 1024 * 1024);

const STRINGS: [name: string, text: string][] = [
  ['empty', ''],
  ['with NUL characters', '\0a\0b\0'],
  ['of all planes', 'é 漢字 👩‍👩‍👧 \u{10ffff} \ufeff \ufffd'],
  ['with half a surrogate pair', 'a\ud83db'],
  ['of the other half', '\ude00'],
  ['with line ends and quotes', '\r\n\u2028\'"\\`;--'],
];

/** Any code unit in any place: most of these are no valid Unicode. */
const anyString = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0xd700, max: 0xe000 })).map((units) => String.fromCharCode(...units)),
);
const anyJson = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    ...[fc.constant(null), fc.boolean(), fc.double({ noNaN: true, noDefaultInfinity: true })],
    ...[anyString, fc.array(tie('value'))],
    fc.dictionary(fc.oneof(anyString, fc.constantFrom('__proto__', 'constructor')), tie('value')),
  ),
})).value;

/** Puts text in every place a string from outside can go. */
function writeEverywhere(session: SessionStorage, text: string): void {
  session.addMessage(message(text, { content: text, channelType: text, channelId: text }));
  session.addTurn(turn(text, { promptId: text, content: text, channelId: text }));
  session.appendEvents(text, 1, text);
  session.updateTurn(text, { error: text });
  session.saveQuestion(question(text, { turnId: text, event: { text }, answer: text }));
  session.saveParticipant(participant(text, { name: text }));
  session.set(text, text);
}

function expectEverywhere(session: SessionStorage, text: string): void {
  const channel = { channelType: text, channelId: text };
  const told = message(text, { content: text, ...channel });
  expect(session.messages({ channel })).toEqual([told]);
  expect(session.addMessage(told)).toBe(false);
  const asked = turn(text, { promptId: text, content: text, channelId: text, error: text });
  expect(session.turn(text)).toEqual(asked);
  expect(asked).toMatchObject(session.turnOfPrompt(text) ?? {});
  expect(session.events(text, 0)).toEqual([text]);
  expect(session.questionsOf(text)).toEqual([
    question(text, { turnId: text, event: { text }, answer: text }),
  ]);
  expect(session.participant(text)).toEqual(participant(text, { name: text }));
  expect(session.get(text)).toBe(text);
}

export function describeAnyJson(start: () => Bench): void {
  it.each(STRINGS)('a string %s, as a value and as an id', (_name, text) => {
    const bench = start();
    // An id that a careless store takes for the same.
    const neighbour = text.toWellFormed() === text ? `${text}\0` : text.toWellFormed();
    for (const one of [text, neighbour]) writeEverywhere(bench.writing(text), one);
    const session = bench.reading(text);
    for (const one of [text, neighbour]) expectEverywhere(session, one);
    expect(session.channels()).toHaveLength(2);
    expect(bench.store().list()).toMatchObject([{ sessionId: text }]);
    expect(bench.store().unfinished()).toEqual([text]);
    expect(bench.store().open(neighbour).messages()).toEqual([]);
    bench.store().delete(text);
    expect(bench.store().list()).toEqual([]);
  });

  it('5 MB in one piece', () => {
    const bench = start();
    const asked = turn('t', { attachments: [{ type: 'file', mime: 'a/b', url: LARGE }] });
    bench.writing().addMessage(message('m', { content: LARGE }));
    bench.writing().addTurn(asked);
    bench.writing().appendEvents('t', 1, LARGE);
    bench.writing().set('k', LARGE);
    const session = bench.reading();
    // Compared like this, since a failure would print all of it.
    expect(session.messages()[0]?.content === LARGE).toBe(true);
    expect(session.turn('t')?.attachments[0]?.url === LARGE).toBe(true);
    expect(session.events('t', 0)[0] === LARGE).toBe(true);
    expect(session.get('k') === LARGE).toBe(true);
  });

  it('any JSON', () => {
    const bench = start();
    let count = 0;
    const given = new Map<string, string>();
    fc.assert(
      fc.property(anyJson, (value) => {
        const id = `m${++count}`;
        bench.writing().addMessage(message(id, { parts: { value } }));
        bench.writing().saveQuestion(question(id, { event: { value } }));
        given.set(id, JSON.stringify({ value }));
      }),
    );
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual([...given.keys()]);
    for (const { id, parts } of session.messages()) {
      expect(JSON.stringify(parts)).toBe(given.get(id));
      expect(JSON.stringify(session.question(id)?.event)).toBe(given.get(id));
    }
  });

  it('keys that are dangerous elsewhere', () => {
    const bench = start();
    const json = '{"__proto__":{"polluted":1},"constructor":{"prototype":1},"toString":null}';
    bench.writing().addMessage(message('a', { parts: JSON.parse(json) }));
    bench.writing().set('__proto__', 'v');
    bench.writing('__proto__').addTurn(turn('__proto__', { promptId: 'constructor' }));
    const session = bench.reading();
    expect(JSON.stringify(session.messages()[0]?.parts)).toBe(json);
    expect([session.get('__proto__'), session.get('constructor')]).toEqual(['v', undefined]);
    expect(session.turn('constructor')).toBeUndefined();
    expect(bench.store().open('__proto__').turnOfPrompt('constructor')?.turnId).toBe('__proto__');
  });

  it('deep nesting, and refuses what nests deeper than JSON can be written', () => {
    const bench = start();
    const nest = (depth: number) => {
      let value: unknown = 'core';
      for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { value };
      return { value };
    };
    bench.writing().addMessage(message('deep', { parts: nest(1_000) }));
    const tooDeep = { parts: nest(200_000) };
    expect(() => bench.writing().addMessage(message('too deep', tooDeep))).toThrow(RangeError);
    expect(() => bench.writing('new').saveQuestion(question('q', { event: tooDeep }))).toThrow();
    expect(bench.reading().messages()).toEqual([message('deep', { parts: nest(1_000) })]);
    expect(bench.store().list()).toMatchObject([{ sessionId: 's' }]);
  });

  it('as it was when it was given, whatever giver and taker do to it', () => {
    const bench = start();
    const session = bench.writing();
    const parts = { list: [1] };
    const given = {
      message: message('m', { parts }),
      turn: turn('t', { attachments: [{ type: 'file', mime: 'a/b', url: 'x' }] }),
      changes: { status: 'running' as const, startedAt: 1 },
      question: question('q', { event: parts }),
      participant: participant('p'),
    };
    const expected = structuredClone(given);
    session.addMessage(given.message);
    session.addTurn(given.turn);
    session.updateTurn('t', given.changes);
    session.saveQuestion(given.question);
    session.saveParticipant(given.participant);
    const spoil = () => {
      parts.list.push(2);
      given.message.content = 'spoiled';
      given.turn.attachments.length = 0;
      given.changes.startedAt = 2;
      given.question.status = 'expired';
      given.participant.role = 'owner';
    };
    spoil();
    const check = (reader: SessionStorage) => {
      const taken = {
        message: reader.messages()[0],
        turn: reader.turn(reader.openTurns()[0]?.turnId ?? ''),
        question: reader.openQuestions()[0],
        participant: reader.participants()[0],
      };
      expect(taken).toEqual({
        message: expected.message,
        turn: { ...expected.turn, ...expected.changes },
        question: expected.question,
        participant: expected.participant,
      });
      return taken;
    };
    const taken = check(session);
    Object.assign(taken.message?.parts ?? {}, { list: [] });
    taken.turn?.attachments.pop();
    Object.assign(taken.question ?? {}, { status: 'expired', event: {} });
    Object.assign(taken.participant ?? {}, { role: 'owner' });
    const channels = session.channels();
    Object.assign(channels[0] ?? {}, { channelId: 'spoiled' });
    expect(session.channels()).not.toEqual(channels);
    check(bench.reading());
  });
}
