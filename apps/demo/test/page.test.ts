import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { audit, loadAxe } from './axe.ts';
import {
  choosePlace,
  type DemoServer,
  HARBOUR,
  hasChromium,
  inBrowser,
  lastAnswer,
  launchBrowser,
  send,
  startServer,
  visit,
  waitForAnswer,
} from './demo-harness.ts';
import { overflow, seenLayout, watchLayout } from './layout.ts';

describe.skipIf(!hasChromium)(`the page${inBrowser}`, () => {
  let server: DemoServer;
  let browser: Browser;
  beforeAll(async () => {
    server = await startServer({ SABIR_DEMO_SPEED: '6' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  const conversation = (page: Page) => page.getByRole('group', { name: 'Conversation' });

  describe('colours', () => {
    const background = (page: Page) =>
      page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const LIGHT = 'rgb(251, 248, 242)';
    const DARK = 'rgb(11, 21, 32)';

    test('follow the system, also when it changes', async () => {
      const { page, close } = await visit(browser, server.url, { colorScheme: 'dark' });
      expect(await background(page)).toBe(DARK);
      await page.emulateMedia({ colorScheme: 'light' });
      expect(await background(page)).toBe(LIGHT);
      await close();
    });

    test('can be switched, and stay so after a reload', async () => {
      const { page, close } = await visit(browser, server.url, { colorScheme: 'light' });
      await page.getByRole('button', { name: 'Switch to dark colours' }).click();
      expect(await background(page)).toBe(DARK);
      await page.reload();
      expect(await background(page)).toBe(DARK);
      await page.getByRole('button', { name: 'Switch to light colours' }).click();
      expect(await background(page)).toBe(LIGHT);
      await close();
    });
  });

  test.each(['light', 'dark'] as const)(
    'axe finds nothing serious in %s: empty, streaming, finished with everything open, failed',
    async (colorScheme) => {
      const { page, close } = await visit(browser, server.url, {
        colorScheme,
        bypassCSP: true,
        // Half-way through a fade every colour is too pale.
        reducedMotion: 'reduce',
      });
      await loadAxe(page);
      expect(await audit(page)).toEqual([]);

      await send(page, 'How does Sabir connect an agent runtime to useChat?');
      await lastAnswer(page).locator('[data-node=writer][data-status=running]').waitFor();
      expect(await audit(page)).toEqual([]);

      await page.getByRole('button', { name: 'Send' }).waitFor();
      const folds = await lastAnswer(page).locator('button[aria-expanded=false]').all();
      // From the last: an opened fold leaves the list, and the others move up.
      for (const fold of folds.toReversed()) await fold.click();
      expect(await audit(page)).toEqual([]);

      await send(page, 'Show me a failure');
      await page.getByRole('alert').waitFor();
      expect(await audit(page)).toEqual([]);
      await close();
    },
  );

  test('who asked for less motion gets none', async () => {
    const { page, close } = await visit(browser, server.url, { reducedMotion: 'reduce' });
    await send(page, HARBOUR);
    await lastAnswer(page).locator('[data-status=running]').waitFor();
    const moving = await page.evaluate(() => document.getAnimations().length);
    expect(moving).toBe(0);
    await close();
  });

  test.each([375, 320])('at %i px nothing is wider than the screen', async (width) => {
    const { page, close } = await visit(browser, server.url, {
      viewport: { width, height: 700 },
      speed: 20,
    });
    expect(await overflow(page)).toBe(0);
    await choosePlace(page, 'This tab');
    for (const topic of ['How does Sabir work?', 'Compare SSE and WebSockets', 'x'.repeat(300)]) {
      await send(page, topic);
      await waitForAnswer(page);
      expect(await overflow(page)).toBe(0);
    }
    await close();
  });

  test.each(['Server', 'This tab'] as const)(
    'nothing jumps while an answer streams (%s)',
    async (place) => {
      const { page, close } = await visit(browser, server.url);
      await choosePlace(page, place);
      await watchLayout(page);
      await send(page, HARBOUR);
      await waitForAnswer(page);
      const seen = await seenLayout(page);
      console.log(`layout shift on ${place}: ${seen.shift.toFixed(4)}`);
      expect(seen.shift).toBeLessThan(0.1);
      expect(seen.composerTops).toHaveLength(1);
      await close();
    },
  );

  test('the view follows the answer, lets go when the reader scrolls up, and can jump back', async () => {
    const { page, close } = await visit(browser, server.url, {
      viewport: { width: 1280, height: 500 },
    });
    const below = () =>
      conversation(page).evaluate((box) => box.scrollHeight - box.clientHeight - box.scrollTop);
    await send(page, HARBOUR);
    await lastAnswer(page).getByText('could strike a bargain').waitFor();
    // Asked between a render and its frame, the answer may be a line ahead of the view.
    await expect.poll(below).toBeLessThan(2);

    await conversation(page).hover();
    await page.mouse.wheel(0, -200);
    await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
    const top = await conversation(page).evaluate((box) => box.scrollTop);
    await lastAnswer(page).locator('table').waitFor();
    expect(await conversation(page).evaluate((box) => box.scrollTop)).toBe(top);

    await page.getByRole('button', { name: 'Jump to latest' }).click();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await expect.poll(below).toBeLessThan(2);
    await close();
  });

  describe('the keyboard', () => {
    test('Shift + Enter starts a new line, the input grows with it, Enter sends', async () => {
      const { page, close } = await visit(browser, server.url);
      const input = page.getByRole('textbox');
      expect(await input.evaluate((element) => element === document.activeElement)).toBe(true);
      const height = async () => (await input.boundingBox())?.height ?? 0;
      const oneLine = await height();
      await page.keyboard.type('clock');
      await page.keyboard.press('Shift+Enter');
      await page.keyboard.type('and another line');
      expect(await height()).toBeGreaterThan(oneLine * 1.5);
      await page.keyboard.press('Enter');
      await page.locator('[data-role=user]').waitFor();
      expect(await page.locator('[data-role=user] [data-part=text]').textContent()).toBe(
        'clock\nand another line',
      );
      expect(await height()).toBe(oneLine);
      await close();
    });

    test('Enter while an input method is composing does not send', async () => {
      const { page, close } = await visit(browser, server.url);
      const cdp = await page.context().newCDPSession(page);
      await page.getByRole('textbox').focus();
      await cdp.send('Input.imeSetComposition', {
        text: 'にほん',
        selectionStart: 3,
        selectionEnd: 3,
      });
      await page
        .getByRole('textbox')
        .dispatchEvent('keydown', { key: 'Enter', keyCode: 229, isComposing: true });
      expect(await page.locator('[data-role=user]').count()).toBe(0);
      expect(await page.getByRole('textbox').inputValue()).toBe('にほん');
      await close();
    });

    test('reaches everything: suggestions, switch, send, stop and the folds', async () => {
      const { page, close } = await visit(browser, server.url);
      await page.getByRole('button', { name: /language of the ports/ }).focus();
      await page.keyboard.press('Enter');
      await lastAnswer(page).locator('[data-node=writer] [data-part=text]').waitFor();
      await page.getByRole('button', { name: 'Stop' }).focus();
      await page.keyboard.press('Space');
      await page.getByText('You stopped this answer', { exact: true }).waitFor();
      const card = lastAnswer(page).locator('[data-part=tool] button').first();
      await card.focus();
      await page.keyboard.press('Enter');
      expect(await card.getAttribute('aria-expanded')).toBe('true');
      await page.getByRole('radio', { name: 'Server' }).focus();
      await page.keyboard.press('ArrowRight');
      expect(await page.getByRole('radio', { name: 'This tab' }).isChecked()).toBe(true);
      await close();
    });
  });
});
