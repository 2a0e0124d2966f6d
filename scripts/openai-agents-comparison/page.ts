/** The comparison as a page. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../run-command.ts';
import { FEATURES } from './features.ts';
import { type Played, play } from './play.ts';
import type { Finding } from './probes.ts';

type Row = { what: string; sabir: Finding; official: Finding };

export type Comparison = {
  table: string;
  page: string;
  /** What Sabir does not keep. */
  lost: string[];
};

export async function compareWithOfficialHelper(): Promise<Comparison> {
  const rows: Row[] = [];
  for (const { run, features } of FEATURES) {
    const sabir: Played = await play(run, 'sabir');
    const official: Played = await play(run, 'official');
    for (const { what, probe } of features) {
      rows.push({ what, sabir: probe(sabir), official: probe(official) });
    }
  }
  const table = tableOf(rows);
  const lost = rows.filter(({ sabir }) => !sabir.keeps).map(({ what }) => what);
  return { table, page: pageOf(table), lost };
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ what, sabir, official }) => `| ${what} | ${cellOf(sabir)} | ${cellOf(official)} |`,
  );
  const official = `@openai/agents-extensions ${installedVersion('@openai/agents-extensions')}`;
  return [`| what a run says | Sabir | ${official} |`, '|---|---|---|', ...lines].join('\n');
}

function cellOf({ keeps, says }: Finding): string {
  return `${keeps ? 'yes' : 'no'}: ${says}`;
}

function pageOf(table: string): string {
  const [agents, client] = [installedVersion('@openai/agents'), installedVersion('ai-v7')];
  return `# OpenAI Agents SDK: what reaches the chat

Made by \`npm run docs\`; \`node scripts/compare-openai-agents.ts\` prints the table alone.

\`toChunks\` of \`sabir/openai-agents\`, with \`approvals: true\`, and \`createAiSdkUiMessageStream\` of the official
\`@openai/agents-extensions/ai-sdk-ui\` on the same runs: \`@openai/agents\` ${agents} with its own model for the
Responses API, whose answers come from \`scripts/openai-agents-comparison/scenarios.ts\` instead of the network. Each
stream goes over SSE into the chat of \`ai\` ${client}, unmodified. *yes*: the client has it, in the place that the AI SDK
has for it. *throws*: the stream breaks off there, and what a page shows is a lost connection.

${table}
`;
}

function installedVersion(packageName: string): string {
  const path = join(ROOT, 'node_modules', packageName, 'package.json');
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
