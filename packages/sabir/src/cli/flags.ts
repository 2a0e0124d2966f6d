/** Flags as a table: read from the command line and the environment, and told in `--help`. */
import { parseArgs } from 'node:util';
import { usageError } from './cli-error.ts';
import { didYouMean } from './suggest.ts';

export type Flag = {
  /** A switch has no value; a list may be given several times. */
  kind: 'text' | 'list' | 'switch';
  /** Environment variables that do the same, the one that counts first. */
  env?: readonly string[];
  short?: string;
  /** What stands for the value in `--help`. */
  value?: string;
  /** Something that would be right, for whoever leaves the value out. */
  example?: string;
  about: string;
};

export type FlagTable = Record<string, Flag>;

/** What was said, and where, for sentences about it: `--port`, or `SABIR_PORT`. */
export type Given = { values: string[]; source: string; isFromEnvironment: boolean };

export type GivenFlags<Table extends FlagTable> = { [Name in keyof Table]?: Given };

/** Throws with a sentence for whatever is not in the table. Flags win over the environment. */
export function readFlags<Table extends FlagTable>(
  table: Table,
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): GivenFlags<Table> {
  const given = readArguments(table, args);
  for (const [name, { kind, env = [] }] of Object.entries(table)) {
    if (given[name]) continue;
    // An empty variable is how many tools say that there is none.
    const source = env.find((variable) => environment[variable]);
    const text = source && environment[source];
    if (!source || !text) continue;
    const values = kind === 'list' ? text.split(/[\s,]+/).filter(Boolean) : [text];
    given[name] = { values, source, isFromEnvironment: true };
  }
  return given as GivenFlags<Table>;
}

function readArguments(table: FlagTable, args: readonly string[]): Record<string, Given> {
  const options = Object.fromEntries(
    Object.entries(table).map(([name, { kind, short }]) => {
      const type = kind === 'switch' ? ('boolean' as const) : ('string' as const);
      return [name, { type, multiple: kind === 'list', ...(short && { short }) }];
    }),
  );
  // Not strict: the sentences about what is wrong are our own.
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const given: Record<string, Given> = {};
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      throw usageError(`“${token.value}” is not a flag, and nothing else is expected here.`);
    }
    const { name, rawName, value, inlineValue } = token;
    const flag = Object.hasOwn(table, name) ? table[name] : undefined;
    if (!flag) throw usageError(`Unknown flag ${rawName}.${suggestFlag(table, name)}`);
    const source = `--${name}`;
    const isMissing = value === undefined || value === '' || (!inlineValue && /^-./.test(value));
    if (flag.kind === 'switch') {
      if (value !== undefined) throw usageError(`${source} takes no value.`);
    } else if (isMissing) {
      const { example = flag.value ?? '…' } = flag;
      throw usageError(`${source} needs a value, for example ${source} ${example}`);
    }
    const before = flag.kind === 'list' ? (given[name]?.values ?? []) : [];
    const values = value === undefined ? [] : [...before, value];
    given[name] = { values, source, isFromEnvironment: false };
  }
  return given;
}

function suggestFlag(table: FlagTable, name: string): string {
  return didYouMean(
    `--${name}`,
    Object.keys(table).map((known) => `--${known}`),
  );
}
