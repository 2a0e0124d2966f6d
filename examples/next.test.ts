import { createRequire } from 'node:module';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../scripts/chromium.ts';
import { describeChatServer, LONG, STOPPED } from './test/chat-server-suite.ts';
import { runToEnd, startServer } from './test/start-server.ts';

const NEXT = createRequire(import.meta.url).resolve('next/dist/bin/next');
const hasChromium = findChromium() !== undefined;
const inBrowser = `in a browser${hasChromium ? '' : NO_CHROMIUM}`;

async function start() {
  await runToEnd(NEXT, 'build', 'next');
  return startServer(NEXT, 'start', 'next');
}

describeChatServer('next', start, (server) => {
  describe.skipIf(!hasChromium)(inBrowser, () => {
    it('shows the answer on the page, and its stop button stops the run', async () => {
      const browser = await launchChromium();
      onTestFinished(() => browser.close());
      const page = await browser.newPage();
      const problems: string[] = [];
      page.on('pageerror', (error) => problems.push(error.message));
      await page.goto(server().url);
      const input = page.getByLabel('Message');
      const answer = page.getByRole('article', { name: 'assistant' });

      await input.fill('hello there');
      await input.press('Enter');
      await answer.getByText('countWords → {"count":2}').waitFor();
      await answer.getByText('You wrote “hello there”. Words counted: 2.').waitFor();
      expect(await input.inputValue()).toBe('');

      await input.fill(LONG);
      await input.press('Enter');
      await answer.nth(1).getByText('You wrote').waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await server().waitFor(STOPPED);
      await page.getByRole('button', { name: 'Send', disabled: false }).waitFor();
      expect(problems).toEqual([]);
    });
  });
});
