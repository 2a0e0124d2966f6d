/** What `sabir serve` can be told, and what that means. Nothing here does anything. */

import { resolve } from 'node:path';
import { isLoopback } from '../platforms/node/loopback.ts';
import { usageError } from './cli-error.ts';
import { type FlagTable, type Given, type GivenFlags, readFlags } from './flags.ts';
import { LOG_LEVELS, type LogLevel } from './log.ts';
import { readSecrets, type Secret } from './secrets.ts';
import { didYouMean } from './suggest.ts';

export const SERVE_FLAGS = {
  port: {
    kind: 'text',
    short: 'p',
    value: 'number',
    example: '3000',
    env: ['SABIR_PORT', 'PORT'],
    about: 'where to listen; 0 for any free one (3000)',
  },
  host: {
    kind: 'text',
    value: 'address',
    example: '127.0.0.1',
    env: ['SABIR_HOST', 'HOST'],
    about: 'the address; 0.0.0.0 for all (127.0.0.1)',
  },
  page: {
    kind: 'text',
    value: 'folder',
    example: './public',
    env: ['SABIR_PAGE'],
    about: 'a page of your own at / (a chat)',
  },
  'no-page': { kind: 'switch', about: 'no page at all' },
  csp: {
    kind: 'text',
    value: 'policy',
    example: "default-src 'self'",
    env: ['SABIR_CSP'],
    about: 'Content-Security-Policy of --page, or none',
  },
  cors: {
    kind: 'list',
    value: 'origin',
    example: 'https://app.example.com',
    env: ['SABIR_CORS'],
    about: 'pages elsewhere that may call; repeatable',
  },
  agent: {
    kind: 'text',
    value: 'agent',
    example: 'opencode',
    env: ['SABIR_AGENT'],
    about: 'scripted, opencode, ai-sdk, ./file (scripted)',
  },
  model: {
    kind: 'text',
    value: 'provider/model',
    example: 'anthropic/claude-sonnet-4-5',
    env: ['SABIR_MODEL'],
    about: 'for opencode and ai-sdk',
  },
  directory: {
    kind: 'text',
    value: 'folder',
    example: './project',
    env: ['SABIR_DIRECTORY'],
    about: 'where a coding agent works (this folder)',
  },
  token: {
    kind: 'list',
    value: '[name=]secret',
    example: 'olga=a-long-random-secret',
    env: ['SABIR_TOKEN'],
    about: 'lets an owner in; repeatable',
  },
  'viewer-token': {
    kind: 'list',
    value: '[name=]secret',
    example: 'vera=another-secret',
    env: ['SABIR_VIEWER_TOKEN'],
    about: 'lets in who may only watch; repeatable',
  },
  'jwt-secret': {
    kind: 'text',
    value: 'secret',
    example: 'at-least-32-random-characters',
    env: ['SABIR_JWT_SECRET'],
    about: 'lets in who has a JWT (HS256; sub, role)',
  },
  'runner-token': {
    kind: 'text',
    value: 'secret',
    example: 'a-long-random-secret',
    env: ['SABIR_RUNNER_TOKEN'],
    about: 'lets runners on other machines in',
  },
  open: { kind: 'switch', about: 'everybody who can reach it may do everything' },
  database: {
    kind: 'text',
    value: 'file',
    example: 'sabir.db',
    env: ['SABIR_DATABASE'],
    about: 'where chats are kept, or :memory: (sabir.db)',
  },
  shutdown: {
    kind: 'text',
    value: 'seconds',
    example: '10',
    env: ['SABIR_SHUTDOWN'],
    about: 'how long answers may take to end (10)',
  },
  log: {
    kind: 'text',
    value: 'level',
    example: 'info',
    env: ['SABIR_LOG'],
    about: 'info, warn, error, or json (warn)',
  },
  help: { kind: 'switch', short: 'h', about: 'this text' },
} as const satisfies FlagTable;

type ServeFlags = GivenFlags<typeof SERVE_FLAGS>;

export type ServeOptions = {
  port: number;
  host: string;
  /** A folder, the page that comes along, or none. */
  page: { folder: string; policy?: string } | 'chat' | 'none';
  cors: '*' | string[];
  agent: string;
  model: string | undefined;
  directory: string;
  secrets: Secret[];
  jwtSecret: string | undefined;
  runnerToken: string | undefined;
  /** Nobody is asked who they are. */
  isOpen: boolean;
  /** Asked on purpose for everybody to be let in. */
  isOpenToAll: boolean;
  database: string;
  shutdownMs: number;
  log: LogLevel;
  /** What is allowed, and yet unwise. */
  warnings: string[];
};

type Surroundings = {
  environment: Readonly<Record<string, string | undefined>>;
  /** The current folder. */
  cwd: string;
};

/** `help` where that was asked for. Throws with a sentence for whatever is wrong. */
export function readServeOptions(
  args: readonly string[],
  { environment, cwd }: Surroundings,
): ServeOptions | 'help' {
  const flags = readFlags(SERVE_FLAGS, args, environment);
  if (flags.help) return 'help';
  const text = (name: keyof ServeFlags) => flags[name]?.values[0];
  const host = text('host') ?? '127.0.0.1';
  const secrets = [
    ...readSecrets(flags.token, 'owner'),
    ...readSecrets(flags['viewer-token'], 'viewer'),
  ];
  const jwtSecret = readJwtSecret(flags['jwt-secret']);
  const isOpen = secrets.length === 0 && jwtSecret === undefined;
  const isOpenToAll = flags.open !== undefined;
  const cors = readOrigins(flags.cors);
  checkOpenness({ host, isOpen, isOpenToAll, cors });
  const agent = readAgent(text('agent') ?? 'scripted');
  const database = text('database') ?? 'sabir.db';
  return {
    host,
    secrets,
    jwtSecret,
    isOpen,
    isOpenToAll,
    cors,
    agent,
    port: readNumber(flags.port, { fallback: 3000, most: 65_535, isWhole: true }),
    page: readPage(flags, cwd),
    model: text('model'),
    directory: resolve(cwd, text('directory') ?? '.'),
    runnerToken: text('runner-token'),
    database: database === ':memory:' ? database : resolve(cwd, database),
    shutdownMs: readNumber(flags.shutdown, { fallback: 10, most: 3_600 }) * 1_000,
    log: readLog(flags.log),
    warnings: warningsOf(flags, { agent, host, secrets }),
  };
}

