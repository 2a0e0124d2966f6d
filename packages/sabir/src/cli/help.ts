/** What `--help` says. */
import { DATA_FLAGS } from './data-flags.ts';
import type { Flag, FlagTable } from './flags.ts';
import { SERVE_FLAGS } from './serve-flags.ts';

const FLAG_WIDTH = 34;
const ABOUT_WIDTH = 46;

type ServeFlag = keyof typeof SERVE_FLAGS;

const SERVE_GROUPS: [title: string, flags: ServeFlag[]][] = [
  ['Where it is', ['port', 'host', 'page', 'no-page', 'csp', 'cors']],
  ['Who answers', ['agent', 'model', 'directory']],
  ['Who may come in', ['token', 'viewer-token', 'jwt-secret', 'runner-token', 'open']],
  ['Everything else', ['database', 'shutdown', 'log', 'help']],
];

export function toMainHelp(version: string): string {
  return `sabir ${version}: any agent in, any chat client out

Usage: sabir <command> [flags]

Commands
  serve         starts a chat server with an agent behind it
  data          lists, backs up and deletes what a stopped server has kept
  help <name>   tells about a command

Flags
  --help, -h
  --version, -v

To begin with: sabir serve, and open the page it names. It needs no key and no model.
`;
}

export function toServeHelp(): string {
  const groups = SERVE_GROUPS.map(([title, names]) =>
    [title, ...names.map((name) => toLine(name, SERVE_FLAGS))].join('\n'),
  );
  return `sabir serve: a chat server with an agent behind it, in one process on one port

Usage: sabir serve [flags]      (in brackets: the default; on the right: as environment variable)

${groups.join('\n\n')}

Examples
  sabir serve                                                    a first look, without a model
  sabir serve --agent opencode --directory ./project             a coding agent
  sabir serve --agent ai-sdk --model openai/gpt-5                any model of the AI SDK
  SABIR_TOKEN=$(openssl rand -hex 24) sabir serve --host 0.0.0.0 for others, too

Flags win over environment variables. More: docs/CLI.md
`;
}

export function toDataHelp(): string {
  const flags = Object.keys(DATA_FLAGS).map((name) => toLine(name, DATA_FLAGS));
  return `sabir data: looks after the file of chats, while no server has it open

Usage: sabir data <action> [flags]

Actions
  list                              sessions, with their sizes and last changes
  backup --to <file>                a copy of the whole file, for its owner alone
  purge --days <number>             deletes sessions that have not changed for so long
  delete-user --user <id>           deletes what a person said, and what was said to them

Flags
${flags.join('\n')}

More: docs/CLI.md
`;
}

function toLine(name: string, table: FlagTable): string {
  const { short, value, about, env = [] } = table[name] as Flag;
  const names = `--${name}${short ? `, -${short}` : ''}${value ? ` <${value}>` : ''}`;
  const line = `  ${names}`.padEnd(FLAG_WIDTH) + about.padEnd(ABOUT_WIDTH) + env.join(', ');
  return line.trimEnd();
}
