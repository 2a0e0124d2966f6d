import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { idsOf, message, prompt, says } from '../../../test/session-storage-helpers.ts';
import { beginTurn, FINISHED, OPENING, WHOLE_TURN } from '../../../test/turn-log-helpers.ts';
import { sqliteSessionStore } from './sqlite-sessions.ts';

const folder = mkdtempSync(join(tmpdir(), 'sabir-full-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

function open(file: string) {
  const store = sqliteSessionStore({ file, lockTimeoutMs: 0 });
  onTestFinished(() => store.close());
  return store;
}

/** A store whose file cannot grow while it is limited, as SQLite itself enforces it. */
function openLimited(file: string) {
  const spy = vi.spyOn(DatabaseSync.prototype, 'prepare');
  const store = open(file);
  const database = spy.mock.contexts.at(-1) as DatabaseSync;
  spy.mockRestore();
  return {
    store,
    session: store.open('s'),
    limit(isFull: boolean) {
      // A limit below what there is means what there is.
      database.exec(`PRAGMA max_page_count = ${isFull ? 1 : 1_000_000}`);
    },
  };
}

describe('sessions in SQLite on a disk that is full for a while', () => {
  const large = 'x'.repeat(100_000);
  const full = expect.objectContaining({ errcode: 13 });

  it('refuse what does not fit and keep the rest, and take it when there is room', () => {
    const file = newFile();
    const { session, limit, store } = openLimited(file);
    session.addPrompt(prompt('p'));
    const [bytes, listed] = [session.bytes(), store.list()];
    limit(true);
    expect(() => session.addMessage(message('m', { parts: says(large) }))).toThrow(full);
    expect(() => session.addPrompt(prompt('q', { text: large }))).toThrow(full);
    const write = () =>
      session.transaction(() => {
        session.updatePrompt('p', { status: 'running' });
        session.transaction(() => session.addMessage(message('m', { parts: says(large) })));
      });
    expect(write).toThrow(full);
    expect(session.openPrompts()).toMatchObject([{ promptId: 'p', status: 'queued' }]);
    expect([session.bytes(), store.list()]).toEqual([bytes, listed]);
    limit(false);
    write();
    store.close();
    const again = open(file).open('s');
    expect(idsOf(again.messages())).toEqual(['m']);
    expect(again.openPrompts()).toMatchObject([{ promptId: 'p', status: 'running' }]);
  });

  it('end a turn together with its message, once there is room', async () => {
    const file = newFile();
    const { session, limit, store } = openLimited(file);
    session.addPrompt(prompt('p', { status: 'running' }));
    const writer = await beginTurn(store.log, { turnId: 't-p' });
    await writer.append(WHOLE_TURN, 7);
    limit(true);
    const keep = () => {
      session.updatePrompt('p', { status: 'ended', outcome: 'finished' });
      session.addMessage(message('m-p', { role: 'assistant', parts: says(large) }));
    };
    const failed = { code: 'log-failed' };
    await expect(writer.close(FINISHED, keep)).rejects.toMatchObject(failed);
    await expect(writer.append([{ type: 'data-x', data: large }])).rejects.toMatchObject(failed);
    expect(await store.log.get('t-p')).toMatchObject({ status: 'running', lastSeq: 5 });
    expect(session.promptInfo('promptId', 'p')?.status).toBe('running');
    limit(false);
    await writer.close(FINISHED, keep);
    store.close();
    const again = open(file);
    expect(await again.log.get('t-p')).toMatchObject({ lastSeq: 5, outcome: FINISHED });
    expect(idsOf(again.open('s').messages())).toEqual(['m-p']);
  });

  it('release the file when they are closed, though what waits cannot be written', async () => {
    const file = newFile();
    const { limit, store } = openLimited(file);
    const writer = await beginTurn(store.log);
    await writer.append(OPENING);
    limit(true);
    const waiting = writer.append([{ type: 'data-x', data: large }]);
    waiting.catch(() => undefined);
    await Promise.resolve();
    expect(() => store.close()).toThrow(full);
    await expect(waiting).rejects.toThrow();
    expect(await open(file).log.get(writer.turnId)).toMatchObject({ lastSeq: 2 });
  });
});
