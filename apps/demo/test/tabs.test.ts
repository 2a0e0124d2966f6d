import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type DemoServer,
  expectDeskAnswer,
  HARBOUR,
  hasChromium,
  inBrowser,
  lastAnswer,
  launchBrowser,
  openTab,
  panel,
  send,
  startServer,
  type Visit,
  visit,
  waitForAnswer,
  waitForTool,
} from './demo-harness.ts';

const SSE = 'Compare SSE and WebSockets for streaming tokens';

describe.skipIf(!hasChromium)(`the three tabs${inBrowser}`, () => {
  let server: DemoServer;
  let browser: Browser;
  let guest: Visit;
  let page: Page;
  beforeAll(async () => {
    server = await startServer({ ENABLE_AI_SDK_ADAPTER: 'true', SABIR_DEMO_SPEED: '6' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  beforeEach(async () => {
    guest = await visit(browser, server.url);
    page = guest.page;
  });
  afterEach(() => guest.close());

  const tab = (hook: string) => page.locator('[role=tab]', { hasText: new RegExp(`^${hook}\\b`) });
  const question = () =>
    panel(page).locator('[data-role=user] [data-part=text]').last().textContent();
  const selected = () => page.locator('[role=tab][aria-selected=true] .font-mono').textContent();
  const isFocused = (hook: string) =>
    tab(hook).evaluate((element) => element === document.activeElement);

  test('say what they are, and which panel is theirs', async () => {
    expect(await page.getByRole('tablist').getByRole('tab').allTextContents()).toEqual([
      'useChat AI SDK',
      'useChatStream contract',
      'Session useChat, many windows',
    ]);
    for (const hook of ['useChat', 'useChatStream', 'Session'] as const) {
      await openTab(page, hook);
      expect(await tab(hook).getAttribute('aria-controls')).toBe(
        await panel(page).getAttribute('id'),
      );
      expect(await panel(page).getAttribute('aria-labelledby')).toBe(
        await tab(hook).getAttribute('id'),
      );
    }
    expect(guest.complaints).toEqual([]);
  });

  test('each keeps its own conversation, and both go on at the same time', async () => {
    await send(page, SSE);
    await waitForTool(page);
    await openTab(page, 'useChatStream');
    expect(await panel(page).locator('[data-role]').count()).toBe(0);
    await send(page, HARBOUR);
    await expect.poll(async () => (await server.health()).runs.active).toBe(2);
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await expectDeskAnswer(page);

    await openTab(page, 'useChat');
    expect(await question()).toBe(SSE);
    await page.getByRole('button', { name: 'Send' }).waitFor();
    const unread = () =>
      page
        .getByRole('group', { name: 'Conversation' })
        .evaluate((box) => box.scrollHeight - box.clientHeight - box.scrollTop);
    await expect.poll(unread).toBeLessThan(2);
    expect(await lastAnswer(page).locator('[data-status=complete]').count()).toBe(3);
    expect(await panel(page).locator('[data-notice]').count()).toBe(0);
    await page.waitForTimeout(400);

    await page.reload();
    expect(await question()).toBe(SSE);
    await openTab(page, 'useChatStream');
    expect(await question()).toBe(HARBOUR);
    await expectDeskAnswer(page);
    expect(guest.complaints).toEqual([]);
  });

  test('New chat is about the tab in front; Back returns to the chat and its tab', async () => {
    await send(page, 'clock');
    await waitForAnswer(page);
    await openTab(page, 'useChatStream');
    await send(page, HARBOUR);
    await waitForTool(page);
    await page.getByRole('button', { name: 'New chat' }).click();
    await panel(page).getByText('A desk that asks first.').waitFor();
    await openTab(page, 'useChat');
    expect(await question()).toBe('clock');

    await page.goBack();
    await panel(page).getByText('A desk that asks first.').waitFor();
    expect(await selected()).toBe('useChatStream');
    await page.goBack();
    await page.getByRole('button', { name: 'Send' }).waitFor();
    await expectDeskAnswer(page);
    await page.goBack();
    await expect.poll(selected).toBe('useChat');
    expect(await question()).toBe('clock');
  });

  test('the keyboard: one stop for all, arrows, Home and End between them', async () => {
    expect(await page.getByRole('textbox').evaluate((e) => e === document.activeElement)).toBe(
      true,
    );
    await tab('useChat').focus();
    for (const [key, hook] of [
      ['ArrowRight', 'useChatStream'],
      ['ArrowRight', 'Session'],
      ['ArrowRight', 'useChat'],
      ['ArrowLeft', 'Session'],
      ['ArrowLeft', 'useChatStream'],
      ['Home', 'useChat'],
      ['End', 'Session'],
    ] as const) {
      await page.keyboard.press(key);
      await expect.poll(selected).toBe(hook);
      expect(await isFocused(hook)).toBe(true);
    }
    expect(await page.locator('[role=tab][tabindex="0"]').count()).toBe(1);
    await page.getByRole('textbox').waitFor();
    await page.keyboard.press('Tab');
    const isInside = () => panel(page).evaluate((e) => e.contains(document.activeElement));
    expect(await isInside()).toBe(true);
    await page.keyboard.press('Shift+Tab');
    expect(await isFocused('Session')).toBe(true);
  });

  test.each(['useChatStream', 'Session'] as const)(
    'New chat in %s is ready to be written in',
    async (hook) => {
      await openTab(page, hook);
      await page.getByRole('button', { name: 'New chat' }).click();
      await expect
        .poll(() => page.getByRole('textbox').evaluate((e) => e === document.activeElement))
        .toBe(true);
    },
  );
});
