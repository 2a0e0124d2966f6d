/** A part of the client matrix. All of it is `npm run matrix`. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import {
  MATRIX_CLIENTS,
  type MatrixClient,
  type MatrixClientName,
  RECOMMENDED,
} from './matrix/clients.ts';
import { limitOf, proveLimit } from './matrix/limits.ts';
import { ROWS, type RowName } from './matrix/rows.ts';
import { startMatrix } from './matrix/run.ts';

const CELLS: readonly (readonly [MatrixClientName, ...RowName[]])[] = [
  ['useChat 5', 'approve', 'stop then regenerate'],
  ['useChat 7', 'visible again', 'two waiting', 'approve after reload', 'edit then reload'],
  ['AI Elements', 'tool'],
  ['assistant-ui', 'tool', 'second tab', 'approve', 'edit then reload'],
  ['SabirChatTransport', 'idle tab', 'drop', 'offline then online', 'reload while one waits'],
  ['useChatStream', 'idle tab', 'drop', 'reload while one waits'],
];

const clientOf = (name: MatrixClientName) =>
  MATRIX_CLIENTS.find((client) => client.name === name) as MatrixClient;

const cells = [
  ...CELLS.flatMap(([name, ...rows]) => rows.map((row) => ({ client: clientOf(name), name, row }))),
  ...RECOMMENDED.map(([client, rows]) => ({ client, name: client.name, row: rows.at(-1) })),
];

describe.skipIf(!findChromium())(`clients in a browser${findChromium() ? '' : NO_CHROMIUM}`, () => {
  let browser: Browser;
  let matrix: Awaited<ReturnType<typeof startMatrix>>;

  beforeAll(async () => {
    browser = await launchChromium();
    matrix = await startMatrix(browser, [...new Set(cells.map(({ client }) => client))]);
  }, 120_000);
  afterAll(async () => {
    await matrix?.close();
    await browser?.close();
  });

  it.concurrent.each(cells)('$name shows what it should: $row', async ({ client, row }) => {
    const found = ROWS.find(({ name }) => name === row) as (typeof ROWS)[number];
    const { problem } = await matrix.runCell(client, found);
    expect(problem).toBeUndefined();
  });

  it.concurrent('useChat 6 doubles a text after a drop whatever the server, as docs/CLIENTS.md says', async () => {
    const limit = limitOf('visible again', 'useChat 6');
    if (!limit) throw new Error('There is no such note.');
    const objection = await proveLimit(browser, limit, 'visible again', clientOf('useChat 6'));
    expect(objection).toBeUndefined();
  });
});
