/** The flags of `sabir data` and what they mean. Only parses. */
import { resolve } from 'node:path';
import { usageError } from './cli-error.ts';
import { type FlagTable, type GivenFlags, readFlags } from './flags.ts';
import { didYouMean } from './suggest.ts';

export const DATA_FLAGS = {
  database: {
    kind: 'text',
    value: 'file',
    example: 'sabir.db',
    env: ['SABIR_DATABASE'],
    about: 'the file of chats (sabir.db)',
  },
  to: {
    kind: 'text',
    value: 'file',
    example: 'backup.db',
    about: 'backup: where to; must not be there yet',
  },
  days: {
    kind: 'text',
    value: 'number',
    example: '90',
    about: 'purge: sessions unchanged for longer',
  },
  user: {
    kind: 'text',
    value: 'id',
    example: 'olga',
    about: 'delete-user: whose data',
  },
  'dry-run': { kind: 'switch', about: 'says what would be deleted, and deletes nothing' },
  help: { kind: 'switch', short: 'h', about: 'this text' },
} as const satisfies FlagTable;

const DATA_ACTIONS = ['list', 'backup', 'purge', 'delete-user'] as const;
type DataAction = (typeof DATA_ACTIONS)[number];
type DataFlags = GivenFlags<typeof DATA_FLAGS>;

/** Which flag an action cannot do without. */
const NEEDS: Record<DataAction, 'to' | 'days' | 'user' | undefined> = {
  list: undefined,
  backup: 'to',
  purge: 'days',
  'delete-user': 'user',
};

export type DataOptions = {
  action: DataAction;
  database: string;
  to: string;
  days: number;
  user: string;
  isDryRun: boolean;
};

type Surroundings = {
  environment: Readonly<Record<string, string | undefined>>;
  /** The current folder. */
  cwd: string;
};

/** `help` where that was asked for. Throws with a sentence for whatever is wrong. */
export function readDataOptions(
  [name = '--help', ...args]: readonly string[],
  { environment, cwd }: Surroundings,
): DataOptions | 'help' {
  if (name === '--help' || name === '-h') return 'help';
  const action = DATA_ACTIONS.find((known) => known === name);
  if (!action) {
    throw usageError(
      `There is no sabir data ${name}.${didYouMean(name, DATA_ACTIONS)} ` +
        `It must be one of ${DATA_ACTIONS.join(', ')}.`,
    );
  }
  const flags = readFlags(DATA_FLAGS, args, environment);
  if (flags.help) return 'help';
  checkFlags(action, flags);
  const text = (flag: keyof DataFlags) => flags[flag]?.values[0] ?? '';
  return {
    action,
    database: resolve(cwd, text('database') || 'sabir.db'),
    to: resolve(cwd, text('to')),
    days: Number(text('days')),
    user: text('user'),
    isDryRun: flags['dry-run'] !== undefined,
  };
}

function checkFlags(action: DataAction, flags: DataFlags): void {
  const needed = NEEDS[action];
  if (needed && !flags[needed]) {
    const { value, example } = DATA_FLAGS[needed];
    throw usageError(`sabir data ${action} needs --${needed} <${value}>, such as ${example}.`);
  }
  const mayDelete = action === 'purge' || action === 'delete-user';
  for (const name of ['to', 'days', 'user', 'dry-run'] as const) {
    const isUsed = name === needed || (name === 'dry-run' && mayDelete);
    if (flags[name] && !isUsed) throw usageError(`sabir data ${action} takes no --${name}.`);
  }
  const [days] = flags.days?.values ?? [];
  if (days !== undefined && !/^\d{1,6}$/.test(days)) {
    throw usageError(`--days must be a whole number from 0 to 999999, not “${days}”.`);
  }
}
