/** The matrix as Markdown, for docs/CLIENTS.md. */
import { MATRIX_CLIENTS, versionsOf } from './clients.ts';
import { LIMITS, limitOf } from './limits.ts';
import { ROWS } from './rows.ts';
import type { CellResult } from './run.ts';

export type Judged = CellResult & { mark: '✅' | '⚠️' | '❌' };

/** Right, wrong as it has to be, or wrong. */
export function judge(result: CellResult): Judged {
  const limit = limitOf(result.row, result.client);
  if (!result.problem) return { ...result, mark: '✅' };
  return { ...result, mark: limit && result.isMendedByReload ? '⚠️' : '❌' };
}

export function toMarkdown(cells: readonly Judged[]): string {
  const used = LIMITS.filter(({ id }) =>
    cells.some(({ mark, row, client }) => mark === '⚠️' && limitOf(row, client)?.id === id),
  );
  const header = ['', ...MATRIX_CLIENTS.map(({ name }) => name)];
  const rows = ROWS.map(({ name: row, description }) => [
    `**${row}**: ${description}`,
    ...MATRIX_CLIENTS.map(({ name: client }) => {
      const cell = cells.find((each) => each.row === row && each.client === client);
      if (!cell) return '';
      const limit = cell.mark === '⚠️' ? limitOf(row, client) : undefined;
      return limit ? `${cell.mark} [${used.indexOf(limit) + 1}](#${limit.id})` : cell.mark;
    }),
  ]);
  const line = (columns: string[]) => `| ${columns.join(' | ')} |`;
  const notes = used.map(({ id, note }, i) => `<a id="${id}"></a>${i + 1}. ${note}\n`);
  const versions = MATRIX_CLIENTS.map((client) => {
    const names = versionsOf(client).map((version) => `\`${version}\``);
    return `- ${client.name}: ${names.length > 0 ? names.join(', ') : 'this package alone'}`;
  });
  const extras = MATRIX_CLIENTS.map((client) => `- ${client.name}: ${client.extras.join('; ')}`);
  return [
    line(header),
    line(header.map(() => '---')),
    ...rows.map(line),
    '',
    ...notes,
    '',
    'What each page (`packages/sabir/test/matrix/pages`) has beside the history, `resume: true` and `sendAutomaticallyWhen` of its client:',
    '',
    ...extras,
    '',
    'Versions:',
    '',
    ...versions,
  ].join('\n');
}
