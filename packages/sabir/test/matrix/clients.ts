/** The clients of the matrix, and how each page is bundled. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { aliasesOf, buildPage } from '../build-page.ts';
import type { ClientName } from '../real-clients.ts';
import type { RowName } from './rows.ts';

export type MatrixClient = {
  name: string;
  /** The release of the AI SDK that the page is bundled with. */
  sdk: ClientName;
  page: string;
  /** More for the page's address. */
  query?: Record<string, string>;
  /** The packages whose versions the report names. */
  packages: readonly string[];
};

const stock = (name: string, sdk: ClientName, alias: string): MatrixClient => ({
  name,
  sdk,
  page: 'stock.tsx',
  packages: [`ai-${alias}`, `ai-sdk-react-${alias}`],
});
const V7 = ['ai-v7', 'ai-sdk-react-v7'];

export const MATRIX_CLIENTS = [
  stock('useChat 5', 'ai@5', 'v5'),
  stock('useChat 6.0.9', 'ai@6.0.9', 'v6-0-9'),
  stock('useChat 6', 'ai@6', 'v6'),
  stock('useChat 7', 'ai@7', 'v7'),
  { name: 'AI Elements', sdk: 'ai@7', page: 'ai-elements.tsx', packages: V7 },
  {
    name: 'assistant-ui',
    sdk: 'ai@7',
    page: 'assistant-ui.tsx',
    packages: ['@assistant-ui/react', '@assistant-ui/react-ai-sdk', ...V7],
  },
  { name: 'SabirChatTransport', sdk: 'ai@7', page: 'sabir-transport.tsx', packages: V7 },
  { name: 'useChatStream', sdk: 'ai@7', page: 'use-chat-stream.tsx', packages: [] },
] as const satisfies readonly MatrixClient[];

const sabirOn = (sdk: ClientName): MatrixClient => ({
  name: `SabirChatTransport on ${sdk}`,
  sdk,
  page: 'sabir-transport.tsx',
  packages: [],
});

/** What docs/CLIENTS.md recommends beside the columns of its table, and the rows that it recommends it for. */
export const RECOMMENDED = [
  [
    { ...stock('useChat 6 with new Chat', 'ai@6', 'v6'), page: 'own-chat.tsx' },
    ['reload', 'visible again'],
  ],
  [
    {
      // As the guide of assistant-ui shows it: it resumes by the id of the last stream that the tab has seen.
      name: 'assistant-ui with createResumableSessionStorage',
      sdk: 'ai@7',
      page: 'assistant-ui.tsx',
      query: { storage: 'session' },
      packages: [],
    },
    ['reload'],
  ],
  [sabirOn('ai@5'), ['reload', 'drop', 'visible again']],
  [sabirOn('ai@6'), ['reload', 'drop', 'visible again']],
] as const satisfies ReadonlyArray<readonly [MatrixClient, readonly RowName[]]>;

export type MatrixClientName = (typeof MATRIX_CLIENTS)[number]['name'];

/** The query of a page's address. */
export function queryOf({ sdk, query }: MatrixClient, session: string): URLSearchParams {
  return new URLSearchParams({ session, sdk: sdk.slice('ai@'.length), ...query });
}

export function buildMatrixPage({ page, sdk }: MatrixClient): Promise<string> {
  return buildPage(join(import.meta.dirname, 'pages', page), { alias: aliasesOf(sdk) });
}

/** Every package that the matrix was run with, by its real name: `ai 5.0.277`. */
export function versionsOf({ packages }: MatrixClient): string[] {
  return packages.map((name) => {
    const found = (createRequire(import.meta.url).resolve.paths(name) ?? [])
      .map((folder) => readPackage(join(folder, name, 'package.json')))
      .find((read) => read !== undefined);
    if (!found) throw new Error(`${name} is not installed.`);
    return `${found.name} ${found.version}`;
  });
}

function readPackage(file: string): { name: string; version: string } | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
