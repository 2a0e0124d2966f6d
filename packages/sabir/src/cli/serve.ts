/** `sabir serve`: everything a chat on an agent needs, until it is told to end. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Logger } from '../core/translator.ts';
import { withoutContent } from '../core/without-content.ts';
import { refuseRebound } from '../platforms/node/loopback.ts';
import {
  type SessionStack,
  sqliteSessionStore,
  startSessionStack,
} from '../platforms/node/sessions.ts';
import type { SessionStore } from '../sessions/index.ts';
import { createAccess } from './access.ts';
import { type LoadedAgent, loadAgent } from './agents.ts';
import { CliError } from './cli-error.ts';
import { createForeignPageLog } from './foreign-pages.ts';
import { createLog } from './log.ts';
import { createPageFiles, type PageFiles } from './page-files.ts';
import type { ServeOptions } from './serve-flags.ts';
import { toSummary } from './summary.ts';

const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143 } as const;
type Signal = keyof typeof SIGNAL_CODES;
/** A terminal tells every process of Ctrl-C, and npm passes it on once more. */
const ECHO_MS = 300;

export async function serve(options: ServeOptions): Promise<void> {
  const write = (line: string) => void process.stderr.write(`${line}\n`);
  const logger = createLog(options.log, write);
  handleUncaught(logger);
  // A reader that has seen enough, such as `head`, is no reason to end.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  for (const warning of options.warnings) write(`Warning: ${warning}`);

  const agent = await loadAgent({ ...options, cwd: process.cwd() });
  const pages = createPageFiles(options.page, agent.suggestions);
  const store = openStore(options.database);
  const stack = await start(options, { agent, store, logger, pages });
  const close = async () => {
    await stack.close();
    await agent.close?.();
    store.close();
  };
  endOnSignals({ close, shutdownMs: options.shutdownMs, logger, write });
  process.stdout.write(
    toSummary({
      ...options,
      url: stack.url,
      agent: agent.about,
      hasColors: process.stdout.isTTY === true && !process.env.NO_COLOR,
    }),
  );
}

function openStore(file: string): SessionStore {
  const folder = dirname(file);
  // A folder that is not there is more often a typing error than a wish.
  if (file !== ':memory:' && !existsSync(folder)) {
    throw new CliError(
      `There is no folder ${folder} for --database. Make it first: mkdir -p ${folder}`,
    );
  }
  try {
    return sqliteSessionStore({ file });
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    if (typeof code !== 'string') throw error;
    throw new CliError(`${message} (--database)`, { cause: error });
  }
}

type Parts = {
  agent: LoadedAgent;
  store: SessionStore;
  logger: Required<Logger>;
  pages: PageFiles;
};

async function start(
  options: ServeOptions,
  { agent, store, logger, pages }: Parts,
): Promise<SessionStack> {
  const { port, host, shutdownMs, cors: origins, isOpen, isOpenToAll } = options;
  const isForThisMachine = isOpen && !isOpenToAll;
  const { isOwner, ...access } = createAccess(options);
  const cors = { origins, onRefused: createForeignPageLog(origins, logger) };
  try {
    return await startSessionStack({
      port,
      host,
      shutdownMs,
      store,
      logger,
      ...access,
      // The gateway answers for every path that has no file.
      fetch(request) {
        return (isForThisMachine ? refuseRebound(request) : undefined) ?? pages(request);
      },
      agent: agent.agentFor,
      gateway: { cors, routes: { metrics: isOpen || isOwner } },
      sessions: { cors },
    });
  } catch (error) {
    store.close();
    await agent.close?.();
    throw explain(error, options);
  }
}

function explain(error: unknown, { port, host }: ServeOptions): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new CliError(
      `Port ${port} is already taken. Choose another one: sabir serve --port ${port + 1}, ` +
        'or --port 0 for any that is free.',
    );
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CliError(
      `This machine has no address ${host}. Use --host 127.0.0.1 for this machine only, or ` +
        '--host 0.0.0.0 for all its addresses.',
    );
  }
  return code === 'EACCES' ? new CliError(message) : error;
}

type Ending = {
  close(): Promise<void>;
  shutdownMs: number;
  logger: Required<Logger>;
  write(line: string): void;
};

function endOnSignals({ close, shutdownMs, logger, write }: Ending): void {
  let since: number | undefined;
  const end = async (signal: Signal) => {
    if (since !== undefined) {
      const isEcho =
        signal === 'SIGINT' && process.stdin.isTTY && performance.now() - since < ECHO_MS;
      if (!isEcho) process.exit(SIGNAL_CODES[signal]);
      return;
    }
    since = performance.now();
    const again = signal === 'SIGINT' ? 'Ctrl-C' : signal;
    write(
      `Ending: answers that run have ${shutdownMs / 1000} seconds to finish. ` +
        `${again} again ends at once.`,
    );
    try {
      await close();
      process.exit(0);
    } catch (error) {
      logger.error('could not end properly', { error });
      process.exit(1);
    }
  };
  for (const signal of Object.keys(SIGNAL_CODES) as Signal[]) {
    process.on(signal, () => void end(signal));
  }
}

/**
 * A rejection that nothing handles is nearly always a forgotten promise of the agent's module, and leaves
 * everybody else's state alone: the server goes on. An exception has left its code in the middle, which may
 * be ours: the server ends, and its supervisor starts it anew.
 */
function handleUncaught(logger: Required<Logger>): void {
  process.on('unhandledRejection', (reason) => {
    const error = withoutContent(reason);
    logger.error('a promise was rejected and nothing handled it; the server goes on', { error });
  });
  process.on('uncaughtException', (error) => {
    logger.error('an exception was not caught; the server ends', { error });
    process.exit(1);
  });
}
