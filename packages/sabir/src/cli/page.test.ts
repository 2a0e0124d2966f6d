/** The page of `sabir serve` in a real browser, on a real server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { audit, loadAxe } from '../../../../apps/demo/test/axe.ts';
import { overflow } from '../../../../apps/demo/test/layout.ts';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../../scripts/chromium.ts';
import { ask, makeFolder, startServe } from '../../test/cli-process.ts';

const ECHO = `let answers = 0;
export default async function* echo({ text }) {
  yield { type: 'text-delta', delta: 'Answer ' + ++answers + ' to ' + text };
}`;

const PIXEL = 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7';

/** Presses the key until the focus is there. */
async function walkTo(page: Page, target: Locator, key: string): Promise<void> {
  for (let presses = 0; presses < 40; presses++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  throw new Error(`${key} never reached it.`);
}

/** With an agent that answers at once. */
async function startEcho() {
  const cwd = makeFolder();
  writeFileSync(join(cwd, 'echo.mjs'), ECHO);
  return startServe(['--database', ':memory:', '--agent', './echo.mjs'], { cwd });
}

describe.skipIf(!findChromium())(
  `the page of sabir serve${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launchChromium();
    }, 60_000);
    afterAll(() => browser?.close());

    /** A warning or an error in the page fails the test, such as one of the page's policy. */
    async function openPage(
      address: string,
      expected: RegExp[] = [],
      options: BrowserContextOptions = {},
    ) {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('pageerror', ({ message }) => complaints.push(message));
      page.on('console', (line) => {
        const isExpected = expected.some((words) => words.test(line.text()));
        if (['error', 'warning'].includes(line.type()) && !isExpected) complaints.push(line.text());
      });
      onTestFinished(async () => {
        await context.close();
        expect(complaints).toEqual([]);
      });
      await page.goto(address);
      const ask = async (words: string) => {
        await page.getByRole('textbox', { name: 'Message' }).fill(words);
        await page.keyboard.press('Enter');
      };
      return { page, ask, log: page.getByRole('group', { name: 'Conversation' }) };
    }
    const asked = (log: Locator) => log.locator('[data-role=user]').count();
    const answered = (log: Locator) => log.locator('[data-role=assistant]').count();

    it('takes a token from the address, asks, and lets a second window follow and answer', async () => {
      const server = await startServe(['--database', ':memory:', '--token', 'olga=s3cret']);
      const first = await openPage(`${server.url}/#token=s3cret`);
      await first.page.getByText('Connected · olga').waitFor();
      expect(first.page.url()).not.toContain('s3cret');
      expect(await first.page.getByRole('alert').count()).toBe(0);
      const second = await openPage(`${first.page.url()}#token=s3cret`);
      await second.page.getByText('Connected · olga').waitFor();

      await first.ask('Please cast off');
      const choice = { name: 'Cast off', exact: true };
      await first.page.getByRole('main').getByRole('button', choice).waitFor();
      await second.log.getByText('Please cast off').waitFor();
      await second.page.getByRole('main').getByRole('button', choice).click();
      for (const { log } of [first, second]) {
        await log.getByText('We are under way. Fair winds!').waitFor();
        await log.getByText('Answered: Cast off').waitFor();
        expect([await asked(log), await answered(log)]).toEqual([1, 1]);
      }

      await second.page.reload();
      await second.log.getByText('We are under way. Fair winds!').waitFor();
      expect([await asked(second.log), await answered(second.log)]).toEqual([1, 1]);

      await second.ask('a storm');
      for (const { page } of [first, second]) {
        await page.getByRole('alert').getByText('ran aground').waitFor();
      }
    });

    it('goes on with a running answer after a reload, and stops it in all windows', async () => {
      const server = await startServe(['--database', ':memory:']);
      const first = await openPage(`${server.url}/`);
      await first.page.getByRole('button', { name: 'Watch it from two windows' }).click();
      await first.log.getByText('Day 1.').waitFor();
      const second = await openPage(first.page.url());
      await second.log.getByText('Day 1.').waitFor();
      await first.page.reload();
      await first.log.getByText('Day 1.').waitFor();
      await first.page.getByRole('button', { name: 'Stop' }).click();
      for (const { page } of [first, second])
        await page.getByText('Stopped for everybody', { exact: true }).waitFor();
    });

    it('lists the chats of the browser by their first message, and opens them again', async () => {
      const server = await startEcho();
      const { page, ask, log } = await openPage(`${server.url}/`);
      const chats = page.getByRole('navigation', { name: 'Chats' });
      await ask('first');
      await log.getByText('Answer 1 to first').waitFor();
      await chats.getByRole('button', { name: 'New chat' }).click();
      await page.getByRole('heading', { name: 'What can I do for you?' }).waitFor();
      await ask('second');
      await log.getByText('Answer 2 to second').waitFor();
      const titles = chats.getByRole('listitem').getByRole('button', { name: /^(first|second)/ });
      expect(await titles.allTextContents()).toEqual(['second', 'first']);
      await titles.last().click();
      await log.getByText('Answer 1 to first').waitFor();
      await page.goBack();
      await log.getByText('Answer 2 to second').waitFor();
    });

    it('sends a picture with a message, shows it again after a reload, and refuses what is too large', async () => {
      const server = await startEcho();
      const { page, ask, log } = await openPage(`${server.url}/`);
      const picker = page.locator('input[type=file]');
      const pixel = Buffer.from(PIXEL, 'base64');
      await picker.setInputFiles({ name: 'pixel.gif', mimeType: 'image/gif', buffer: pixel });
      await page.getByRole('img', { name: 'pixel.gif' }).waitFor();
      await picker.setInputFiles({
        ...{ name: 'big.bin', mimeType: 'application/octet-stream' },
        buffer: Buffer.alloc(8_000_000),
      });
      await page.getByRole('alert').getByText('Too large: big.bin.').waitFor();
      await ask('what is this?');
      await log.getByText('Answer 1 to what is this?').waitFor();
      await page.reload();
      const picture = log.locator('[data-role=user]').getByRole('img', { name: 'pixel.gif' });
      await picture.waitFor();
      expect(await picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(1);
    });

    it('keeps an edited message and an answer that was asked for once more, in all windows and over a reload', async () => {
      const server = await startEcho();
      const first = await openPage(`${server.url}/`);
      await first.ask('one');
      await first.log.getByText('Answer 1 to one').waitFor();
      await first.ask('two');
      await first.log.getByText('Answer 2 to two').waitFor();
      const second = await openPage(first.page.url());
      await second.log.getByText('Answer 2 to two').waitFor();
      await second.page.getByRole('button', { name: 'Retry answer' }).click();
      for (const { log } of [first, second]) {
        await log.getByText('Answer 3 to two').waitFor();
        expect([await asked(log), await answered(log)]).toEqual([2, 2]);
      }
      const edit = first.page.getByRole('button', { name: 'Edit message' }).first();
      await edit.focus();
      await first.page.keyboard.press('Enter');
      await first.page.getByRole('textbox', { name: 'Your message' }).fill('uno');
      await first.page.getByRole('form', { name: 'Edit message' }).getByText('Send').click();
      await second.log.getByText('Answer 4 to uno').waitFor();
      await first.page.reload();
      for (const { log } of [first, second]) {
        await log.getByText('Answer 4 to uno').waitFor();
        expect([await asked(log), await answered(log)]).toEqual([1, 1]);
      }
    });

    it('says that it is reconnecting while the server is dead', async () => {
      const server = await startEcho();
      const { page, ask, log } = await openPage(`${server.url}/`, [
        /ERR_CONNECTION|Failed to load/,
      ]);
      await ask('still there?');
      await log.getByText('Answer 1 to still there?').waitFor();
      server.kill('SIGKILL');
      await page.getByText(/reconnecting…|trying again…/).waitFor();
    });

    it('can be used with the keyboard alone, from a wrong token on, and axe finds nothing serious', async () => {
      const server = await startServe(['--database', ':memory:', '--token', 'olga=s3cret']);
      const { page } = await openPage(`${server.url}/#token=wrong`, [/401/], {
        bypassCSP: true,
      });
      await page.getByRole('alert').getByText('does not know this token').waitFor();
      await loadAxe(page);
      expect(await audit(page)).toEqual([]);
      await page.keyboard.type('s3cret');
      await page.keyboard.press('Enter');
      await page.getByText('Connected · olga').waitFor();
      await page.keyboard.type('Cast off');
      await page.keyboard.press('Enter');
      const choice = page.getByRole('main').getByRole('button', { name: 'Cast off', exact: true });
      await choice.waitFor();
      for (const viewport of [
        { width: 1280, height: 800 },
        { width: 375, height: 740 },
      ]) {
        await page.setViewportSize(viewport);
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          expect(await audit(page)).toEqual([]);
        }
        expect(await overflow(page)).toBe(0);
      }
      // Back from the input: Send and Stop come behind it.
      await walkTo(page, choice, 'Shift+Tab');
      await page.keyboard.press('Enter');
      await page.getByText('We are under way. Fair winds!').waitFor();
      await walkTo(page, page.getByRole('button', { name: 'Chats' }), 'Shift+Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'Chats' }).waitFor();
      expect(await audit(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog', { name: 'Chats' }).waitFor({ state: 'hidden' });
    });

    it('gives a viewer no button that the server would refuse', async () => {
      const args = ['--token', 'olga=s3cret', '--viewer-token', 'vera=watching'];
      const server = await startServe([...args, '--database', ':memory:']);
      const { page, log } = await openPage(`${server.url}/?session=s#token=watching`);
      await page.getByText('vera · you may watch').waitFor();
      const buttons = () => page.getByRole('main').getByRole('button').allTextContents();
      expect(await page.getByRole('textbox').count()).toBe(0);
      expect(await buttons()).toEqual([]);
      const turn = await ask(server.url, { text: 'cast off', token: 's3cret' });
      onTestFinished(() => turn.body?.cancel());
      await log.getByText('May I cast off now?').waitFor();
      // The latter opens the tool's card.
      expect(await buttons()).toEqual(['Copy', expect.stringContaining('cast_off')]);
    });
  },
);