function readNumber(
  given: Given | undefined,
  { fallback, most, isWhole = false }: { fallback: number; most: number; isWhole?: boolean },
): number {
  const [text] = given?.values ?? [];
  if (!given || text === undefined) return fallback;
  const isWritten = (isWhole ? /^\d{1,9}$/ : /^\d{1,9}(\.\d+)?$/).test(text);
  if (isWritten && Number(text) <= most) return Number(text);
  const kind = isWhole ? 'a whole number' : 'a number';
  throw usageError(`${given.source} must be ${kind} from 0 to ${most}, not “${text}”.`);
}

function readAgent(agent: string): string {
  const names = ['scripted', 'opencode', 'ai-sdk'];
  const isPath = /[/\\]|\.[cm]?[jt]s$/.test(agent);
  if (isPath || names.includes(agent)) return agent;
  throw usageError(
    `There is no agent “${agent}”.${didYouMean(agent, names)} It must be one of ${names.join(', ')}, ` +
      'or the path of a module that exports one, such as ./agent.js.',
  );
}

function readLog(given: Given | undefined): LogLevel {
  const [text = 'warn'] = given?.values ?? [];
  const level = LOG_LEVELS.find((known) => known === text);
  if (level) return level;
  const all = LOG_LEVELS.join(', ');
  throw usageError(
    `${given?.source} must be one of ${all}, not “${text}”.${didYouMean(text, LOG_LEVELS)}`,
  );
}

function readPage(flags: ServeFlags, cwd: string): ServeOptions['page'] {
  const { page, 'no-page': noPage, csp } = flags;
  if (page && noPage && !page.isFromEnvironment) {
    throw usageError('--page and --no-page contradict each other. Leave one out.');
  }
  const [folder] = page?.values ?? [];
  const [policy] = csp?.values ?? [];
  if (policy !== undefined && /[^\x20-\x7e]/.test(policy)) {
    throw usageError(`${csp?.source} must be one line of ASCII, as a header is.`);
  }
  if (noPage) return 'none';
  if (folder === undefined) return 'chat';
  return { folder: resolve(cwd, folder), ...(policy !== undefined && { policy }) };
}

function readOrigins(given: Given | undefined): '*' | string[] {
  if (!given) return [];
  if (given.values.includes('*')) return '*';
  return given.values.map((text) => {
    const origin = URL.canParse(text) ? new URL(text).origin : 'null';
    if (origin !== 'null' && text.replace(/\/$/, '') === origin) return origin;
    const right = origin === 'null' ? 'https://app.example.com' : origin;
    throw usageError(`${given.source} must be an origin, such as ${right}, not “${text}”.`);
  });
}

function readJwtSecret(given: Given | undefined): string | undefined {
  const [secret] = given?.values ?? [];
  if (given && secret !== undefined && Buffer.byteLength(secret) < 32) {
    throw usageError(
      `${given.source} is too short: with under 32 characters it can be guessed from one token. ` +
        'Make one: openssl rand -hex 32',
    );
  }
  return secret;
}

type Openness = Pick<ServeOptions, 'host' | 'isOpen' | 'isOpenToAll' | 'cors'>;

function checkOpenness({ host, isOpen, isOpenToAll, cors }: Openness): void {
  if (!isOpen && isOpenToAll) {
    throw usageError('--open lets everybody in, and a token says who may come in. Leave one out.');
  }
  if (!isOpen || isOpenToAll) return;
  if (!isLoopback(host)) {
    throw usageError(
      `On ${host} others can reach this server, and without a token they could all use the agent. ` +
        'Set one: SABIR_TOKEN=$(openssl rand -hex 24) sabir serve … (or --open, if you mean it).',
    );
  }
  if (cors === '*') {
    throw usageError(
      '--cors "*" without a token lets every web page you visit use the agent. ' +
        'Set a token, or name the origins.',
    );
  }
}

function warningsOf(
  flags: ServeFlags,
  { agent, host, secrets }: Pick<ServeOptions, 'agent' | 'host' | 'secrets'>,
): string[] {
  const warnings: string[] = [];
  if (flags['jwt-secret'] && !flags['jwt-secret'].isFromEnvironment) {
    warnings.push(
      'Everybody on this machine can see --jwt-secret in the list of processes. ' +
        'Set SABIR_JWT_SECRET instead.',
    );
  }
  if (flags.model && agent === 'scripted') {
    warnings.push('The scripted agent has no model: --model has no effect. See --agent.');
  }
  if (flags.csp && !flags.page) {
    warnings.push('The chat that comes along has its own policy: --csp has no effect. See --page.');
  }
  if (!isLoopback(host) && secrets.some(({ secret }) => secret.length < 16)) {
    warnings.push('A token of under 16 characters can be guessed. Make one: openssl rand -hex 24');
  }
  return warnings;
}
