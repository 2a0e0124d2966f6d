import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { audit, loadAxe } from './axe.ts';
import {
  type DemoServer,
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
  words,
} from './demo-harness.ts';
import { overflow } from './layout.ts';

const ON = { ENABLE_AI_SDK_ADAPTER: 'true', SABIR_DEMO_SPEED: '4' };
/** Takes a while. */
const LOGBOOK = 'Read me the logbook';
const LAST_DAY = 'more than most messages can say.';
const BERTHS = 'Which berths are free?';
const PATIENCE = { timeout: 20_000 };
const STOP = 'Stop for everybody';

describe.skipIf(!hasChromium)(`the session tab${inBrowser}`, () => {
  let server: DemoServer;
  let browser: Browser;
  let guest: Visit;
  /** Two windows of one browser, in the same session, which is new for every test. */
  let page: Page;
  let second: Page;
  beforeAll(async () => {
    server = await startServer(ON);
    browser = await launchBrowser();
    guest = await visit(browser, server.url, { bypassCSP: true, reducedMotion: 'reduce' });
    page = guest.page;
    second = await page.context().newPage();
    second.on('console', (message) => {
      if (message.type() === 'error') guest.complaints.push(message.text());
    });
    await openTab(page, 'Session');
    await second.goto(page.url());
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
  beforeEach(async () => {
    await page.getByRole('button', { name: 'New chat' }).click();
    const { hash } = new URL(page.url());
    await second.evaluate((address) => {
      location.hash = address;
    }, hash);
    await Promise.all([page, second].map((of) => of.getByText('2 windows').waitFor()));
    guest.complaints.length = 0;
  });

  const waitForText = (text: string, of = page) => lastAnswer(of).getByText(text).waitFor();
  const waitForEnd = async (of = page) => {
    await of.getByRole('button', { name: STOP }).waitFor({ state: 'detached' });
    await expect.poll(() => lastAnswer(of).getAttribute('aria-busy')).toBe('false');
  };
  const asked = (of = page) =>
    panel(of).locator('[data-role=user] [data-part=text]').allTextContents();
  const waiting = (of = page) => panel(of).locator('[data-queue] li').allTextContents();
  const notices = (of = page) => panel(of).locator('[data-notice]').count();
  /** All seven days, each once, in every window. */
  const expectLogbook = async (...windows: Page[]) => {
    for (const of of windows) {
      const said = await lastAnswer(of).locator('[data-part=text]').allTextContents();
      expect(said.join().match(/Day \d\./g)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `Day ${n}.`));
      expect(said.join().split(LAST_DAY)).toHaveLength(2);
    }
  };

  test('two windows: what one asks both follow, word by word, and either may ask [TAB-01]', async () => {
    await send(page, LOGBOOK);
    await waitForText('Day 2.', second);
    await second.getByRole('button', { name: STOP }).waitFor();
    await Promise.all([waitForEnd(), waitForEnd(second)]);
    await expectLogbook(page, second);
    await send(second, BERTHS);
    await waitForText('Let me ask');
    await Promise.all([waitForEnd(), waitForEnd(second)]);
    for (const of of [page, second]) {
      expect(await asked(of)).toEqual([LOGBOOK, BERTHS]);
      expect(await lastAnswer(of).locator('[data-part=tool][data-state=done]').count()).toBe(1);
      expect(await lastAnswer(of).locator('[data-part=reasoning]').count()).toBe(1);
      expect(await notices(of)).toBe(0);
    }
    expect(await words(second)).toBe(await words(page));
    await second.getByRole('button', { name: 'New chat' }).click();
    await page.getByText('1 window:').waitFor();
    expect(guest.complaints).toEqual([]);
  });

  test('two windows that ask at the same moment see the same, and nothing twice', async () => {
    await Promise.all([send(page, LOGBOOK), send(second, BERTHS)]);
    for (const of of [page, second]) {
      await expect.poll(() => asked(of), PATIENCE).toHaveLength(2);
      await waitForEnd(of);
    }
    expect(await words(second)).toBe(await words(page));
    expect((await asked()).toSorted()).toEqual([LOGBOOK, BERTHS].toSorted());
    expect(await panel(page).locator('[data-role=assistant]').count()).toBe(2);
    expect(guest.complaints).toEqual([]);
  });

  test('a reload in mid-answer: it goes on, and what was said is there [TAB-02]', async () => {
    await send(page, BERTHS);
    await waitForText('The second is quieter.');
    await waitForEnd();
    await send(page, LOGBOOK);
    await waitForText('Day 2.');
    await page.reload();
    await waitForText('Day 2.');
    await page.getByRole('button', { name: STOP }).waitFor();
    await waitForEnd();
    await expectLogbook(page);
    expect(await asked()).toEqual([BERTHS, LOGBOOK]);
    expect(await notices()).toBe(0);
    expect(guest.complaints).toEqual([]);
  });

  test('Stop is for everybody, from any window [TAB-03]', async () => {
    await send(page, LOGBOOK);
    await waitForText('Day 2.', second);
    await second.getByRole('button', { name: STOP }).click();
    for (const of of [page, second]) {
      await of.getByText('Stopped for everybody').first().waitFor();
      await waitForEnd(of);
    }
    expect(await words(second)).toBe(await words(page));
    expect(await lastAnswer(page).textContent()).not.toContain('Day 7.');
    expect(await second.getByRole('textbox').evaluate((e) => e === document.activeElement)).toBe(
      true,
    );
  });

  test('a question: a button for each option, one answer for all, by keyboard too [TAB-04]', async () => {
    await send(page, 'Cast off');
    const question = (of: Page) => lastAnswer(of).locator('[data-part=tool]');
    for (const of of [page, second]) {
      await question(of).getByText('Waiting for you').waitFor();
      const options = question(of).getByRole('group', { name: 'May I cast off now?' });
      expect(await options.getByRole('button').allTextContents()).toEqual(['Cast off', 'Not yet']);
    }
    await second.getByRole('button', { name: 'Not yet' }).focus();
    await second.keyboard.press('Enter');
    for (const of of [page, second]) {
      await question(of).getByText('Answered: Not yet').waitFor();
      await waitForText('Then we wait for the evening breeze.', of);
      expect(await question(of).getByRole('button', { name: 'Cast off' }).count()).toBe(0);
    }
    await page.reload();
    await question(page).getByText('Answered: Not yet').waitFor();
    expect(guest.complaints).toEqual([]);
  });

  test('what is asked meanwhile waits in line, for all to see, and can be taken back [TAB-05]', async () => {
    await send(page, LOGBOOK);
    await waitForText('Day 1.', second);
    await send(page, BERTHS);
    await send(second, 'Cast off');
    for (const of of [page, second]) {
      await expect
        .poll(() => waiting(of))
        .toEqual([`${BERTHS}NextTake back`, 'Cast off2nd in lineTake back']);
    }
    // By keyboard: it moves as long as the answer above it grows.
    await page.getByRole('button', { name: 'Take back: Cast off' }).press('Enter');
    for (const of of [page, second]) {
      await expect.poll(() => waiting(of)).toEqual([`${BERTHS}NextTake back`]);
    }
    for (const of of [page, second]) {
      await waitForText('The second is quieter.', of);
      await waitForEnd(of);
      expect(await waiting(of)).toEqual([]);
      expect(await asked(of)).toEqual([LOGBOOK, BERTHS]);
    }
    expect(await words(second)).toBe(await words(page));
    expect(await words(page)).toContain(LAST_DAY);
    expect(guest.complaints).toEqual([]);
  });

  test('a dropped connection in mid-answer heals: nothing lost, nothing twice [TAB-06]', async () => {
    await send(page, LOGBOOK);
    await waitForText('Day 2.');
    await page.getByRole('switch', { name: 'Drop my connection' }).focus();
    await page.keyboard.press('Space');
    await page.getByText('Connection dropped').waitFor();
    await second.getByText('1 window').waitFor();
    await waitForText('Day 4.', second);
    expect(await lastAnswer(page).textContent()).not.toContain('Day 4.');
    // It is not over: there is nothing to complain of.
    expect(await notices()).toBe(0);
    await page.getByRole('switch').click();
    await page.getByText('2 windows').waitFor();
    await waitForText(LAST_DAY);
    await Promise.all([waitForEnd(), waitForEnd(second)]);
    await expectLogbook(page, second);
    expect(await asked()).toEqual([LOGBOOK]);
    expect(await words(second)).toBe(await words(page));
  });

  test('what happened while the connection was gone is there when it comes back by itself', async () => {
    await send(page, LOGBOOK);
    await waitForText('Day 1.');
    await page.clock.install();
    await page.getByRole('switch').click();
    await send(second, BERTHS);
    await waitForText('The second is quieter.', second);
    await waitForEnd(second);
    expect(await asked()).toEqual([LOGBOOK]);
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    await page.clock.fastForward(10_000);
    await waitForText('The second is quieter.');
    await waitForEnd();
    expect(await words(page)).toBe(await words(second));
    expect(await notices()).toBe(0);
  });

  test('a failure is told in every window, also after a reload, and can be tried again', async () => {
    await send(page, 'Sail into a storm');
    for (const of of [page, second]) {
      await of.getByRole('alert').getByText('The ship ran aground.').waitFor();
    }
    await second.reload();
    await second.getByRole('alert').waitFor();
    const retried = second.waitForResponse((response) => response.request().method() === 'POST');
    await second.getByRole('button', { name: 'Retry' }).click();
    const response = await retried;
    expect(response.status()).toBe(200);
    expect(response.request().postDataJSON()).toMatchObject({ trigger: 'regenerate-message' });
    for (const of of [page, second]) {
      await of.getByRole('alert').waitFor();
      expect(await asked(of)).toEqual(['Sail into a storm']);
    }
  });

  test('a server that dies and comes back: nothing that was said or asked is lost', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sabir-demo-'));
    const env = { ...ON, SABIR_DATABASE: join(directory, 'sessions.db') };
    let mortal = await startServer(env);
    const { port } = new URL(mortal.url);
    const witness = await visit(browser, mortal.url);
    const { page: window } = witness;
    await openTab(window, 'Session');
    await send(window, LOGBOOK);
    await waitForText('Day 2.', window);
    await mortal.stop();
    await window.getByText('Connection lost').waitFor();
    expect(await notices(window)).toBe(0);
    mortal = await startServer({ ...env, PORT: port });
    // How it ended is known again, and what there was of it.
    await window.getByRole('alert').waitFor();
    expect(await lastAnswer(window).textContent()).toContain('Day 1.');

    await mortal.stop();
    await window.getByText('Connection lost').waitFor();
    await send(window, BERTHS);
    await window.getByText('The server cannot be reached', { exact: true }).waitFor();
    mortal = await startServer({ ...env, PORT: port });
    await window.getByText('Connected').waitFor();
    await window.getByRole('button', { name: 'Retry' }).click();
    await waitForText('The second is quieter.', window);
    expect(await asked(window)).toEqual([LOGBOOK, BERTHS]);
    await witness.close();
    await mortal.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('New chat is another session; Back returns to this one', async () => {
    await send(page, BERTHS);
    await waitForText('The second is quieter.');
    const address = page.url();
    await page.getByRole('button', { name: 'New chat' }).click();
    await panel(page).getByText('One session, many windows.').waitFor();
    expect(page.url()).toMatch(/#session_[\da-f]{32}$/);
    expect(page.url()).not.toBe(address);
    await page.goBack();
    await waitForText('The second is quieter.');
    expect(await asked()).toEqual([BERTHS]);
  });

  test('axe finds nothing serious: empty, writing with a queue, asking, cut off; all fits 360 px', async () => {
    const check = async () => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await audit(page)).toEqual([]);
      }
      expect(await overflow(page)).toBe(0);
    };
    await page.setViewportSize({ width: 360, height: 700 });
    await loadAxe(page);
    await check();
    await send(page, LOGBOOK);
    await waitForText('Day 1.');
    await send(page, `Cast off ${'x'.repeat(60)}`);
    await expect.poll(waiting).toHaveLength(1);
    await check();
    await page.getByRole('button', { name: 'Not yet' }).waitFor();
    await page.getByRole('switch').click();
    await page.getByText('Connection dropped').waitFor();
    await check();
  });
});
