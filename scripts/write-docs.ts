/**
 * Writes the pages that are made from the code: docs/ERRORS.md from errors.ts, docs/TRACE.md from
 * the tags in test titles, the limits in docs/SECURITY.md, docs/OPENAI-AGENTS-COMPARISON.md from runs
 * of that SDK. With `--check` nothing is written: a page that is not up to date, a requirement or a
 * promise of docs/SECURITY.md without a test, or a row of the comparison that we do not keep, fails.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as errors from '../packages/sabir/src/core/errors.ts';
import { DEFAULT_LIMITS as GATEWAY_LIMITS } from '../packages/sabir/src/gateway/options.ts';
import { DEFAULT_SOCKET_LIMITS } from '../packages/sabir/src/platforms/node/session-server-options.ts';
import { DEFAULT_LIMITS as SESSION_LIMITS } from '../packages/sabir/src/sessions/options.ts';
import { compareWithOfficialHelper } from './openai-agents-comparison/page.ts';
import { REQUIREMENTS } from './requirements.ts';
import { ROOT } from './run-command.ts';

type ErrorKind = errors.ErrorKind;

function errorsPage(): string {
  const kinds = Object.values(errors).filter(
    (value): value is ErrorKind => typeof value === 'object' && 'remedy' in value,
  );
  const rows = kinds.map(
    ({ code, status, retryable, userMessage, remedy }) =>
      `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${userMessage} | ${remedy} |`,
  );
  return `# Errors

Made from \`packages/sabir/src/core/errors.ts\` by \`npm run docs\`.

Every error of ours is a \`SabirError\` with a \`code\`. Before the first byte of an answer it is an
HTTP status with the body \`{ code, message, remedy }\`; after it, an \`error\` chunk whose text is
fit for a person, with the code in the message's metadata. Errors of the agent itself keep their
own first line, without stack and file paths; \`errorText\` changes what is shown.

| code | status | try again | what a person is shown | what a developer can do |
|---|---|---|---|---|
${rows.join('\n')}
`;
}

const TAG =
  /\[((?:FR|SC|US\d|EC|VAL|SES|RUN|CLI|TAB|BAR|RED|GWS|PRF)-(?:AS)?\d+|RFC-[A-Z]+-\d+(?:\.\d+)?|CT-[A-Z]+(?:-\d+)?)\]/g;

/** Every string in a test file that has a tag in it is the title of a test. */
function* taggedTitles(): Generator<{ file: string; title: string }> {
  for (const folder of [
    'packages/sabir/src',
    'packages/sabir/test',
    'apps/demo/test',
    'examples',
  ]) {
    const names = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
    for (const name of names.sort()) {
      if (name.includes('node_modules') || !/\.test(-d)?\.ts$/.test(name)) continue;
      const file = `${folder}/${name}`;
      const text = readFileSync(join(ROOT, file), 'utf8');
      for (const [, , title = ''] of text.matchAll(/(['"`])((?:(?!\1)[^\\\n]|\\.)*)\1/g)) {
        if (title.search(TAG) >= 0) yield { file, title };
      }
    }
  }
}

function tracePage(): { page: string; missing: string[] } {
  const proofs = new Map<string, string[]>();
  for (const { file, title } of taggedTitles()) {
    for (const [, tag = ''] of title.matchAll(TAG)) {
      if (!Object.hasOwn(REQUIREMENTS, tag)) throw new Error(`${file}: there is no item ${tag}`);
      const words = title.replaceAll(TAG, '').replaceAll(/\s+/g, ' ').trim();
      // At the end stands only why a test was skipped.
      const sentence = words.replace(/\s*\$\{[^}]*\}$/, '').replaceAll(/\$\{[^}]*\}/g, '…');
      proofs.set(tag, [...(proofs.get(tag) ?? []), `${sentence} (\`${file}\`)`]);
    }
  }
  const missing = Object.keys(REQUIREMENTS).filter((tag) => !proofs.has(tag));
  const rows = Object.entries(REQUIREMENTS).map(
    ([tag, what]) => `| ${tag} | ${what} | ${(proofs.get(tag) ?? ['**none**']).join('<br>')} |`,
  );
  const page = `# What was asked for, and the test that proves it

Made from the tags in test titles by \`npm run docs\`. FR: functional requirement, SC: success
criterion, US-AS: acceptance scenario of a user story, EC: edge case, VAL: validation rule. RFC: of the Agent Ops source; MAP: a row of
its mapping, EDGE: edge case, UNIT: unit test, ERR: row of the error matrix, INT: integration test, AUTH, STATE and
OBS: access, connections and metrics, CLIENT: the client experiment, CHANNEL, TOOL, FLAG, RISK and MANUAL: channels, ignored
tool outputs, rollout flags, production risks and the manual checklist. CT: of the stable contract; STEP: of its parser, NOTE: a constraint. SES: of the session server,
RUN: of its runners, CLI: of the command, TAB: of the page's third tab, BAR: what had to be reached.

| item | what | proved by |
|---|---|---|
${rows.join('\n')}
`;
  return { page, missing };
}

const LIMITS_BEGIN = '<!-- limits: made from the code by npm run docs -->\n';
const LIMITS_END = '<!-- end of limits -->\n';

/** docs/SECURITY.md with the limits as they are in the code. */
function securityPage(): { page: string; missing: string[] } {
  const written = readFileSync(join(ROOT, 'docs/SECURITY.md'), 'utf8');
  const [before = '', rest = ''] = written.split(LIMITS_BEGIN);
  const after = rest.split(LIMITS_END)[1] ?? '';
  const rows = [
    ...limitRows('gateway', GATEWAY_LIMITS),
    ...limitRows('session', SESSION_LIMITS),
    ...limitRows('session server', DEFAULT_SOCKET_LIMITS),
  ];
  const table = `\n| limit | of | default |\n|---|---|---|\n${rows.join('\n')}\n\n`;
  return {
    page: before + LIMITS_BEGIN + table + LIMITS_END + after,
    missing: [...promisedTests(written)]
      .filter(({ file, title }) => {
        const path = join(ROOT, 'packages/sabir', file);
        return (
          !existsSync(path) || !readFileSync(path, 'utf8').replaceAll("\\'", "'").includes(title)
        );
      })
      .map(({ file, title }) => `${file}: ${title}`),
  };
}

function limitRows(of: string, limits: Record<string, number>): string[] {
  return Object.entries(limits).map(([name, value]) => {
    const amount = /Bytes(Per(User|Address))?$/.test(name)
      ? bytesText(value)
      : value.toLocaleString('en');
    return `| \`${name}\` | ${of} | ${amount} |`;
  });
}

function bytesText(bytes: number): string {
  if (bytes >= 1_000_000) return `${bytes / 1_000_000} MB`;
  return bytes >= 1_000 ? `${bytes / 1_000} KB` : String(bytes);
}

/** A test is named by its file and, in quotes, its title; several of one file follow one another. */
function* promisedTests(page: string): Generator<{ file: string; title: string }> {
  for (const line of page.split('\n').filter((row) => row.startsWith('| '))) {
    let file: string | undefined;
    for (const [, path, title] of line.matchAll(
      /`((?:src|test)\/[\w./-]+\.test\.ts)`|"([^"]+)"/g,
    )) {
      if (path) file = path;
      else if (file && title) yield { file, title };
    }
  }
}

const isCheck = process.argv.includes('--check');
const { page, missing } = tracePage();
const comparison = await compareWithOfficialHelper();
const { lost } = comparison;
const security = securityPage();
let problems = missing.length + lost.length + security.missing.length;
for (const test of security.missing) console.error(`docs/SECURITY.md names no test: ${test}`);
if (missing.length > 0) console.error(`No test proves ${missing.join(', ')}.`);
if (lost.length > 0) console.error(`Runs of the OpenAI Agents SDK lose: ${lost.join('; ')}.`);
for (const [name, content] of [
  ['docs/ERRORS.md', errorsPage()],
  ['docs/TRACE.md', page],
  ['docs/SECURITY.md', security.page],
  ['docs/OPENAI-AGENTS-COMPARISON.md', comparison.page],
] as const) {
  const path = join(ROOT, name);
  if (!isCheck) {
    writeFileSync(path, content);
  } else if (!existsSync(path) || readFileSync(path, 'utf8') !== content) {
    console.error(`${name} is not up to date: run npm run docs`);
    problems++;
  }
}
console.log(`${Object.keys(REQUIREMENTS).length} items, ${missing.length} without a test`);
process.exit(problems > 0 ? 1 : 0);
