/** The page of `sabir serve` in a real browser, on a real server. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../../scripts/chromium.ts';
import { startServe } from '../../test/cli-process.ts';

describe.skipIf(!findChromium())(
  `the page of sabir serve${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launchChromium();
    }, 60_000);
    afterAll(() => browser?.close());

    /** Whatever warns or fails in it fails the test: what the policy forbids does, too. */
    async function openPage(address: string) {
      const context = await browser.newContext();
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('console', (line) => {
        if (['error', 'warning'].includes(line.type())) complaints.push(line.text());
      });
      onTestFinished(async () => {
        await context.close();
        expect(complaints).toEqual([]);
      });
      await page.goto(address);
      const ask = async (words: string) => {
        await page.getByLabel('Message').fill(words);
        await page.keyboard.press('Enter');
      };
      return { page, ask, log: page.getByRole('log') };
    }

    it('takes a token from the address, asks, and lets a second window follow and answer', async () => {
      const server = await startServe(['--database', ':memory:', '--token', 'olga=s3cret']);
      const first = await openPage(`${server.url}/#token=s3cret`);
      expect(first.page.url()).not.toContain('s3cret');
      await first.page.getByText('olga').waitFor();
      expect(await first.page.getByRole('alert').isVisible()).toBe(false);
      const second = await openPage(`${first.page.url()}#token=s3cret`);
      await second.page.getByText('olga').waitFor();

      await first.ask('Please cast off');
      const choice = { name: 'Cast off', exact: true };
      await first.page.getByRole('button', choice).waitFor();
      await second.log.getByText('Please cast off').waitFor();
      await second.page.getByRole('button', choice).click();
      for (const { log } of [first, second]) {
        await log.getByText('We are under way. Fair winds!').waitFor();
        await log.getByText('Answer: Cast off').waitFor();
        expect(await log.locator('article').count()).toBe(2);
      }

      await second.page.reload();
      await second.log.getByText('We are under way. Fair winds!').waitFor();
      expect(await second.log.locator('article').count()).toBe(2);

      await second.ask('a storm');
      for (const { log } of [first, second]) await log.getByText('(failed)').waitFor();
      expect(await second.page.getByRole('alert').textContent()).toContain('ran aground');
    });

    it('goes on with a running answer after a reload, and stops it in all windows', async () => {
      const server = await startServe(['--database', ':memory:']);
      const first = await openPage(`${server.url}/`);
      await first.ask('the long story');
      await first.log.getByText('Day 1.').waitFor();
      const second = await openPage(first.page.url());
      await second.log.getByText('Day 1.').waitFor();
      await first.page.reload();
      await first.log.getByText('Day 1.').waitFor();
      await first.page.getByRole('button', { name: 'Stop' }).click();
      for (const { log } of [first, second]) await log.getByText('(stopped)').waitFor();
    });

    it('lets a viewer only watch', async () => {
      const server = await startServe(['--viewer-token', 'vera=watching']);
      const { page } = await openPage(`${server.url}/?session=s#token=watching`);
      await page.getByText('vera · you may watch').waitFor();
      expect(await page.getByLabel('Message').isVisible()).toBe(false);
    });
  },
);
