/**
 * `npm run matrix`: every client in Chromium against a real session server, in every row of what people do, and the cases
 * that show what no server can make right. Writes the table of docs/CLIENTS.md; exits with 1 if a cell is wrong.
 * `npm run matrix -- --client "useChat 6" --row drop` runs a part, and writes nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  MATRIX_CLIENTS,
  type MatrixClient,
  RECOMMENDED,
} from '../packages/sabir/test/matrix/clients.ts';
import { limitOf, proveLimit } from '../packages/sabir/test/matrix/limits.ts';
import { type Judged, judge, toMarkdown } from '../packages/sabir/test/matrix/report.ts';
import { ROWS } from '../packages/sabir/test/matrix/rows.ts';
import { runAll, startMatrix } from '../packages/sabir/test/matrix/run.ts';
import { launchChromium } from './chromium.ts';
import { installChromium } from './install-chromium.ts';
import { ROOT } from './run-command.ts';

const { values } = parseArgs({
  options: {
    client: { type: 'string' },
    row: { type: 'string' },
    'at-once': { type: 'string', default: '6' },
  },
});
const clients = MATRIX_CLIENTS.filter(({ name }) => !values.client || name === values.client);
const rows = ROWS.filter(({ name }) => !values.row || name === values.row);

installChromium();
const browser = await launchChromium();
const isWhole = !values.client && !values.row;
const recommended = isWhole ? RECOMMENDED : [];
const matrix = await startMatrix(browser, [...clients, ...recommended.map(([client]) => client)]);
const startedAt = Date.now();
const problems: string[] = [];

async function run(client: MatrixClient, row: (typeof rows)[number]): Promise<Judged> {
  const cell = judge(await matrix.runCell(client, row));
  const where = `${client.name}, ${row.name}`;
  const limit = limitOf(row.name, client.name);
  console.log(
    `${cell.mark} ${where} (${cell.tookMs} ms)${cell.problem ? `: ${cell.problem}` : ''}`,
  );
  if (cell.mark === '❌') problems.push(`${where}: ${cell.problem}`);
  if (!limit) return cell;
  if (cell.mark === '✅') problems.push(`${where}: it is right, so the note ${limit.id} is not`);
  const objection = await proveLimit(browser, limit, row.name, client);
  if (objection) problems.push(`${where}: ${limit.id} is not proved: ${objection}`);
  return cell;
}

const jobs = [
  ...rows.flatMap((row) => clients.map((client) => () => run(client, row))),
  ...recommended.flatMap(([client, names]) =>
    rows
      .filter(({ name }) => names.some((each) => each === name))
      .map((row) => () => run(client, row)),
  ),
];
const cells = await runAll(jobs, Number(values['at-once']));
await matrix.close();
await browser.close();

const [BEGIN, END] = ['<!-- matrix: written by npm run matrix -->', '<!-- end of the matrix -->'];
if (isWhole) {
  const file = `${ROOT}docs/CLIENTS.md`;
  const text = readFileSync(file, 'utf8');
  const [before, rest = ''] = text.split(BEGIN);
  const [, after = ''] = rest.split(END);
  writeFileSync(file, `${before}${BEGIN}\n\n${toMarkdown(cells)}\n\n${END}${after}`);
}
const seconds = Math.round((Date.now() - startedAt) / 1000);
console.log(`${cells.length} cells in ${seconds} s, ${problems.length} problems`);
for (const problem of problems) console.log(`- ${problem}`);
process.exit(problems.length > 0 ? 1 : 0);
