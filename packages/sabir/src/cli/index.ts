#!/usr/bin/env node
/** The command `sabir`. */
import { readFileSync } from 'node:fs';
import { CliError, usageError } from './cli-error.ts';
import { readDataOptions } from './data-flags.ts';
import { toDataHelp, toMainHelp, toServeHelp } from './help.ts';
import { readServeOptions } from './serve-flags.ts';
import { didYouMean } from './suggest.ts';

const COMMANDS = ['serve', 'data', 'help'];

async function run([command, ...args]: string[]): Promise<void> {
  switch (command) {
    case undefined:
    case '--help':
    case '-h':
      return print(toMainHelp(readVersion()));
    case '--version':
    case '-v':
      return print(`${readVersion()}\n`);
    case 'help':
      return print(toHelpOf(args[0]));
    case 'serve':
      return serve(args);
    case 'data':
      return data(args);
    default: {
      const kind = command.startsWith('-') ? 'flag' : 'command';
      const known = kind === 'flag' ? ['--help', '--version'] : COMMANDS;
      throw usageError(
        `Unknown ${kind} ${command}.${didYouMean(command, known)} See sabir --help.`,
      );
    }
  }
}

async function serve(args: string[]): Promise<void> {
  const options = readServeOptions(args, surroundings());
  if (options === 'help') return print(toServeHelp());
  const { serve } = await import('./serve.ts').catch(explainOldNode);
  return serve(options);
}

async function data(args: string[]): Promise<void> {
  const options = readDataOptions(args, surroundings());
  if (options === 'help') return print(toDataHelp());
  const { runData } = await import('./data.ts').catch(explainOldNode);
  print(runData(options));
}

function surroundings() {
  return { environment: process.env, cwd: process.cwd() };
}

/** What needs `node:sqlite` is loaded late: help is there also where Node is too old for the rest. */
function explainOldNode(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_UNKNOWN_BUILTIN_MODULE') throw error;
  throw new CliError(`sabir needs Node 22.13 or later for this; here is ${process.version}.`);
}

function toHelpOf(command: string | undefined): string {
  if (command === undefined || command === 'help') return toMainHelp(readVersion());
  if (command === 'serve') return toServeHelp();
  if (command === 'data') return toDataHelp();
  throw usageError(`Unknown command ${command}.${didYouMean(command, COMMANDS)} See sabir --help.`);
}

function readVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

function print(text: string): void {
  process.stdout.write(text);
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof CliError)) throw error;
  process.stderr.write(`${error.message}\n`);
  // Whatever was begun meanwhile is not waited for.
  process.exit(error.exitCode);
}
