import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { audit, loadAxe } from './axe.ts';
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
} from './demo-harness.ts';
import { overflow } from './layout.ts';

const ON = { ENABLE_AI_SDK_ADAPTER: 'true', SABIR_DEMO_SPEED: '12' };
const CANCEL = 'Cancel my berth in Marseille and refund it';

describe.skipIf(!hasChromium)(`the agents of the desk${inBrowser}`, () => {
  let server: DemoServer;
  /** Nobody may think for long here. */
  let hasty: DemoServer;
  let browser: Browser;
  let guest: Visit;
  let page: Page;
  beforeAll(async () => {
    server = await startServer(ON);
    hasty = await startServer({ ...ON, SABIR_DEMO_ANSWER_MS: '4000' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await hasty?.stop();
  });
  afterEach(() => guest?.close());

  const open = async ({ url }: DemoServer, options?: Parameters<typeof visit>[2]) => {
    guest = await visit(browser, url, options);
    page = guest.page;
    await openTab(page, 'useChatStream');
  };
  const approve = (of = page) => of.getByRole('button', { name: 'Approve cancel_booking' });
  const deny = (of = page) => of.getByRole('button', { name: 'Deny cancel_booking' });
  const card = (of = page) => lastAnswer(of).locator('[data-part=tool]').last();
  const waitForEnd = (of = page) => of.getByRole('button', { name: 'Send' }).waitFor();
  const headings = () => lastAnswer(page).locator('[data-agent] > h3').allInnerTexts();
  const lastWords = (of = page) => lastAnswer(of).locator('[data-part=text]').last().textContent();
  const ask = async () => {
    await send(page, CANCEL);
    await approve().waitFor();
  };
  const openSecondWindow = async () => {
    const second = await page.context().newPage();
    await second.goto(page.url());
    await approve(second).waitFor();
    return second;
  };
  /** The answer of this window is under way until somebody lets it arrive. */
  const holdAnswers = async (of: Page) => {
    const held = Promise.withResolvers<void>();
    await of.route('**/api/chat/*/answer', async (route) => {
      await held.promise;
      await route.continue();
    });
    return held.resolve;
  };

  describe('handing over, and naming sources', () => {
    test('a question goes to Research, whose tools are cards; the handoff is a heading', async () => {
      await open(server);
      await page.getByRole('button', { name: /Look something up/ }).click();
      await waitForEnd();
      expect((await headings()).map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
        'Triage handed over',
        expect.stringMatching(/^Triage → .*Research done$/),
      ]);
      const tools = lastAnswer(page).locator('[data-part=tool] button .font-mono');
      expect(await tools.allTextContents()).toEqual(['search_guide', 'open_archive']);
      expect(await lastAnswer(page).textContent()).not.toContain('transfer_to_');
      await expectDeskAnswer(page);
      expect(guest.complaints).toEqual([]);
    });

    test('its sources are a numbered list, each once, with links that say where they lead', async () => {
      await open(server);
      await send(page, HARBOUR);
      await waitForEnd();
      const list = page.getByRole('region', { name: 'Sources' }).getByRole('list');
      expect(await list.evaluate(({ tagName }) => tagName)).toBe('OL');
      expect(await list.getByRole('listitem').allTextContents()).toEqual([
        'Mediterranean Lingua Franca en.wikipedia.org',
        'word-list.pdf Document',
        'Lingua franca, what the word means britannica.com',
      ]);
      const links = await list
        .getByRole('link')
        .evaluateAll((all) =>
          all.map((link) => [link.getAttribute('href'), link.getAttribute('rel')]),
        );
      expect(links).toEqual([
        ['https://en.wikipedia.org/wiki/Mediterranean_Lingua_Franca', 'noopener noreferrer'],
        ['https://www.britannica.com/topic/lingua-franca', 'noopener noreferrer'],
      ]);
      // Nothing of them is loaded before somebody follows one.
      expect(guest.complaints).toEqual([]);
    });

    test('an answer without sources has no list of them', async () => {
      await open(server);
      await page.getByRole('button', { name: /Be handed over/ }).click();
      await waitForEnd();
      expect(await headings()).toHaveLength(2);
      expect(await lastAnswer(page).locator('[data-agent=Bookings] td').count()).toBe(15);
      expect(await page.getByRole('region', { name: 'Sources' }).count()).toBe(0);
    });
  });

  describe('an approval', () => {
    test('shows what is to be done, and the page says that it waits', async () => {
      await open(server);
      await page.getByRole('button', { name: /Ask before it acts/ }).click();
      await approve().waitFor();
      expect(await card().getAttribute('data-state')).toBe('waiting');
      expect(await card().getByRole('group', { name: 'Input' }).textContent()).toContain('H-204');
      const question = card().getByRole('group', { name: /^Cancel H-204, Guest berth 12/ });
      expect(await question.getByRole('button').allTextContents()).toEqual(['Approve', 'Deny']);
      const status = page.getByRole('status').filter({ hasText: 'Waiting for you: Cancel H-204' });
      await status.waitFor();
      const bookings = lastAnswer(page).locator('[data-agent=Bookings]');
      expect(await bookings.getAttribute('data-status')).toBe('waiting');
      // Whoever would rather not decide can stop.
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByText('You stopped this answer', { exact: true }).waitFor();
      expect(await card().getAttribute('data-state')).toBe('withdrawn');
      expect(await approve().count()).toBe(0);
      expect(guest.complaints).toEqual([]);
    });

    test('Approve: the tool runs, and the answer says what it did', async () => {
      await open(server);
      await ask();
      await approve().focus();
      await page.keyboard.press('Enter');
      await waitForEnd();
      expect(await card().getAttribute('data-state')).toBe('done');
      expect(await card().textContent()).toContain('Approved, done');
      expect(await lastWords()).toContain('Booking H-204 is cancelled, and €96');
      const line = card().getByRole('button').first();
      expect(await line.evaluate((element) => element === document.activeElement)).toBe(true);
      await line.click();
      expect(await card().getByRole('group', { name: 'Output' }).textContent()).toContain(
        '"status": "cancelled"',
      );
      expect(await approve().count()).toBe(0);
      // It really happened: whoever asks again is told so.
      await send(page, 'Which berths have I booked?');
      await waitForEnd();
      expect(await lastWords()).toMatch(/H-204.*cancelled.*H-311/);
      expect(guest.complaints).toEqual([]);
    });

    test('Deny: nothing happens, and the answer knows why', async () => {
      await open(server);
      await ask();
      await page.getByRole('textbox', { name: 'Why not' }).fill('We still sail there.');
      await deny().click();
      await waitForEnd();
      expect(await card().getAttribute('data-state')).toBe('denied');
      expect(await card().textContent()).toContain('Denied because: We still sail there.');
      expect(await lastWords()).toContain('“We still sail there.”');
      await page.reload();
      await card().getByText('Denied because: We still sail there.').waitFor();
      expect(await card().getAttribute('data-state')).toBe('denied');
      expect(guest.complaints).toEqual([]);
    });

    test('Deny without a word is enough', async () => {
      await open(server);
      await ask();
      await deny().click();
      await waitForEnd();
      expect(await card().getAttribute('data-state')).toBe('denied');
      expect(await lastWords()).toBe(
        'All right, I left the booking as it is. Nothing was cancelled.',
      );
    });

    test('after a reload the buttons are back, and work', async () => {
      await open(server);
      await ask();
      await page.reload();
      // The page's own copy is there first, then what the server has.
      await page.getByRole('status').filter({ hasText: 'Waiting for you' }).waitFor();
      expect(await panel(page).locator('[data-notice]').count()).toBe(0);
      expect(await lastAnswer(page).locator('[data-part=tool]').count()).toBe(2);
      await approve().click();
      await waitForEnd();
      expect(await lastWords()).toContain('Booking H-204 is cancelled');
      expect(await panel(page).locator('[data-role=assistant]').count()).toBe(1);
      expect(guest.complaints).toEqual([]);
    });

    test('a second window may answer too, and both see what came of it', async () => {
      await open(server);
      await ask();
      const second = await openSecondWindow();
      await approve(second).click();
      await Promise.all([waitForEnd(page), waitForEnd(second)]);
      expect(await card(page).getAttribute('data-state')).toBe('done');
      expect(await lastWords(page)).toBe(await lastWords(second));
    });
  });

  describe('an answer that comes too late', () => {
    test('somebody was faster: the page says so, and what they said', async () => {
      await open(server);
      await ask();
      const second = await openSecondWindow();
      const letArrive = await holdAnswers(second);
      await approve(second).click();
      expect(await approve(second).isDisabled()).toBe(true);
      expect(await deny(second).isDisabled()).toBe(true);
      await deny(page).click();
      await waitForEnd(page);
      letArrive();
      await card(second).getByText('Somebody was faster, and denied it.').waitFor();
      expect(await card(second).getAttribute('data-state')).toBe('denied');
      expect(await lastWords(second)).toContain('Nothing was cancelled');
    });

    test('the time is over: nothing is done, and the page says so', async () => {
      await open(hasty);
      await ask();
      const letArrive = await holdAnswers(page);
      await approve().click();
      await waitForEnd();
      letArrive();
      await card().getByText('Too late: this question is no longer open.').waitFor();
      expect(await card().getAttribute('data-state')).toBe('expired');
      expect(await card().textContent()).toContain('Nobody answered in time.');
      expect(await lastWords()).toContain('I left the booking as it is');
    });

    test.each([
      [403, 'This question is for somebody else.'],
      [404, 'The desk no longer knows this question.'],
      [503, 'Your answer did not arrive. Try again in a moment.'],
    ])('a server that says %i is put into words, and may be asked again', async (status, text) => {
      await open(server);
      await ask();
      await page.route('**/api/chat/*/answer', (route) => route.fulfill({ status, json: {} }));
      await approve().click();
      await card().getByRole('alert').getByText(text).waitFor();
      await page.unroute('**/api/chat/*/answer');
      await approve().click();
      await waitForEnd();
      expect(await lastWords()).toContain('Booking H-204 is cancelled');
    });
  });

  describe('the page', () => {
    test.each(['light', 'dark'] as const)(
      'axe finds nothing serious in %s: waiting, sending, denied, with sources',
      async (colorScheme) => {
        await open(server, { colorScheme, bypassCSP: true, reducedMotion: 'reduce' });
        await loadAxe(page);
        await ask();
        expect(await audit(page)).toEqual([]);
        const letArrive = await holdAnswers(page);
        await deny().click();
        expect(await audit(page)).toEqual([]);
        letArrive();
        await waitForEnd();
        expect(await audit(page)).toEqual([]);
        await send(page, HARBOUR);
        await page.getByRole('region', { name: 'Sources' }).waitFor();
        expect(await audit(page)).toEqual([]);
      },
    );

    test('at 320 px nothing is wider than the screen', async () => {
      await open(server, { viewport: { width: 320, height: 700 } });
      await ask();
      expect(await overflow(page)).toBe(0);
      await approve().click();
      await waitForEnd();
      expect(await overflow(page)).toBe(0);
    });
  });
});
