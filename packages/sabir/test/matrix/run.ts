/** Runs cells of the matrix: one browser, one server, each cell in a session and a context of its own. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startSessionStack } from '../../src/platforms/node/sessions.ts';
import { memorySessionStore } from '../../src/sessions/index.ts';
import { startSocketProxy } from '../socket-proxy.ts';
import { createMatrixAgent } from './agent.ts';
import { buildMatrixPage, type MatrixClient, queryOf } from './clients.ts';
import { pageFile } from './page-file.ts';
import type { Row } from './rows.ts';
import { sees } from './screen.ts';

export type CellResult = {
  client: string;
  row: string;
  /** What was wrong; nothing where the cell is right. */
  problem?: string;
  /** A reload mends what is wrong. */
  isMendedByReload?: boolean;
  tookMs: number;
};

/** A real session server with its gateway, behind which the pages of all clients are. */
export async function startMatrix(browser: Browser, clients: readonly MatrixClient[]) {
  const scripts = new Map<string, string>();
  for (const client of clients) scripts.set(client.name, await buildMatrixPage(client));
  const { agent, release } = createMatrixAgent();
  const store = memorySessionStore();
  const stack = await startSessionStack({
    store,
    agent: () => agent,
    fetch: ({ url }) => {
      const { pathname } = new URL(url);
      const [, name, ...rest] = pathname.split('/');
      const script = scripts.get(decodeURIComponent(name ?? ''));
      return script === undefined ? undefined : pageFile(`/${rest.join('/')}`, script);
    },
    shutdownMs: 100,
  });
  let sessions = 0;

  async function openPage(context: BrowserContext, url: string, errors: string[]): Promise<Page> {
    const page = await context.newPage();
    page.on('pageerror', ({ message }) => errors.push(message));
    await page.goto(url);
    await page.waitForSelector('main');
    return page;
  }

  async function runCell(client: MatrixClient, row: Row): Promise<CellResult> {
    const startedAt = Date.now();
    const session = `s${++sessions}`;
    const proxy = await startSocketProxy(stack.port, () => undefined);
    const context = await browser.newContext();
    const errors: string[] = [];
    const url = `${proxy.url}/${encodeURIComponent(client.name)}/?${queryOf(client, session)}`;
    const about = { client: client.name, row: row.name };
    const pages: Page[] = [];
    const openTab = async () => {
      const page = await openPage(context, url, errors);
      pages.push(page);
      return page;
    };
    try {
      const page = await openTab();
      await row.run({
        page,
        openTab,
        release: () => release(session),
        cut: () => proxy.cutAll(),
        setOffline: (isOffline) => context.setOffline(isOffline),
        hasApprovals: client.sdk !== 'ai@5',
      });
      if (errors.length > 0) throw new Error(`The page threw: ${errors.join('; ')}`);
      return { ...about, tookMs: Date.now() - startedAt };
    } catch (error) {
      const { message: problem } = error as Error;
      release(session);
      const isMendedByReload = await isRightAfterReload(pages, row);
      return { ...about, problem, isMendedByReload, tookMs: Date.now() - startedAt };
    } finally {
      release(session);
      await context.close();
      await proxy.close();
    }
  }

  return {
    runCell,
    async close() {
      await stack.close();
      store.close();
    },
  };
}

async function isRightAfterReload(pages: Page[], { afterReload }: Row): Promise<boolean> {
  const page = pages.at(-1);
  if (!afterReload || !page) return false;
  try {
    // The answer is over by then: a page that is loaded before has to resume it first.
    await page.waitForTimeout(1_000);
    await page.reload();
    await sees(page, afterReload, 5_000);
    return true;
  } catch {
    return false;
  }
}

/** Runs jobs, so many at once. */
export async function runAll<T>(jobs: readonly (() => Promise<T>)[], atOnce: number): Promise<T[]> {
  const results: T[] = [];
  const queue = [...jobs.entries()];
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await next[1]();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}
