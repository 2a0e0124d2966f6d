import { join } from 'node:path';
import { aliasesOf, buildPage } from '../build-page.ts';
import type { ClientName } from '../real-clients.ts';

const HERE = import.meta.dirname;

/** The script of a page with one release of the AI SDK, as text. */
export function buildStockPage(
  client: ClientName,
  { page = 'page.ts', transport = 'transport.ts' } = {},
): Promise<string> {
  const other = { find: './transport.ts', replacement: join(HERE, transport) };
  return buildPage(join(HERE, page), { alias: [...aliasesOf(client), other] });
}
