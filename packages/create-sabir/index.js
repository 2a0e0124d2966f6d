#!/usr/bin/env node
// @ts-check
/** `npm create sabir my-chat`: copies the template into a new folder, and says what to do there. */
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HELP = `Usage: npm create sabir [folder]

Makes a chat on an agent of your own: a Vite and React page, and a Sabir server with a durable history.

  folder       where to put it; "my-chat" unless given
  -h, --help   shows this`;
/** Node runs TypeScript files from this version on. */
const NODE = [22, 18];

/** @param {string} message */
function fail(message) {
  console.error(message);
  process.exit(1);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { help: { type: 'boolean', short: 'h' } },
    });
  } catch (error) {
    return fail(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
  }
}

/** The name of the folder as npm allows it for a package. @param {string} folder */
function packageNameOf(folder) {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-_.~]+/g, '-');
  return name.replace(/^[._-]+/, '') || 'my-chat';
}

const { values, positionals } = readArguments() ?? { values: {}, positionals: [] };
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
if (positionals.length > 1) fail(`One folder is needed, not ${positionals.length}.\n\n${HELP}`);

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const [leastMajor = 0, leastMinor = 0] = NODE;
if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
  fail(`Node ${NODE.join('.')} or later is needed, and this is ${process.versions.node}.`);
}

const folder = resolve(positionals[0] ?? 'my-chat');
if (existsSync(folder) && readdirSync(folder).length > 0) {
  fail(`${folder} is not empty. Name a new folder: npm create sabir another-chat`);
}

cpSync(fileURLToPath(new URL('template', import.meta.url)), folder, { recursive: true });
// npm leaves files of this name out of a package.
renameSync(join(folder, 'gitignore'), join(folder, '.gitignore'));
const manifest = join(folder, 'package.json');
const made = { ...JSON.parse(readFileSync(manifest, 'utf8')), name: packageNameOf(folder) };
writeFileSync(manifest, `${JSON.stringify(made, undefined, 2)}\n`);

const path = relative(process.cwd(), folder);
console.log(`A chat is in ${folder}. Now:

${path ? `  cd ${path}\n` : ''}  npm install
  npm run dev

The agent is agent.ts, the page is src/chat.tsx.`);
