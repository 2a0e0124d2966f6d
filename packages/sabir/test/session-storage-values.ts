import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { SessionStorage, StoredMessage, StoredPrompt } from '../src/sessions/storage.ts';
import {
  type Bench,
  idsOf,
  infoOf,
  message,
  participant,
  prompt,
  promptIdsOf,
  says,
  sessionIdsOf,
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

/** A message with the text in every place a string from outside can go. */
function messageOf(text: string): StoredMessage {
  return message(text, {
    parts: says(text),
    metadata: { [text]: text },
    ...{ channelType: text, channelId: text },
    ...{ authorId: text, authorName: text, promptId: text },
  });
}

function promptOf(text: string): StoredPrompt {
  return prompt(text, {
    ...{ turnId: text, messageId: text, text },
    ...{ channelType: text, channelId: text, authorId: text, authorName: text, traceparent: text },
    attachments: [{ url: text, mediaType: text, filename: text }],
    body: { [text]: text },
  });
}

function writeEverywhere(session: SessionStorage, text: string): void {
  session.addMessage(messageOf(text));
  session.addPrompt(promptOf(text));
  session.updatePrompt(text, { error: text, runnerId: text });
  session.saveParticipant(participant(text, { name: text }));
}

function expectEverywhere(session: SessionStorage, text: string): void {
  const channel = { channelType: text, channelId: text };
  expect(session.messages({ channel })).toEqual([messageOf(text)]);
  expect(session.addMessage(messageOf(text))).toBe(false);
  const asked = { ...promptOf(text), error: text, runnerId: text };
  expect(session.prompt(text)).toEqual(asked);
  for (const key of ['promptId', 'turnId', 'messageId'] as const) {
    expect(session.promptInfo(key, text)).toEqual(infoOf(asked));
  }
  expect(session.addPrompt(promptOf(text))).toBe(false);
  expect(session.participant(text)).toEqual(participant(text, { name: text }));
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
    expect(promptIdsOf(session.openPrompts())).toEqual([text, neighbour]);
    expect(idsOf(session.messages({ before: neighbour }))).toEqual([text]);
    expect(sessionIdsOf(bench.store())).toEqual([text]);
    expect(bench.store().unfinished()).toEqual([text]);
    expect(bench.store().open(neighbour).messages()).toEqual([]);
    bench.store().delete(text);
    expect(bench.store().list()).toEqual([]);
  });

  it('5 MB in one piece', () => {
    const bench = start();
    const asked = prompt('p', {
      text: LARGE,
      attachments: [{ mediaType: 'a/b', url: LARGE }],
      body: { large: LARGE },
    });
    bench.writing().addMessage(message('m', { parts: says(LARGE) }));
    bench.writing().addPrompt(asked);
    const session = bench.reading();
    // Compared like this, since a failure would print all of it.
    const [told] = session.messages();
    const { text, attachments, body } = session.prompt('p') ?? {};
    const large = [told?.parts, text, attachments?.[0]?.url, body?.large];
    expect(JSON.stringify(large) === JSON.stringify([says(LARGE), LARGE, LARGE, LARGE])).toBe(true);
    expect(session.bytes()).toBeGreaterThan(4 * 5 * 1024 * 1024);
    expect(session.openPrompts()).toEqual([infoOf(asked)]);
  });

  it('any JSON', () => {
    const bench = start();
    let count = 0;
    const given = new Map<string, string>();
    fc.assert(
      fc.property(anyJson, (value) => {
        const id = `m${++count}`;
        bench.writing().addMessage(message(id, { metadata: { value } }));
        bench.writing().addPrompt(prompt(id, { body: { value } }));
        given.set(id, JSON.stringify({ value }));
      }),
    );
    const session = bench.reading();
    expect(idsOf(session.messages())).toEqual([...given.keys()]);
    for (const { id, metadata } of session.messages()) {
      expect(JSON.stringify(metadata)).toBe(given.get(id));
      expect(JSON.stringify(session.prompt(id)?.body)).toBe(given.get(id));
    }
  });

  it('keys that are dangerous elsewhere', () => {
    const bench = start();
    const json = '{"__proto__":{"polluted":1},"constructor":{"prototype":1},"toString":null}';
    const ids = { turnId: 'constructor', messageId: 'toString' };
    bench.writing().addMessage(message('a', { metadata: JSON.parse(json) }));
    bench.writing().addPrompt(prompt('p', { body: JSON.parse(json) }));
    bench.writing('__proto__').addPrompt(prompt('__proto__', ids));
    const session = bench.reading();
    expect(JSON.stringify(session.messages()[0]?.metadata)).toBe(json);
    expect(JSON.stringify(session.prompt('p')?.body)).toBe(json);
    expect(session.prompt('__proto__')).toBeUndefined();
    for (const key of ['promptId', 'turnId', 'messageId'] as const) {
      expect(session.promptInfo(key, 'constructor')).toBeUndefined();
    }
    expect(session.participant('__proto__')).toBeUndefined();
    const proto = bench.store().open('__proto__');
    expect(proto.promptInfo('turnId', 'constructor')?.promptId).toBe('__proto__');
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('deep nesting, and refuses what nests deeper than JSON can be written', () => {
    const bench = start();
    const nest = (depth: number) => {
      let value: unknown = 'core';
      for (let level = 0; level < depth; level++) value = level % 2 ? [value] : { value };
      return { value };
    };
    bench.writing().addMessage(message('deep', { metadata: nest(1_000) }));
    const tooDeep = nest(200_000);
    const write = (run: (session: SessionStorage) => unknown) => () => run(bench.writing('new'));
    const refused = message('too deep', { metadata: tooDeep });
    expect(write((session) => session.addMessage(refused))).toThrow(RangeError);
    expect(write((session) => session.addPrompt(prompt('p', { body: tooDeep })))).toThrow();
    expect(bench.reading().messages()).toEqual([message('deep', { metadata: nest(1_000) })]);
    expect(sessionIdsOf(bench.store())).toEqual(['s']);
  });

  it('and refuses what is no JSON, changing nothing', () => {
    const bench = start();
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    for (const bad of [cycle, { big: 1n }]) {
      const session = bench.writing();
      expect(() => session.addMessage(message('m', { metadata: bad }))).toThrow(TypeError);
      expect(() => session.addPrompt(prompt('p', { body: bad }))).toThrow(TypeError);
      const asked = prompt('p', { traceparent: bad as unknown as string });
      expect(() => session.addPrompt(asked)).toThrow(TypeError);
      const person = participant('p', { name: bad as unknown as string });
      expect(() => session.saveParticipant(person)).toThrow(TypeError);
    }
    bench.reading();
    expect(bench.store().list()).toEqual([]);
  });

  it('as it was when it was given, whatever giver and taker do to it', () => {
    const bench = start();
    const session = bench.writing();
    const given = {
      message: message('m', { metadata: { list: [1] } }),
      prompt: prompt('p', { attachments: [{ mediaType: 'a/b', url: 'x' }], body: { list: [1] } }),
      changes: { status: 'running' as const, startedAt: 1 },
      participant: participant('p'),
    };
    const expected = structuredClone(given);
    session.addMessage(given.message);
    session.addPrompt(given.prompt);
    session.updatePrompt('p', given.changes);
    session.saveParticipant(given.participant);
    Object.assign(given.message.metadata as object, { list: [2] });
    given.message.parts.length = 0;
    given.prompt.attachments.length = 0;
    given.prompt.body.list = [2];
    given.changes.startedAt = 2;
    given.participant.role = 'owner';
    const check = (reader: SessionStorage) => {
      const taken = {
        message: reader.messages()[0],
        prompt: reader.prompt('p'),
        info: reader.openPrompts()[0],
        participant: reader.participants()[0],
      };
      const asked = { ...expected.prompt, ...expected.changes };
      const { message, participant } = expected;
      expect(taken).toEqual({ message, prompt: asked, info: infoOf(asked), participant });
      return taken;
    };
    const taken = check(session);
    Object.assign(taken.message ?? {}, { parts: [], metadata: {} });
    taken.prompt?.attachments.pop();
    Object.assign(taken.prompt?.body ?? {}, { list: [] });
    Object.assign(taken.info ?? {}, { status: 'ended' });
    Object.assign(taken.participant ?? {}, { role: 'owner' });
    const channels = session.channels();
    Object.assign(channels[0] ?? {}, { channelId: 'spoiled' });
    expect(session.channels()).not.toEqual(channels);
    check(bench.reading());
  });
}
