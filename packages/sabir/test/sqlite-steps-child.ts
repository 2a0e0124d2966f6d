/**
 * A process that takes one turn of a session through its steps on one SQLite file: `node sqlite-steps-child.ts FILE STEP`. It
 * reports each step that has returned, and kills itself behind STEP.
 */
import { writeSync } from 'node:fs';
import { sqliteSessionStore } from '../src/platforms/node/sqlite-sessions.ts';
import { message, prompt } from './session-storage-helpers.ts';
import { beginTurn, CLOSING, delta, FINISHED, OPENING } from './turn-log-helpers.ts';

const [file = '', last = ''] = process.argv.slice(2);
const store = sqliteSessionStore({ file, lockTimeoutMs: 0 });
const session = store.open('s');

function reached(step: string): void {
  writeSync(1, `${step}\n`);
  if (step === last) process.kill(process.pid, 'SIGKILL');
}

session.addPrompt(prompt('p'));
reached('prompt stored');
session.transaction(() => {
  session.updatePrompt('p', { status: 'running' });
  reached('half taken up');
  session.addMessage(message('p'));
});
reached('taken up');
const names = { sessionId: 's', chatId: 'c', turnId: 't-p', requestId: 'p', messageId: 'm-p' };
const writer = await beginTurn(store.log, { ...names, origin: { session: 's', promptId: 'p' } });
reached('begun');
await writer.append(OPENING);
reached('appended');
await writer.append([delta('a')], 7);
reached('appended with a mark');
await store.log.command('t-p', { type: 'answer', questionId: 'q', answer: 1 });
reached('answered');
await writer.append(CLOSING, 9);
reached('appended to the end');
await writer.close(FINISHED, () => {
  reached('store entered');
  session.addMessage(message('m-p', { role: 'assistant', promptId: 'p' }));
  reached('message stored');
  session.updatePrompt('p', { status: 'ended', outcome: 'finished' });
  reached('store left');
});
reached('closed');
