/**
 * What every `SessionStore` is held to: each MUST above the interface in `src/sessions/storage.ts`,
 * and each method. Rigs that can be reopened are, between writing and reading.
 */
import { afterEach, describe, expect, it } from 'vitest';
import type { PromptChanges, PromptKey, SessionStore } from '../src/sessions/storage.ts';
import {
  type Bench,
  CHANNEL,
  idsOf,
  infoOf,
  message,
  OTHER_CHANNEL,
  participant,
  prompt,
  promptIdsOf,
  type SetUpSessionStore,
  says,
  sessionIdsOf,
} from './session-storage-helpers.ts';
import { describeAgreement } from './session-storage-model.ts';
import { describeReplacing } from './session-storage-replacing.ts';
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
    describe('replaces messages', () => describeReplacing(start));
    describe('keeps prompts', () => describePrompts(start));
    describe('keeps participants', () => describeParticipants(start));
    describe('counts bytes', () => describeBytes(start));
    describe('keeps whatever it is given', () => describeAnyJson(start));
    describe('keeps all of a transaction or nothing', () => describeTransactions(start));
    describe('keeps many sessions', () => describeSessions(start));
    describe('agrees with a simple model', () => describeAgreement(start));
  });
}

function describeMessages(start: () => Bench): void {
  it('in the order they were added, whatever their ids and times', () => {
    const bench = start();
    const added = ['b', 'c', 'a'].map((id) => message(id, { createdAt: id.charCodeAt(0) }));
    for (const one of added) expect(bench.writing().addMessage(one)).toBe(true);
    expect(bench.reading().messages()).toEqual(added);
  });

  it('with all of their fields', () => {
    const bench = start();
    const question = message('q', { authorId: 'ada', authorName: 'Ada' });
    const answer = message('a', {
      role: 'assistant',
      promptId: 'q',
      metadata: { outcome: 'finished', usage: { inputTokens: 1 } },
      parts: [
        ...says('Hello'),
        { type: 'file', mediaType: 'text/plain', url: 'data:,x', filename: 'x.txt' },
        { type: 'data-note', id: 'n', data: { deep: [null, 1.5] } },
      ],
    });
    for (const one of [question, answer]) bench.writing().addMessage(one);
    expect(bench.reading().messages()).toEqual([question, answer]);
  });

  it('once: the same id again is refused and changes nothing', () => {
    const bench = start();
    bench.writing().addMessage(message('a', { parts: says('first') }));
    bench.writing('other').addMessage(message('x'));
    expect(bench.writing().addMessage(message('a', { parts: says('second') }))).toBe(false);
    expect(bench.reading().messages()).toEqual([message('a', { parts: says('first') })]);
    expect(sessionIdsOf(bench.store())[0]).toBe('other');
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
    const sizes = ['x', 'é'.repeat(1_000), 'x'.repeat(10), 'x'].map((text, index) => {
      const added = message(`m${index}`, { parts: says(text) });
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
    const latest = { before: 'd', channel: CHANNEL, limit: 2 };
    expect(idsOf(session.messages({ before: 'c' }))).toEqual(['a', 'b']);
    expect(idsOf(session.messages(latest))).toEqual(['b', 'c']);
    expect(idsOf(session.messages({ before: 'a' }))).toEqual([]);
    expect(session.messages({ before: 'nobody' })).toEqual([]);
  });

  it('and gives one of them with those behind it', () => {
    const bench = start();
    for (const id of ['a', 'b', 'c']) bench.writing().addMessage(message(id));
    bench.writing().addMessage(message('d', OTHER_CHANNEL));
    const session = bench.reading();
    expect(idsOf(session.messages({ from: 'b' }))).toEqual(['b', 'c', 'd']);
    expect(idsOf(session.messages({ from: 'b', before: 'c' }))).toEqual(['b']);
    expect(idsOf(session.messages({ from: 'a', channel: CHANNEL, limit: 2 }))).toEqual(['b', 'c']);
    expect(session.messages({ from: 'nobody' })).toEqual([]);
  });

  it('and finds each by its id', () => {
    const bench = start();
    const added = message('a', { authorId: 'ada', promptId: 'p' });
    bench.writing().addMessage(added);
    bench.writing('other').addMessage(message('x'));
    const session = bench.reading();
    expect(session.message('a')).toEqual(added);
    for (const id of ['x', '', 'A']) expect(session.message(id)).toBeUndefined();
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
}

function describePrompts(start: () => Bench): void {
  const whole = prompt('p', {
    attachments: [{ mediaType: 'text/plain', url: 'data:,x', filename: 'x.txt' }],
    body: { model: 'm', nested: { list: [1, null] } },
    authorName: 'Ada',
    traceparent: '00-1-2-01',
  });

  it('and finds them by each of their ids, whole or without text and files', () => {
    const bench = start();
    expect(bench.writing().addPrompt(whole)).toBe(true);
    const session = bench.reading();
    expect(session.prompt('p')).toEqual(whole);
    const ids = { promptId: 'p', turnId: 't-p', messageId: 'm-p' };
    const keys = Object.keys(ids) as PromptKey[];
    for (const key of keys) {
      expect(session.promptInfo(key, ids[key])).toEqual(infoOf(whole));
      for (const other of keys) {
        if (other !== key) expect(session.promptInfo(key, ids[other])).toBeUndefined();
      }
    }
    for (const id of ['t-p', 'm-p', '']) expect(session.prompt(id)).toBeUndefined();
  });

  it.each<PromptKey>(['promptId', 'turnId', 'messageId'])(
    'once: the same %s again is refused and changes nothing',
    (key) => {
      const bench = start();
      bench.writing().addPrompt(whole);
      bench.writing('other').addMessage(message('x'));
      const again = prompt('new', { [key]: whole[key], text: 'again' });
      expect(bench.writing().addPrompt(again)).toBe(false);
      const session = bench.reading();
      expect(promptIdsOf(session.openPrompts())).toEqual(['p']);
      expect(session.prompt('p')).toEqual(whole);
      for (const one of ['promptId', 'turnId', 'messageId'] as const) {
        if (one !== key) expect(session.promptInfo(one, again[one])).toBeUndefined();
      }
      expect(sessionIdsOf(bench.store())[0]).toBe('other');
    },
  );

  it('with what became of them; what is not named in a change stays', () => {
    const bench = start();
    bench.writing().addPrompt(whole);
    bench.writing().addPrompt(prompt('q'));
    const update = (changes: PromptChanges) => bench.writing().updatePrompt('p', changes);
    update({ status: 'running', startedAt: 5.5, runnerId: 'r1' });
    update({ runnerId: 'r2' });
    update({ status: 'ended', endedAt: 0, outcome: 'failed', error: '' });
    update({});
    update({ startedAt: undefined, error: undefined } as unknown as PromptChanges);
    const ended = {
      ...{ status: 'ended', startedAt: 5.5, endedAt: 0 },
      ...{ outcome: 'failed', error: '', runnerId: 'r2' },
    } as const;
    const session = bench.reading();
    expect(session.prompt('p')).toEqual({ ...whole, ...ended });
    expect(session.promptInfo('turnId', 't-p')).toEqual({ ...infoOf(whole), ...ended });
    expect(session.prompt('q')).toEqual(prompt('q'));
  });

  it('with what had become of them when they were added', () => {
    const bench = start();
    const ended = prompt('p', {
      ...{ status: 'ended', startedAt: 1, endedAt: 2 },
      ...{ outcome: 'stopped', error: 'x', runnerId: 'r' },
    });
    bench.writing().addPrompt(ended);
    expect(bench.reading().prompt('p')).toEqual(ended);
    expect(bench.reading().openPrompts()).toEqual([]);
  });

  it('and changes nothing of one that is not there', () => {
    const bench = start();
    bench.writing().updatePrompt('p', { status: 'running' });
    expect(bench.reading().prompt('p')).toBeUndefined();
    expect(bench.store().list()).toEqual([]);
  });

  it('and tells which are open: what runs, then what waits, as it was added', () => {
    const bench = start();
    for (const id of ['d', 'c', 'b', 'a']) {
      bench.writing().addPrompt(prompt(id, { askedAt: id.charCodeAt(0) }));
    }
    bench.writing().updatePrompt('b', { status: 'running' });
    bench.writing().updatePrompt('c', { status: 'ended', endedAt: 1, outcome: 'withdrawn' });
    const open = bench.reading().openPrompts();
    expect(promptIdsOf(open)).toEqual(['b', 'd', 'a']);
    expect(open[1]).toEqual(infoOf(prompt('d', { askedAt: 100 })));
  });

  it('apart from messages: the same id can be both', () => {
    const bench = start();
    bench.writing().addPrompt(whole);
    expect(bench.writing().addMessage(message('p'))).toBe(true);
    const session = bench.reading();
    expect([idsOf(session.messages()), session.prompt('p')]).toEqual([['p'], whole]);
  });
}

function describeParticipants(start: () => Bench): void {
  it('as they were saved last, in the order they were first saved', () => {
    const bench = start();
    for (const id of ['b', 'a']) bench.writing().saveParticipant(participant(id));
    const bea = participant('b', { name: 'Bea', role: 'owner', lastSeenAt: 9 });
    bench.writing().saveParticipant(bea);
    const session = bench.reading();
    expect(session.participant('b')).toEqual(bea);
    expect(session.participant('c')).toBeUndefined();
    expect(session.participants()).toEqual([bea, participant('a')]);
  });
}

function describeBytes(start: () => Bench): void {
  const sizeOf = (value: object) => Buffer.byteLength(JSON.stringify(value));

  it('of messages and prompts as JSON in UTF-8, also when a prompt has changed since', () => {
    const bench = start();
    expect(bench.writing().bytes()).toBe(0);
    const [asked, told] = [prompt('é', { text: '漢字 👩' }), message('👩', { parts: says('é') })];
    bench.writing().addPrompt(asked);
    expect(bench.writing().bytes()).toBe(sizeOf(asked));
    bench.writing().addMessage(told);
    bench.writing().updatePrompt('é', { status: 'ended', error: 'x'.repeat(100) });
    bench.writing().saveParticipant(participant('p'));
    expect(bench.reading().bytes()).toBe(sizeOf(asked) + sizeOf(told));
  });

  it('of what is kept only: neither what was refused nor other sessions count', () => {
    const bench = start();
    bench.writing().addPrompt(prompt('p'));
    bench.writing().addMessage(message('m'));
    const before = bench.writing().bytes();
    bench.writing().addPrompt(prompt('p', { text: 'x'.repeat(1_000) }));
    bench.writing().addMessage(message('m', { parts: says('x'.repeat(1_000)) }));
    bench.writing('other').addMessage(message('m', { parts: says('x'.repeat(1_000)) }));
    expect(bench.reading().bytes()).toBe(before);
    expect(bench.store().open('never written to').bytes()).toBe(0);
  });

  it('of all sessions, about', () => {
    const bench = start();
    const before = bench.store().storedBytes();
    for (const id of ['a', 'b']) {
      bench.writing(id).addMessage(message('m', { parts: says('x'.repeat(100_000)) }));
    }
    bench.reading();
    const grown = bench.store().storedBytes() - before;
    expect(grown).toBeGreaterThan(190_000);
    expect(grown).toBeLessThan(300_000);
  });
}
