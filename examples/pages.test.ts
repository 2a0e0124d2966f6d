import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../scripts/chromium.ts';
import { type ExampleServer, startServer } from './test/start-server.ts';

describe.skipIf(!findChromium())(
  `pages without a bundler${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let server: ExampleServer;
    let browser: Browser;
    beforeAll(async () => {
      [server, browser] = await Promise.all([startServer('pages/server.ts'), launchChromium()]);
    }, 60_000);
    afterAll(async () => {
      await browser?.close();
      await server?.stop();
    });

    it.each(['plain', 'vue'])('chat, and stop: %s', async (name) => {
      const page = await browser.newPage();
      const errors: string[] = [];
      page.on('pageerror', ({ message }) => errors.push(message));
      await page.goto(`${server.url}/${name}/`);
      await page.getByLabel('Message').fill('ahoy');
      await page.getByRole('button', { name: 'Send' }).click();
      const answer = page.locator('[data-role="assistant"]');
      await answer.getByText('You wrote “ahoy”.').waitFor();
      await page.getByLabel('Message').fill('a long story '.repeat(40));
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' });
      expect((await answer.last().textContent())?.length).toBeLessThan(400);
      expect(errors).toEqual([]);
      await page.close();
    });

    it('goes on after a reload in mid-answer: plain', async () => {
      const page = await browser.newPage();
      await page.goto(`${server.url}/plain/`);
      await page.getByLabel('Message').fill(`one two ${'more '.repeat(80)}end`);
      await page.getByRole('button', { name: 'Send' }).click();
      await page.locator('[data-role="assistant"]').getByText('two').waitFor();
      await page.reload();
      await page.locator('[data-role="assistant"]').getByText('more end”.').waitFor();
      await page.close();
    });
  },
);
