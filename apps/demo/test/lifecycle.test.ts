import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
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
  type Visit,
  visit,
  waitForAnswer,
} from './demo-harness.ts';

describe.skipIf(!hasChromium)(`stopping, failing and coming back${inBrowser}`, () => {
  let server: DemoServer;
  let browser: Browser;
  let guest: Visit;
  let page: Page;
  beforeAll(async () => {
    server = await startServer({ SABIR_DEMO_SPEED: '6' });
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

  const writerText = () => lastAnswer(page).locator('[data-node=writer] [data-part=text]');
  const waitForWriter = async () => {
    await writerText().getByText('A language without a country').waitFor();
  };

  test('Stop ends the run on the server and keeps what was written', async () => {
    const { stopped } = (await server.health()).runs;
    await send(page, HARBOUR);
    await waitForWriter();
    await page.getByRole('button', { name: 'Stop' }).click();

    await page.getByText('You stopped this answer', { exact: true }).waitFor();
    await vi.waitFor(async () => {
      expect((await server.health()).runs).toMatchObject({ active: 0, stopped: stopped + 1 });
    });
    const text = await writerText().textContent();
    expect(text).toContain('A language without a country');
    await page.waitForTimeout(300);
    expect(await writerText().textContent()).toBe(text);
    expect(await lastAnswer(page).locator('[data-node=writer]').getAttribute('data-status')).toBe(
      'stopped',
    );
  });

  test('Stop works in this tab too, and the next message gets a fresh run', async () => {
    await choosePlace(page, 'This tab');
    await send(page, HARBOUR);
    await waitForWriter();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('You stopped this answer', { exact: true }).waitFor();
    await send(page, HARBOUR);
    await waitForAnswer(page);
    expect(await lastAnswer(page).locator('[data-status=complete]').count()).toBe(3);
    expect(await page.locator('[data-notice]').count()).toBe(0);
  });

  test('closing the page ends the run on the server', async () => {
    const { stopped } = (await server.health()).runs;
    await send(page, HARBOUR);
    await waitForWriter();
    await page.close();
    await vi.waitFor(async () => {
      expect((await server.health()).runs).toMatchObject({ active: 0, stopped: stopped + 1 });
    });
  });

  test.each(['Server', 'This tab'] as const)(
    '[SC-006] a failed flow says what happened in plain words, and Retry gets the answer (%s)',
    async (place) => {
      await choosePlace(page, place);
      await page.getByRole('button', { name: /Show me a failure/ }).click();
      const alert = page.getByRole('alert');
      await alert.waitFor();
      expect(await alert.textContent()).toContain('The writer lost its connection to the model.');
      expect(await alert.textContent()).not.toMatch(/Error:|\bat \w+ \(|https?:|\.ts\b/);
      const failed = lastAnswer(page).locator('[data-node=writer]');
      expect(await failed.getAttribute('data-status')).toBe('error');
      expect(await failed.textContent()).toContain('There are two kinds of failure');

      await page.getByRole('button', { name: 'Retry' }).click();
      await waitForAnswer(page);
      expect(await page.getByRole('alert').count()).toBe(0);
      expect(await page.locator('[data-role=user]').count()).toBe(1);
      expect(await page.locator('[data-role=assistant]').count()).toBe(1);
      expect(await lastAnswer(page).textContent()).toContain('attempt number 2, and it worked');
    },
  );

  test('[SC-006] a failure is still explained after a reload, and can be retried', async () => {
    await page.getByRole('button', { name: /Show me a failure/ }).click();
    await page.getByRole('alert').waitFor();
    await page.reload();
    await page.getByText('The writer lost its connection to the model.').waitFor();
    await page.getByRole('button', { name: 'Retry' }).click();
    await waitForAnswer(page);
    expect(await lastAnswer(page).textContent()).toContain('Verdict: recovered.');
  });

  test('[SC-006] a server that cannot be reached is said so, and the message is not lost', async () => {
    await page.route('**/api/flow', (route) => route.abort('connectionrefused'));
    await send(page, HARBOUR);
    await page.getByText('The server cannot be reached').waitFor();
    await page.unroute('**/api/flow');
    await page.getByRole('button', { name: 'Retry' }).click();
    await waitForAnswer(page);
    expect(await page.locator('[data-role=user]').count()).toBe(1);
    expect(await lastAnswer(page).locator('[data-status=complete]').count()).toBe(3);
  });

  test('[SC-006] a server that dies in mid-answer leaves the words, a reason and a Retry', async () => {
    const mortal = await startServer({ SABIR_DEMO_SPEED: '2' });
    const other = await visit(browser, mortal.url);
    await send(other.page, HARBOUR);
    await other.page.getByText('A language without a country').waitFor();
    await mortal.stop();
    await other.page.getByRole('button', { name: 'Retry' }).waitFor();
    expect(await other.page.locator('[data-notice]').textContent()).toMatch(
      /cannot be reached|Interrupted/,
    );
    expect(await lastAnswer(other.page).textContent()).toContain('A language without a country');
    expect(await other.page.locator('[data-status=running]').count()).toBe(0);
    await other.close();
  });

  test('a reload keeps the conversation, down to how long the thoughts took', async () => {
    await send(page, HARBOUR);
    await waitForAnswer(page);
    await page.waitForTimeout(400);
    const conversation = () => page.getByRole('group', { name: 'Conversation' }).textContent();
    const before = await conversation();
    expect(before).toMatch(/Thought for \d+ s/);
    await page.reload();
    await lastAnswer(page).waitFor();
    // The page shows plain text until it has loaded its Markdown.
    await expect.poll(conversation).toBe(before);
    expect(await page.locator('[data-notice]').count()).toBe(0);
  });

  test('a reload in mid-answer keeps the words, says Interrupted, and Retry answers anew', async () => {
    await send(page, HARBOUR);
    await writerText().getByText('could strike a bargain').waitFor();
    // Marks that were cut show, and line ends move, once nothing more is expected to come.
    const words = async () =>
      ((await writerText().textContent()) ?? '').replaceAll(/[*_`|\s]/g, '');
    const before = await words();
    await page.reload();
    await page.getByText('Interrupted', { exact: true }).waitFor();
    await expect.poll(async () => (await words()).slice(0, before.length)).toBe(before);
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);

    await page.getByRole('button', { name: 'Retry' }).click();
    await waitForAnswer(page);
    expect(await page.locator('[data-role=assistant]').count()).toBe(1);
    expect(await lastAnswer(page).locator('[data-status=complete]').count()).toBe(3);
    expect(await page.locator('[data-notice]').count()).toBe(0);
  });

  test('New chat starts afresh, and Back returns to the conversation before', async () => {
    await send(page, 'Remember the quinces');
    await waitForAnswer(page);
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByText('Three agents, one conversation.').waitFor();
    expect(await page.locator('[data-role]').count()).toBe(0);
    await page.goBack();
    await page.locator('[data-role=user]', { hasText: 'Remember the quinces' }).waitFor();
    expect(await lastAnswer(page).locator('[data-status=complete]').count()).toBe(3);
  });

  test('a second question continues the conversation, and the flow knows the first', async () => {
    await send(page, 'Tell me about quinces');
    await waitForAnswer(page);
    await send(page, 'And about figs?');
    await waitForAnswer(page);
    expect(await page.locator('[data-role=user]').count()).toBe(2);
    const row = lastAnswer(page).locator('tr', { hasText: 'Messages before it' });
    expect(await row.locator('td').last().textContent()).toBe('1');
  });

  test('what is stored stays bounded: twelve chats, and nothing of an empty one', async () => {
    await page.evaluate(() => {
      for (let n = 0; n < 20; n += 1) {
        const chat = { savedAt: n, messages: [], thoughts: {} };
        localStorage.setItem(`sabir-demo:chat:old-${n}`, JSON.stringify(chat));
      }
    });
    await send(page, 'clock');
    await waitForAnswer(page);
    await page.waitForTimeout(500);
    const chats = await page.evaluate(() =>
      Object.keys(localStorage).filter((key) => key.startsWith('sabir-demo:chat:')),
    );
    expect(chats).toHaveLength(12);
    expect(chats).toContain('sabir-demo:chat:old-19');
    expect(chats).not.toContain('sabir-demo:chat:old-0');
  });
});
