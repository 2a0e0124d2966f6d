/**
 * A process that opens the file it is told of, does what it is told, and kills itself at once, or
 * waits to be killed. It says each write that has returned.
 */
import { writeSync } from 'node:fs';
import { sqliteSessionStore } from '../src/platforms/node/sqlite-sessions.ts';
import { message, turn } from './session-storage-helpers.ts';

const [file = '', task = '', round = ''] = process.argv.slice(2);
// Root may write anywhere.
if (task === 'open without rights' && process.getuid?.() === 0) process.setuid?.(65_534);
const store = sqliteSessionStore({ file, lockTimeoutMs: 0 });
const session = store.open('s');
const die = () => process.kill(process.pid, 'SIGKILL');

const tasks: Record<string, () => void> = {
  'write each': () => {
    session.addMessage(message(`m${round}`));
    session.addTurn(turn(`t${round}`));
    session.updateTurn(`t${round}`, { status: 'running', startedAt: 1 });
    session.appendEvents(`t${round}`, 1, `"e${round}"`);
    session.set('round', round);
    die();
  },
  'die in a transaction': () => {
    session.transaction(() => {
      session.addMessage(message('never'));
      session.set('round', 'never');
      die();
    });
  },
  'write on and on': () => {
    session.addTurn(turn('endless'));
    for (let seq = 1; ; seq++) {
      session.appendEvents('endless', seq, `${seq}`);
      writeSync(1, `${seq}\n`);
    }
  },
  hold: () => {
    writeSync(1, 'open\n');
    setInterval(() => undefined, 60_000);
  },
  close: () => store.close(),
};
tasks[task]?.();
