import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { message, participant, prompt, says } from '../../../test/session-storage-helpers.ts';
import { beginTurn, delta, FINISHED, OPENING, WHOLE_TURN } from '../../../test/turn-log-helpers.ts';
import type { SessionStore } from '../../sessions/index.ts';
import { openSessionAdmin } from './sqlite-admin.ts';
import { sqliteSessionStore } from './sqlite-sessions.ts';

const folder = mkdtempSync(join(tmpdir(), 'sabir-admin-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

function open(file: string, now?: () => number) {
  const store = sqliteSessionStore({ file, lockTimeoutMs: 0, ...(now && { now }) });
  onTestFinished(() => store.close());
  return store;
}

function administer<T>(file: string, run: (admin: ReturnType<typeof openSessionAdmin>) => T): T {
  const admin = openSessionAdmin({ file, lockTimeoutMs: 0 });
  try {
    return run(admin);
  } finally {
    admin.close();
  }
}

/** The ids of turns in each table of the turn log. */
function turnsIn(file: string) {
  const database = new DatabaseSync(file);
  const idsIn = (table: string) => {
    const rows = database.prepare(`SELECT DISTINCT turn_id FROM ${table} ORDER BY turn_id`).all();
    return rows.map(({ turn_id }) => turn_id);
  };
  try {
    return [idsIn('turn'), idsIn('turn_append'), idsIn('turn_command')];
  } finally {
    database.close();
  }
}

/** A prompt with its message, answer and turn, which one person has asked and answered questions in. */
async function addTurn(store: SessionStore, sessionId: string, promptId: string, userId = 'ann') {
  const session = store.open(sessionId);
  const asked = prompt(promptId, { authorId: userId, turnId: `t-${promptId.slice(0, 2)}` });
  session.addPrompt(asked);
  session.addMessage(message(promptId, { authorId: userId }));
  const { turnId, messageId } = asked;
  const origin = { session: sessionId, promptId };
  const names = { sessionId, chatId: 'c', turnId, messageId, requestId: promptId };
  const writer = await beginTurn(store.log, { ...names, origin });
  await writer.append([...OPENING, delta(`secret of ${promptId}`)]);
  const by = { userId, role: 'collaborator' } as const;
  await store.log.command(turnId, { type: 'answer', questionId: 'q', answer: 1, by });
  const end = () =>
    writer.close(FINISHED, () => {
      session.addMessage(message(messageId, { role: 'assistant', promptId }));
      session.updatePrompt(promptId, { status: 'ended', outcome: 'finished' });
    });
  return { end, turnId };
}

describe('an operator of a file of sessions', () => {
  it('deletes a person’s words also where another person has regenerated their answer', () => {
    const file = newFile();
    const store = open(file);
    const session = store.open('s');
    const writtenBy = { id: 'ann' };
    session.addPrompt(prompt('p1', { authorId: 'ann', status: 'ended' }));
    session.addMessage(message('u', { authorId: 'ann', promptId: 'p1' }));
    session.addMessage(message('m-p1', { role: 'assistant', promptId: 'p1' }));
    session.replaceMessages('u', 'p2');
    session.addPrompt(prompt('p2', { authorId: 'olga', writtenBy, status: 'ended' }));
    session.addMessage(message('u', { authorId: 'ann', promptId: 'p2' }));
    session.addMessage(message('m-p2', { role: 'assistant', promptId: 'p2' }));
    session.addPrompt(prompt('p3', { authorId: 'olga', status: 'ended' }));
    session.addMessage(message('v', { authorId: 'olga', promptId: 'p3' }));
    store.close();
    administer(file, (admin) => admin.deleteUser('ann', false));
    const left = open(file).open('s');
    expect(left.messages()).toEqual([message('v', { authorId: 'olga', promptId: 'p3' })]);
    expect(left.replacedMessages('p2')).toEqual([]);
    expect([left.prompt('p1'), left.prompt('p2')]).toEqual([undefined, undefined]);
    expect(left.prompt('p3')).toBeDefined();
  });

  it('sees what a session takes: its messages, its prompts and the chunks of its turns', async () => {
    const file = newFile();
    let time = 0;
    const store = open(file, () => ++time);
    store.open('first').addMessage(message('m', { parts: says('é') }));
    const { end } = await addTurn(store, 'second', 'p');
    await end();
    await addTurn(store, 'second', 'q');
    const [first, second] = ['first', 'second'].map((id) => store.open(id).bytes());
    store.close();
    const chunks = 2 * JSON.stringify([...OPENING, delta('secret of p')]).length;
    const [latest, other, ...more] = administer(file, (admin) => admin.sessions());
    expect(other).toEqual({ sessionId: 'first', messages: 1, bytes: first, updatedAt: 1 });
    expect(latest).toMatchObject({ sessionId: 'second', messages: 3, updatedAt: time });
    // The log stores chunks in a form of its own, of about the same size.
    const grown = (latest?.bytes ?? 0) - (second ?? 0);
    expect(grown).toBeGreaterThan(chunks / 2);
    expect(grown).toBeLessThan(2 * chunks);
    expect(more).toEqual([]);
  });

  it('purges old sessions with their turns, whether these have ended or not', async () => {
    const file = newFile();
    let time = 0;
    const store = open(file, () => time);
    const { end } = await addTurn(store, 'old', 'p1');
    await end();
    await addTurn(store, 'old', 'p2');
    time = 10;
    await addTurn(store, 'new', 'p3');
    store.close();
    const all = ['t-p1', 't-p2', 't-p3'];
    const counts = { sessions: 1, prompts: 2, messages: 3, participants: 0 };
    const purge = (isDryRun: boolean) => administer(file, (admin) => admin.purge(10, isDryRun));
    expect(purge(true)).toEqual(counts);
    expect(turnsIn(file)).toEqual([all, all, all]);
    expect(purge(false)).toEqual(counts);
    expect(turnsIn(file)).toEqual([['t-p3'], ['t-p3'], ['t-p3']]);
    expect(readFileSync(file, 'latin1')).not.toContain('secret of p1');
    expect(await open(file).log.get('t-p3')).toMatchObject({ lastSeq: 3 });
  });

  it('deletes the turns of one person, and counts what is left', async () => {
    const file = newFile();
    const store = open(file);
    const { end } = await addTurn(store, 'hers', 'p1', 'olga');
    await end();
    // An id that SQLite’s text cannot hold.
    await addTurn(store, 'shared \ud800', 'p2 \ud800', 'olga').then((turn) => turn.end());
    await addTurn(store, 'shared \ud800', 'p3', 'bob');
    store.open('shared \ud800').saveParticipant(participant('olga'));
    const by = { userId: 'olga', role: 'owner' } as const;
    await store.log.command('t-p3', { type: 'answer', questionId: 'other', answer: 'olga’s', by });
    store.close();
    const counts = { sessions: 1, prompts: 2, messages: 4, participants: 1 };
    administer(file, (admin) => {
      expect(admin.deleteUser('olga', false)).toEqual(counts);
      expect(admin.sessions()).toMatchObject([{ sessionId: 'shared \ud800', messages: 1 }]);
    });
    expect(turnsIn(file)).toEqual([['t-p3'], ['t-p3'], ['t-p3']]);
    for (const gone of ['olga', 'secret of p1', 'secret of p2']) {
      expect(readFileSync(file, 'latin1')).not.toContain(gone);
    }
    const left = open(file).open('shared \ud800');
    const kept = [prompt('p3', { authorId: 'bob' }), message('p3', { authorId: 'bob' })];
    expect(left.prompt('p3')).toEqual(kept[0]);
    expect(left.messages()).toEqual([kept[1]]);
    const sizes = kept.map((one) => JSON.stringify(one).length);
    expect(left.bytes()).toBe(sizes.reduce((sum, size) => sum + size));
  });

  it('deletes the turns of a gateway without sessions by their user, and no other of them', async () => {
    const file = newFile();
    const store = open(file);
    for (const id of ['olga', 'bob']) {
      const origin = { route: 'chat', sessionId: 's', user: { id }, role: 'owner' };
      const writer = await beginTurn(store.log, { turnId: `turn-of-${id}`, origin });
      await writer.append(WHOLE_TURN);
    }
    store.close();
    administer(file, (admin) => {
      admin.deleteUser('olga', false);
      admin.purge(Infinity, false);
    });
    expect(turnsIn(file)).toEqual([['turn-of-bob'], ['turn-of-bob'], []]);
  });

  it('opens a file in which no server has written anything', () => {
    const file = newFile();
    writeFileSync(file, '');
    expect(administer(file, (admin) => admin.sessions())).toEqual([]);
  });
});
