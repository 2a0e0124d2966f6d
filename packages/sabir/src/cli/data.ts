/** `sabir data`: looks after the file of chats while no server has it open. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type Deleted,
  openSessionAdmin,
  type SessionSummary,
} from '../platforms/node/sqlite-admin.ts';
import { CliError } from './cli-error.ts';
import type { DataOptions } from './data-flags.ts';
import { escapeControls } from './log.ts';

const DAY_MS = 86_400_000;

/** What it did, in lines for stdout. */
export function runData(options: DataOptions): string {
  const { database: file, action } = options;
  if (!existsSync(file)) throw new CliError(`There is no file ${file}. (--database)`);
  const admin = openAdmin(file);
  try {
    switch (action) {
      case 'list':
        return toTable(admin.sessions());
      case 'backup':
        admin.backup(options.to);
        return `Backed up to ${options.to}.\n`;
      case 'purge':
        return toReport(admin.purge(Date.now() - options.days * DAY_MS, options.isDryRun), options);
      case 'delete-user':
        return toReport(admin.deleteUser(options.user, options.isDryRun), options);
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new CliError(`${resolve(options.to)} is there already. (--to)`);
    if (code === 'ENOENT' || code === 'EACCES') throw new CliError(`${message} (--to)`);
    throw error;
  } finally {
    admin.close();
  }
}

function openAdmin(file: string): ReturnType<typeof openSessionAdmin> {
  try {
    return openSessionAdmin({ file });
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    if (typeof code !== 'string') throw error;
    throw new CliError(`${message} (--database)`, { cause: error });
  }
}

function toTable(sessions: SessionSummary[]): string {
  const rows = sessions.map(({ sessionId, messages, bytes, updatedAt }) =>
    [
      new Date(updatedAt).toISOString(),
      String(bytes).padStart(12),
      String(messages).padStart(8),
      escapeControls(sessionId),
    ].join('  '),
  );
  const total = sessions.reduce((sum, { bytes }) => sum + bytes, 0);
  const head = ['last change'.padEnd(24), 'bytes'.padStart(12), 'messages'.padStart(8), 'session'];
  const end = `${sessions.length} sessions, ${total} bytes`;
  return `${[head.join('  '), ...rows, end].join('\n')}\n`;
}

function toReport(deleted: Deleted, { isDryRun }: DataOptions): string {
  const counts = Object.entries(deleted).map(([name, count]) => `${count} ${name}`);
  return `${isDryRun ? 'Would delete' : 'Deleted'} ${counts.join(', ')}.\n`;
}
