/**
 * What no server can make right: each entry has a case with the stock client alone, on a server with nothing of Sabir in it,
 * and `npm run matrix` runs it.
 */
import type { Browser, Page } from 'playwright-core';
import { FIRST_HALF, WHOLE } from './agent.ts';
import { buildMatrixPage, type MatrixClient, type MatrixClientName, queryOf } from './clients.ts';
import { startPlainServer } from './plain-server.ts';
import type { RowName } from './rows.ts';
import { readScreen, seesSoFar, send, setVisible } from './screen.ts';

type Alone = { page: Page; server: Awaited<ReturnType<typeof startPlainServer>> };

export type Limit = {
  id: string;
  /** The footnote. */
  note: string;
  cells: ReadonlyArray<readonly [row: RowName, clients: readonly MatrixClientName[]]>;
  /** Rejects if the client could have been right after all. */
  prove(row: RowName, alone: Alone): Promise<void>;
};

const HALF = ['user: slow', `assistant: ${FIRST_HALF}`];
const STOCK = [
  'useChat 5',
  'useChat 6.0.9',
  'useChat 6',
  'useChat 7',
  'AI Elements',
  'assistant-ui',
] as const;
/** Longer than any client waits before a first retry. */
const SILENCE_MS = 2_500;

async function begin({ page }: Alone): Promise<void> {
  await send(page, 'slow');
  await seesSoFar(page, HALF);
}

async function showsAlert(page: Page): Promise<void> {
  await page.getByRole('alert').waitFor({ timeout: 5_000 });
}

export const LIMITS: readonly Limit[] = [
  {
    id: 'no-retry',
    note:
      'The client sends no request after the connection broke, so that no server can send it the rest: the half that arrived stays ' +
      'on the screen with an error. A reload shows the whole answer.',
    cells: [
      ['drop', STOCK],
      ['offline then online', STOCK],
      ['visible again', ['useChat 6.0.9', 'assistant-ui']],
    ],
    async prove(row, alone) {
      const { page, server } = alone;
      await begin(alone);
      const before = server.requests.length;
      server.resumeWith('replay');
      if (row === 'offline then online') await page.context().setOffline(true);
      if (row === 'visible again') await setVisible(page, false);
      server.cut();
      await showsAlert(page);
      await page.context().setOffline(false);
      if (row === 'visible again') await setVisible(page, true);
      await page.waitForTimeout(SILENCE_MS);
      if (server.requests.length > before) throw new Error('The client sent a request.');
      await seesSoFar(page, HALF);
    },
  },
  {
    id: 'same-resume',
    note:
      'The client resumes into the message that it has, and does not say how much of it it has: its request is the same, header by ' +
      'header, as the one after a reload. A replay, which is right after a reload, doubles the text here; a tail, which would ' +
      'be right here, fails after a reload. A reload shows the answer once.',
    cells: [['visible again', ['useChat 5', 'useChat 6']]],
    async prove(_row, alone) {
      const { page, server } = alone;
      await begin(alone);
      server.resumeWith('replay');
      await setVisible(page, false);
      server.cut();
      await showsAlert(page);
      await setVisible(page, true);
      const twice = `assistant: ${FIRST_HALF}${FIRST_HALF}`;
      await seesSoFar(page, ['user: slow', twice]);
      const afterDrop = server.requests.at(-1);
      server.finish();

      server.forget();
      await page.reload();
      await page.waitForSelector('main');
      await begin(alone);
      server.resumeWith('tail');
      await page.reload();
      await showsAlert(page);
      const { lines } = await readScreen(page);
      if (lines.includes(`assistant: ${WHOLE}`.trim())) throw new Error('A tail was enough.');
      const afterReload = server.requests.at(-1);
      if (JSON.stringify(afterDrop) !== JSON.stringify(afterReload)) {
        throw new Error('The server could tell a drop from a reload.');
      }
    },
  },
  {
    id: 'no-prompt',
    note:
      'An idle client has no connection, and where a server holds its first resume open until a turn begins, the client shows the answer ' +
      'without the prompt: no chunk adds a message of a person. A reload shows both.',
    cells: [['idle tab', STOCK]],
    async prove(_row, { page, server }) {
      server.resumeWith('hold');
      await page.reload();
      await page.waitForSelector('main');
      await page.waitForTimeout(SILENCE_MS);
      const last = server.requests.at(-1);
      if (!last?.url.includes('/stream')) throw new Error(`It asked for ${last?.url} instead.`);
      server.answerHeld();
      await seesSoFar(page, [`assistant: ${WHOLE}`]);
    },
  },
  {
    id: 'resumed-last',
    note:
      'The client adds the answer that it resumes behind all messages, those that wait included: the answers are right, their order is right from ' +
      'the next load on. An empty answer in the history would keep the place in 5, late 6 and 7, and be shown twice by 6.0.9, which ' +
      'a server cannot tell from late 6. 6.0.9 shows the answers to those that waited only from the next load on.',
    cells: [
      [
        'reload while one waits',
        ['useChat 5', 'useChat 6.0.9', 'useChat 6', 'useChat 7', 'AI Elements'],
      ],
      ['two waiting', ['useChat 6.0.9']],
    ],
    async prove(_row, alone) {
      const { page, server } = alone;
      await begin(alone);
      await send(page, 'two');
      await seesSoFar(page, [...HALF, 'user: two']);
      server.resumeWith('replay');
      await page.reload();
      await seesSoFar(page, ['user: slow', 'user: two', `assistant: ${FIRST_HALF}`]);
    },
  },
  {
    id: 'last-only',
    note:
      'The client updates only the last message of its list. With a prompt behind it, the rest of an answer that is being written ' +
      'becomes a second message, whatever the server sends. A reload shows each answer once.',
    cells: [['two quick sends', ['useChat 6.0.9']]],
    async prove(_row, alone) {
      const { page, server } = alone;
      await begin(alone);
      await send(page, 'two');
      await seesSoFar(page, [...HALF, 'user: two']);
      server.finish();
      await seesSoFar(page, [...HALF, 'user: two', `assistant: ${WHOLE}`]);
    },
  },
];

export function limitOf(row: string, client: string): Limit | undefined {
  return LIMITS.find(({ cells }) =>
    cells.some(([name, clients]) => name === row && clients.some((known) => known === client)),
  );
}

/** Runs a case; gives what spoke against it. */
export async function proveLimit(
  browser: Browser,
  limit: Limit,
  row: RowName,
  client: MatrixClient,
): Promise<string | undefined> {
  const server = await startPlainServer(await buildMatrixPage(client));
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`${server.url}/?${queryOf(client, 's')}`);
    await page.waitForSelector('main');
    await limit.prove(row, { page, server });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await context.close();
    await server.close();
  }
}
