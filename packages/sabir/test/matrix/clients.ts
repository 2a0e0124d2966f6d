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
  /** What the page has beside the history, `resume` and `sendAutomaticallyWhen` of its client, for the report. */
  extras: readonly string[];
};

const version = (major: string) => `the header \`x-sabir-ai-sdk: ${major}\``;
const STOP = 'Stop also sends `POST …/stop`, except in the row "stop then regenerate"';
const RESUME =
  '`onFinish` calls `resumeStream()` once for each message that waited at the page load';
const FOLLOW = [
  '`useSession` and `useFollow`',
  'Stop is `stop` of `useSession`',
  'a prompt in mid-answer goes through `enqueue` of `useSession`, and the page shows its `queue`',
];

const stock = (name: string, sdk: ClientName, alias: string, ...more: string[]): MatrixClient => ({
  name,
  sdk,
  page: 'stock.tsx',
  packages: [`ai-${alias}`, `ai-sdk-react-${alias}`],
  extras: [version(sdk.charAt(3)), STOP, ...more],
});
const V7 = ['ai-v7', 'ai-sdk-react-v7'];

export const MATRIX_CLIENTS = [
  stock(
    'useChat 5',
    'ai@5',
    'v5',
    RESUME,
    'the buttons of an open `data-question` send `POST …/answer`',
  ),
  stock(
    'useChat 6.0.9',
    'ai@6.0.9',
    'v6-0-9',
    '`sendAutomaticallyWhen` is a function of the page: that of 6.0.9 overlooks tools that run on the server',
  ),
  stock('useChat 6', 'ai@6', 'v6', RESUME),
  stock('useChat 7', 'ai@7', 'v7', RESUME),
  {
    ...stock(
      'AI Elements',
      'ai@7',
      'v7',
      RESUME,
      'components of the page with the names, props and states of AI Elements, which has no package',
    ),
    page: 'ai-elements.tsx',
  },
  {
    name: 'assistant-ui',
    sdk: 'ai@7',
    page: 'assistant-ui.tsx',
    packages: ['@assistant-ui/react', '@assistant-ui/react-ai-sdk', ...V7],
    extras: [
      version('7'),
      STOP.replace('Stop', 'Cancel'),
      '`resumable` asks for the running turn of the chat at each page load, whichever tab began it',
      '`toCreateMessage` and `prepareSendMessagesRequest` name the message that an edit replaces, and send the last message alone',
      'it sends nothing in mid-answer: where a row has prompts that wait, the person sends each after the answer before it',
    ],
  },
  {
    name: 'SabirChatTransport',
    sdk: 'ai@7',
    page: 'sabir-transport.tsx',
    packages: V7,
    extras: ['`SabirChatTransport` with `aiSdk: 7`', ...FOLLOW],
  },
  {
    name: 'useChatStream',
    sdk: 'ai@7',
    page: 'use-chat-stream.tsx',
    packages: [],
    extras: FOLLOW,
  },
] as const satisfies readonly MatrixClient[];

const sabirOn = (sdk: ClientName): MatrixClient => ({
  name: `SabirChatTransport on ${sdk}`,
  sdk,
  page: 'sabir-transport.tsx',
  packages: [],
  extras: [],
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
      extras: [],
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
