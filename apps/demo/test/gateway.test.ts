import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { audit, loadAxe } from './axe.ts';
import {
  choosePlace,
  type DemoServer,
  expectWhole,
  HARBOUR,
  hasChromium,
  inBrowser,
  lastAnswer,
  launchBrowser,
  send,
  startServer,
  type Visit,
  visit,
  waitForAnswer,
  waitForTool,
  waitForWriter,
  words,
} from './demo-harness.ts';

const ON = { ENABLE_AI_SDK_ADAPTER: 'true' };

describe.skipIf(!hasChromium)(`the gateway${inBrowser}`, () => {
  let server: DemoServer;
  /** For answers that are only waited for. */
  let fast: DemoServer;
  let browser: Browser;
  let guest: Visit;
  let page: Page;
  beforeAll(async () => {
    server = await startServer({ ...ON, SABIR_DEMO_SPEED: '6' });
    fast = await startServer({ ...ON, SABIR_DEMO_SPEED: '30' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await fast?.stop();
  });
  afterEach(() => guest?.close());

  const open = async ({ url }: DemoServer, options?: Parameters<typeof visit>[2]) => {
    guest = await visit(browser, url, options);
    page = guest.page;
    await choosePlace(page, 'Gateway');
  };
  const waitForEnd = (of: Page) => of.getByRole('button', { name: 'Send' }).waitFor();
  const openSecondTab = async () => {
    const second = await page.context().newPage();
    await second.goto(page.url());
    return second;
  };

  test('chats, and the flow knows what was said before', async () => {
    await open(fast);
    await page.getByText('Survives a reload; open a second tab to watch').waitFor();
    const posts: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST') posts.push(new URL(request.url()).pathname);
    });
    await send(page, HARBOUR);
    await waitForAnswer(page);
    await expectWhole(page);
    await send(page, 'And about figs?');
    await waitForAnswer(page);
    const row = lastAnswer(page).locator('tr', { hasText: 'Messages before it' });
    expect(await row.locator('td').last().textContent()).toBe('1');
    expect(posts).toHaveLength(2);
    for (const post of posts) expect(post).toMatch(/^\/api\/sessions\/[\da-f]{32}-\w+\/chat$/);
    expect(guest.complaints).toEqual([]);
  });

  test('a reload in mid-answer: it goes on to the full answer, nothing twice, one run', async () => {
    await open(server);
    await send(page, 'clock');
    await waitForAnswer(page);
    const { finished } = (await server.health()).runs;
    await send(page, HARBOUR);
    await waitForWriter(page);
    await page.addInitScript(() => {
      const notices: string[] = [];
      Object.assign(window, { notices });
      new MutationObserver(() => {
        const notice = document.querySelector('[data-notice]')?.textContent;
        if (notice) notices.push(notice);
      }).observe(document, { subtree: true, childList: true });
    });
    await page.reload();
    await waitForWriter(page);
    // Still being written, and can be stopped.
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    expect(await lastAnswer(page).getAttribute('aria-busy')).toBe('true');
    await waitForEnd(page);
    await expectWhole(page, 2);
    expect(await page.evaluate(() => (window as unknown as { notices: string[] }).notices)).toEqual(
      [],
    );
    expect((await server.health()).runs).toMatchObject({ active: 0, finished: finished + 1 });
    const before = await words(page);
    await page.reload();
    await lastAnswer(page).locator('[data-usage]').waitFor();
    await expect.poll(() => words(page)).toBe(before);
    expect(guest.complaints).toEqual([]);
  });

  test('an answer that ended while nobody watched is there when somebody comes back', async () => {
    await open(fast);
    const { finished } = (await fast.health()).runs;
    const url = page.url();
    await send(page, HARBOUR);
    await waitForTool(page);
    await page.goto('about:blank');
    await vi.waitFor(
      async () => {
        expect((await fast.health()).runs).toMatchObject({ active: 0, finished: finished + 1 });
      },
      { timeout: 20_000 },
    );
    await page.goto(url);
    await lastAnswer(page).locator('[data-usage]').waitFor();
    await expectWhole(page);
  });

  test('a second tab watches the same answer live, and follows the next question', async () => {
    // On a busy machine a tab takes a while to come up.
    await open(server, { speed: 2 });
    await send(page, HARBOUR);
    await waitForTool(page);
    const second = await openSecondTab();
    await waitForTool(second);
    expect(await second.getByRole('button', { name: 'Stop' }).count()).toBe(1);
    await Promise.all([waitForEnd(page), waitForEnd(second)]);
    await expectWhole(second);
    expect(await words(second)).toBe(await words(page));

    await send(second, 'clock');
    await lastAnswer(page).locator('[data-node=writer]').waitFor();
    await Promise.all([waitForEnd(page), waitForEnd(second)]);
    expect(await page.locator('[data-role=user]').count()).toBe(2);
    expect(await page.locator('[data-role=assistant]').count()).toBe(2);
    expect(await words(page)).toBe(await words(second));
    expect(guest.complaints).toEqual([]);
  });

  test('Stop in one tab ends it for both, and both say so; so does starting over', async () => {
    await open(server);
    const { stopped } = (await server.health()).runs;
    await send(page, HARBOUR);
    await waitForTool(page);
    const second = await openSecondTab();
    await waitForTool(second);
    await second.getByRole('button', { name: 'Stop' }).click();
    for (const tab of [page, second]) {
      await tab.getByText('You stopped this answer', { exact: true }).waitFor();
      expect(await lastAnswer(tab).locator('[data-status=stopped]').count()).toBe(1);
      expect(await tab.locator('[data-state=streaming], [data-state=running]').count()).toBe(0);
    }
    expect(await words(page)).toBe(await words(second));
    expect((await server.health()).runs).toMatchObject({ active: 0, stopped: stopped + 1 });
    await page.reload();
    await page.getByText('You stopped this answer', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Start over' }).click();
    for (const tab of [page, second]) {
      await waitForTool(tab);
      await tab.getByRole('button', { name: 'Stop' }).waitFor();
      expect(await tab.locator('[data-role=user]').count()).toBe(1);
      expect(await tab.locator('[data-role=assistant]').count()).toBe(1);
    }
    expect((await server.health()).runs.active).toBe(1);
    await page.getByRole('button', { name: 'Stop' }).click();
    await second.getByText('You stopped this answer', { exact: true }).waitFor();
  });

  test('New chat in mid-answer leaves it running, and Back is in time to stop it', async () => {
    await open(server);
    await send(page, HARBOUR);
    await waitForTool(page);
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByText('Three agents, one conversation.').waitFor();
    await page.goBack();
    await waitForTool(page);
    expect((await server.health()).runs.active).toBe(1);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('You stopped this answer', { exact: true }).waitFor();
  });

  test('the place of the next question does not change who has the running answer', async () => {
    await open(server, { speed: 30 });
    await send(page, HARBOUR);
    await waitForTool(page);
    await choosePlace(page, 'This tab');
    await page.reload();
    await waitForTool(page);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('You stopped this answer', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Start over' }).click();
    await waitForAnswer(page);
    await expectWhole(page);
    await page.waitForTimeout(400);
    await choosePlace(page, 'Gateway');
    await page.reload();
    await lastAnswer(page).locator('[data-usage]').waitFor();
    await expectWhole(page);
  });

  test('a failure is explained, also after a reload, and Retry gets the answer', async () => {
    await open(fast);
    await page.getByRole('button', { name: /Show me a failure/ }).click();
    await page.getByRole('alert').getByText('The writer lost its connection').waitFor();
    await page.reload();
    await page.getByText('The writer lost its connection to the model.').first().waitFor();
    await page.getByRole('button', { name: 'Retry' }).click();
    await waitForAnswer(page);
    expect(await page.locator('[data-role=assistant]').count()).toBe(1);
    expect(await lastAnswer(page).textContent()).toContain('attempt number 2, and it worked');
  });

  test('a server that dies is waited for; Stop ends the waiting', async () => {
    const mortal = await startServer({ ...ON, SABIR_DEMO_SPEED: '6' });
    await open(mortal);
    await send(page, HARBOUR);
    await waitForTool(page);
    await mortal.stop();
    await page.getByText('Reconnecting…').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('You stopped this answer', { exact: true }).waitFor();
    expect(await page.getByText('Reconnecting…').count()).toBe(0);
    expect(await lastAnswer(page).locator('[data-state=done]').count()).toBeGreaterThan(0);
  });

  test('axe finds nothing serious after a reload in mid-answer, nor when it is stopped', async () => {
    await open(server, { bypassCSP: true, reducedMotion: 'reduce' });
    await send(page, HARBOUR);
    await waitForTool(page);
    await page.reload();
    await loadAxe(page);
    await waitForTool(page);
    expect(await audit(page)).toEqual([]);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('[data-notice]').waitFor();
    expect(await audit(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await audit(page)).toEqual([]);
  });

  test('where it is off, the page says so, and another place answers', async () => {
    const plain = await startServer({ SABIR_DEMO_SPEED: '30' });
    await open(plain);
    await page.getByText('The gateway is off on this server').waitFor();
    await send(page, HARBOUR);
    const alert = page.getByRole('alert');
    await alert.getByText('This server was started without it.').waitFor();
    await choosePlace(page, 'Server');
    await page.getByRole('button', { name: 'Retry' }).click();
    await waitForAnswer(page);
    await expectWhole(page);
    await plain.stop();
  });
});
