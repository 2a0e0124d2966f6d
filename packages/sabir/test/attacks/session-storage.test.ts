/** Attacks on what a session keeps. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { sqliteSessionStore } from '../../src/platforms/node/sessions.ts';
import { makeFolder } from '../cli-process.ts';
import { knock } from '../raw-websocket.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { joinSession, startSessionChain } from '../session-chain.ts';
import { message, participant, prompt } from '../session-storage-helpers.ts';
import { beginTurn, OPENING } from '../turn-log-helpers.ts';

describe('a session in SQLite', () => {
  /** A session `s` with one answered prompt, whose file another program then changes. */
  async function startDamaged(damage: string) {
    const file = join(makeFolder(), 'sabir.db');
    const store = sqliteSessionStore({ file });
    for (const sessionId of ['s', 'healthy']) store.open(sessionId).addMessage(message('m'));
    store.open('s').addPrompt(prompt('p', { authorId: 'ann', status: 'running' }));
    store.open('s').saveParticipant(participant('ann'));
    const names = { sessionId: 's', turnId: 't-p', origin: { session: 's', promptId: 'p' } };
    const writer = await beginTurn(store.log, names);
    await writer.append(OPENING);
    await store.log.command('t-p', { type: 'answer', questionId: 'q', answer: 1 });
    store.close();
    const database = new DatabaseSync(file);
    database.exec(damage);
    database.close();
    const reopened = sqliteSessionStore({ file });
    onTestFinished(() => reopened.close());
    const log = vi.fn();
    const logger = { warn: log, error: log };
    const chain = await startSessionChain({ agent: scriptedAgent(), store: reopened, logger });
    return { chain, log };
  }

  it.each([
    ['a message that is no JSON', `UPDATE messages SET message = '{secret' WHERE session = 's'`],
    ['a message that is null', `UPDATE messages SET message = 'null' WHERE session = 's'`],
    [
      'a prompt that waits and is no JSON',
      `UPDATE prompts SET info = '{secret', status = 'queued'`,
    ],
    ['a prompt that runs and is no JSON', `UPDATE prompts SET info = '{secret'`],
    ['a prompt that is null', `UPDATE prompts SET info = 'null'`],
    ['a prompt whose text is no JSON', `UPDATE prompt_contents SET content = '{secret'`],
    ['a prompt without its text', `DELETE FROM prompt_contents`],
    ['a turn that is no JSON', `UPDATE turn SET info = '{secret'`],
    ['a turn that is null', `UPDATE turn SET info = 'null'`],
    ['a turn’s end that is no JSON', `UPDATE turn SET ended = '{secret'`],
    ['chunks that are no JSON', `UPDATE turn_append SET chunks = '{secret'`],
    ['chunks that are none', `UPDATE turn_append SET chunks = '[null, "secret"]'`],
    ['a command that is no JSON', `UPDATE turn_command SET command = '{secret'`],
    ['a turn without its chunks', `DELETE FROM turn_append`],
    ['a participant that is no JSON', `UPDATE participants SET participant = '{secret'`],
    ['a size below zero', `UPDATE sessions SET bytes = -5 WHERE id = 's'`],
  ])('with %s does not end the server, and other sessions go on', async (_, damage) => {
    const { chain, log } = await startDamaged(damage);
    await knock(chain, { authorization: 'Bearer ann' });
    const ann = await joinSession(chain, { sessionId: 'healthy' });
    ann.send({ type: 'prompt', content: 'text' });
    await ann.until(({ type }) => type === 'message.finalize');
    expect(JSON.stringify(log.mock.calls)).not.toContain('secret');
  });

  it('whose disk is full refuses prompts, tells what was told before, and goes on when there is room', async () => {
    const file = join(makeFolder(), 'sabir.db');
    const store = sqliteSessionStore({ file });
    onTestFinished(() => store.close());
    let isFull = false;
    const full = Object.assign(new Error('database or disk is full'), { errcode: 13 });
    const chain = await startSessionChain({
      agent: scriptedAgent(),
      store: {
        ...store,
        open(sessionId) {
          const storage = store.open(sessionId);
          return {
            ...storage,
            addPrompt(asked) {
              if (isFull) throw full;
              return storage.addPrompt(asked);
            },
          };
        },
      },
    });
    const ann = await joinSession(chain);
    isFull = true;
    ann.send({ type: 'prompt', content: 'text', promptId: 'refused' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({ promptId: 'refused' });
    expect(JSON.stringify(ann.events)).not.toContain('disk is full');
    isFull = false;
    ann.send({ type: 'prompt', content: 'text', promptId: 'refused' });
    await ann.until(({ type }) => type === 'message.finalize');
  });

  it.each([
    "x'; DROP TABLE sessions; --",
    '%',
    '_',
    '\u0000',
    '\ud800',
    'a'.repeat(5_000),
    '__proto__',
  ])('of the name %j is one session, apart from all others', (sessionId) => {
    const store = sqliteSessionStore({ file: ':memory:' });
    onTestFinished(() => store.close());
    for (const id of ['other', sessionId]) {
      expect(store.open(id).addMessage(message('m'))).toBe(true);
    }
    store.delete(sessionId);
    expect(store.list().map((session) => session.sessionId)).toEqual(['other']);
  });
});
