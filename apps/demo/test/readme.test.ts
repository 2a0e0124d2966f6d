import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { build, type PreviewServer, preview } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { namedBlocks } from '../../../scripts/named-blocks.ts';
import { hasChromium, inBrowser, launchBrowser } from './demo-harness.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Inside the workspace, so that the app finds the packages; outside what git sees. */
const APP = join(ROOT, 'apps/demo/node_modules/.readme-app');

const blocksOf = (page: string) => namedBlocks(readFileSync(join(ROOT, page), 'utf8'));

describe('the README', () => {
  it('puts useChat on a flow in under ten lines of code [SC-001]', () => {
    const [chat] = blocksOf('README.md');
    const lines = (chat?.code ?? '').split('\n').filter((line) => line.trim() !== '');
    expect(chat?.name).toBe('chat.tsx');
    expect(lines.length).toBeLessThan(10);
    expect(lines.join('\n')).toContain('useChat({ transport })');
  });
});

describe.skipIf(!hasChromium)(`the README and its guide, copied into a new app${inBrowser}`, () => {
  let browser: Browser;
  let server: PreviewServer;

  beforeAll(async () => {
    mkdirSync(APP, { recursive: true });
    for (const { name, code } of [
      ...blocksOf('README.md'),
      ...blocksOf('docs/GETTING-STARTED.md'),
    ]) {
      writeFileSync(join(APP, name), code);
    }
    writeFileSync(
      join(APP, 'index.html'),
      '<!doctype html><div id="root"></div><script type="module" src="/main.tsx"></script>',
    );
    writeFileSync(
      join(APP, 'main.tsx'),
      `import { createRoot } from 'react-dom/client';
       import { Chat } from './chat';
       createRoot(document.getElementById('root')!).render(<Chat />);`,
    );
    const config = { root: APP, configFile: false as const, logLevel: 'error' as const };
    await build({ ...config, build: { minify: false } });
    server = await preview({ ...config, preview: { port: 0, host: '127.0.0.1' } });
    browser = await launchBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(APP, { recursive: true, force: true });
  });

  it('is a working chat, as it stands there [SC-008]', async () => {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(server.resolvedUrls?.local[0] ?? server.resolvedUrls?.network[0] ?? '');
    for (const text of ['ahoy', 'and again']) {
      await page.getByRole('textbox').fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText(`You said: ${text}`).waitFor();
    }
    expect(await page.locator('article').count()).toBe(4);
    expect(await page.locator('blockquote').first().textContent()).toBe('They said "ahoy".');
    expect(await page.locator('hr').count()).toBe(4);
    expect(complaints).toEqual([]);
  });
});
