import { expect, it } from 'vitest';
import {
  type Bench,
  infoOf,
  message,
  participant,
  prompt,
  says,
  sessionIdsOf,
} from './session-storage-helpers.ts';

export function describeSessions(start: () => Bench): void {
  it('apart: the same ids in two of them are two things', () => {
    const bench = start();
    for (const id of ['one', 'two']) {
      const session = bench.writing(id);
      expect(session.addMessage(message('m', { parts: says(id) }))).toBe(true);
      expect(session.addPrompt(prompt('p', { text: id }))).toBe(true);
      session.saveParticipant(participant('p', { name: id }));
    }
    bench.writing('one').updatePrompt('p', { status: 'ended', endedAt: 1 });
    const two = bench.reading('two');
    expect(two.messages()).toEqual([message('m', { parts: says('two') })]);
    expect(two.prompt('p')).toEqual(prompt('p', { text: 'two' }));
    for (const key of ['promptId', 'turnId', 'messageId'] as const) {
      const found = two.promptInfo(key, prompt('p')[key]);
      expect(found).toEqual(infoOf(prompt('p')));
    }
    expect(two.participants()).toEqual([participant('p', { name: 'two' })]);
    expect(bench.store().open('one').openPrompts()).toEqual([]);
  });

  it('and lists them, those that something happened in last first', () => {
    const bench = start();
    bench.writing('never written to').messages();
    for (const id of ['a', 'b', 'c', 'd']) bench.writing(id).saveParticipant(participant('p'));
    bench.writing('b').addMessage(message('m'));
    bench.writing('a').addPrompt(prompt('p'));
    bench.writing('c').addPrompt(prompt('p'));
    bench.writing('a').updatePrompt('p', { status: 'running' });
    // A participant is not something that happened.
    for (const id of ['d', 'b']) bench.writing(id).saveParticipant(participant('q'));
    bench.reading();
    const listed = bench.store().list();
    expect(sessionIdsOf(bench.store())).toEqual(['a', 'c', 'b', 'd']);
    expect(listed.map(({ updatedAt }) => updatedAt)).toEqual(
      listed.map(({ updatedAt }) => updatedAt).sort((one, other) => other - one),
    );
    expect(bench.store().list(2)).toEqual(listed.slice(0, 2));
    expect(bench.store().list(0)).toEqual([]);
  });

  it('and knows which have a prompt that has not ended', () => {
    const bench = start();
    for (const id of ['ended', 'running', 'queued']) bench.writing(id).addPrompt(prompt('p'));
    bench.writing('running').addPrompt(prompt('q'));
    bench.writing('running').updatePrompt('p', { status: 'running' });
    bench.writing('ended').updatePrompt('p', { status: 'ended' });
    bench.writing('no prompts').addMessage(message('m'));
    bench.reading();
    expect(bench.store().unfinished().sort()).toEqual(['queued', 'running']);
  });

  it('and deletes one with all that is in it, and nothing else', () => {
    const bench = start();
    for (const id of ['gone', 'kept']) {
      const session = bench.writing(id);
      session.addMessage(message('m'));
      session.addPrompt(prompt('p'));
      session.saveParticipant(participant('p'));
    }
    const before = bench.writing('gone');
    bench.store().delete('gone');
    bench.store().delete('never there');
    expect([before.messages(), before.channels(), before.openPrompts()]).toEqual([[], [], []]);
    expect([before.participants(), before.prompt('p'), before.bytes()]).toEqual([[], undefined, 0]);
    for (const key of ['promptId', 'turnId', 'messageId'] as const) {
      expect(before.promptInfo(key, prompt('p')[key])).toBeUndefined();
    }
    // The turn of a session that was deleted may end later.
    before.updatePrompt('p', { status: 'ended' });
    bench.reading();
    expect(sessionIdsOf(bench.store())).toEqual(['kept']);
    expect(bench.store().unfinished()).toEqual(['kept']);
    expect(bench.store().open('kept').prompt('p')).toEqual(prompt('p'));
    expect(bench.store().open('gone').addPrompt(prompt('p'))).toBe(true);
    expect(bench.store().open('gone').messages()).toEqual([]);
  });

  it('until it is closed: then every call throws, and so does its log', async () => {
    const bench = start();
    const session = bench.writing();
    session.addMessage(message('m'));
    const store = bench.store();
    store.close();
    store.close();
    for (const call of [
      () => session.messages(),
      () => session.channels(),
      () => session.addMessage(message('n')),
      () => session.addPrompt(prompt('p')),
      () => session.prompt('p'),
      () => session.promptInfo('turnId', 't'),
      () => session.updatePrompt('p', { status: 'ended' }),
      () => session.openPrompts(),
      () => session.saveParticipant(participant('p')),
      () => session.participant('p'),
      () => session.participants(),
      () => session.bytes(),
      () => session.transaction(() => 1),
      () => store.open('s'),
      () => store.list(),
      () => store.unfinished(),
      () => store.storedBytes(),
      () => store.delete('s'),
    ]) {
      expect(call).toThrow('The session store is closed.');
    }
    const begin = { sessionId: 's', chatId: 'c', requestId: 'r', messageId: 'm' };
    await expect(store.log.begin(begin)).rejects.toMatchObject({ code: 'shutting-down' });
  });
}
