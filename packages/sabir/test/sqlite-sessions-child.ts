/**
 * A process that opens the file it is told of, does what it is told, and kills itself at once, or
 * waits to be killed. It says each write that has returned.
 */
import { writeSync } from 'node:fs';
import { sqliteSessionStore } from '../src/platforms/node/sqlite-sessions.ts';
import { message, participant, prompt } from './session-storage-helpers.ts';

const [file = '', task = '', round = ''] = process.argv.slice(2);
// Root may write anywhere.
if (task === 'open without rights' && process.getuid?.() === 0) process.setuid?.(65_534);
const store = sqliteSessionStore({ file, lockTimeoutMs: 0 });
const session = store.open('s');
const die = () => process.kill(process.pid, 'SIGKILL');

const tasks: Record<string, () => void> = {
  'write each': () => {
    session.addMessage(message(`m${round}`));
    session.addPrompt(prompt(`p${round}`));
    session.updatePrompt(`p${round}`, { status: 'running', startedAt: 1 });
    session.saveParticipant(participant('ada', { lastSeenAt: Number(round) }));
    die();
  },
  'die in a transaction': () => {
    session.transaction(() => {
      session.addMessage(message('never'));
      session.saveParticipant(participant('ada', { lastSeenAt: 99 }));
      die();
    });
  },
  'write on and on': () => {
    for (let count = 1; ; count++) {
      session.addMessage(message(`${count}`));
      writeSync(1, `${count}\n`);
    }
  },
  hold: () => {
    writeSync(1, 'open\n');
    setInterval(() => undefined, 60_000);
  },
  close: () => store.close(),
};
tasks[task]?.();
