import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { audit, loadAxe } from './axe.ts';
import {
  type DemoServer,
  expectDeskAnswer,
  expectWhole,
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
  waitForGuide,
  waitForTool,
  words,
} from './demo-harness.ts';
import { overflow, seenLayout, watchLayout } from './layout.ts';
import { recordTurn, type TurnRecord } from './record-turn.ts';

const ON = { ENABLE_AI_SDK_ADAPTER: 'true' };

describe.skipIf(!hasChromium)(`the tab on useChatStream${inBrowser}`, () => {
  let server: DemoServer;
  /** For answers that are only waited for. */
  let fast: DemoServer;
  /** For what has to happen while an answer is written: the desk's are short, and machines busy. */
  let slow: DemoServer;
  let browser: Browser;
  let guest: Visit;
  let page: Page;
  beforeAll(async () => {
    server = await startServer({ ...ON, SABIR_DEMO_SPEED: '6' });
    fast = await startServer({ ...ON, SABIR_DEMO_SPEED: '30' });
    slow = await startServer({ ...ON, SABIR_DEMO_SPEED: '2' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
    await fast?.stop();
    await slow?.stop();
  });

  const open = async ({ url }: DemoServer, options?: Parameters<typeof visit>[2]) => {
    guest = await visit(browser, url, options);
    page = guest.page;
    await openTab(page, 'useChatStream');
  };
  /** Busy from the moment of sending: the desk may be done before anybody sees Stop. */
  const waitForEnd = (of: Page) => of.getByRole('button', { name: 'Send' }).waitFor();
  const waitForStopped = (of: Page) =>
    of.getByText('You stopped this answer', { exact: true }).waitFor();
  const openSecondWindow = async () => {
    const second = await page.context().newPage();
    await second.goto(page.url());
    return second;
  };

  describe('one answer', () => {
    const posts: Request[] = [];
    let record: TurnRecord;
    beforeAll(async () => {
      await open(slow);
      page.on('request', (request) => {
        if (request.method() === 'POST') posts.push(request);
      });
    });
    afterAll(() => guest?.close());

    test('begins with an empty chat, and with nothing to choose', async () => {
      await page.getByText('OpenAI Agents SDK · Scripted model, no key needed').waitFor();
      await panel(page).getByText('A desk that asks first.').waitFor();
      expect(await panel(page).locator('[data-role]').count()).toBe(0);
      expect(await page.getByRole('textbox').isEditable()).toBe(true);
      expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
      expect(await page.getByRole('radio').count()).toBe(0);
    });

    test('the message appears at once, and goes to /api/chat, which speaks the contract', async () => {
      const recording = recordTurn(page);
      await send(page, HARBOUR);
      await panel(page).locator('[data-role=user]', { hasText: HARBOUR }).waitFor();
      expect(await page.getByRole('textbox').inputValue()).toBe('');
      record = await recording;
      const [post] = posts;
      expect(posts).toHaveLength(1);
      expect(new URL(post?.url() ?? '').pathname).toBe('/api/chat');
      const sessionId = post?.postDataJSON().sessionId;
      expect(sessionId).toMatch(/^chat_[0-9a-z]{32,64}$/);
      expect(new URL(page.url()).hash).toBe(`#${sessionId}`);
      const response = await post?.response();
      expect(response?.headers()['content-type']).toContain('text/event-stream');
      expect(response?.headers()['x-vercel-ai-ui-message-stream']).toBeUndefined();
    });

    test('grows word by word while it streams, and then nothing is loading any more', async () => {
      const lengths = record.writerLengths;
      expect(lengths.length).toBeGreaterThan(20);
      expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
      expect(await lastAnswer(page).getAttribute('aria-busy')).toBe('false');
      await page.getByRole('status').filter({ hasText: 'The answer is complete.' }).waitFor();
      expect(await lastAnswer(page).locator('[data-usage]').textContent()).toMatch(
        /^[\d,]+ tokens read · [\d,]+ written$/,
      );
    });

    test('shows each tool with its input while it runs, and then its output', async () => {
      expect(record.tools.map(({ name }) => name)).toEqual(['search_guide', 'open_archive']);
      expect(record.tools[0]).toMatchObject({
        input: 'mediterranean sailors understand',
        states: ['preparing', 'running', 'done'],
      });
      const card = lastAnswer(page).locator('[data-part=tool]').first();
      await card.getByRole('button').click();
      const output = await card.getByRole('group', { name: 'Output' }).textContent();
      expect(output).toContain('lingua-franca');
    });

    test('marks a failed tool, says why, and goes on', async () => {
      expect(record.tools[1]?.states).toEqual(['preparing', 'running', 'failed']);
      const card = lastAnswer(page).locator('[data-part=tool][data-state=failed]');
      expect(await card.textContent()).toContain('did not answer in time');
      expect(await lastAnswer(page).locator('[data-agent=Research]').textContent()).toContain(
        'in an archive that did not answer',
      );
    });

    test('goes from agent to agent, and thinks before the text it leads to', () => {
      expect(record.steps).toEqual(
        ['Triage', 'Research'].map((node) => ({ node, states: ['running', 'complete'] })),
      );
      const thought = record.thoughts[1];
      expect(thought?.openLengths.length).toBeGreaterThan(5);
      expect(thought?.followedBy).toBe('text');
    });

    test('is the same conversation after a reload, down to how long the thoughts took', async () => {
      await expectDeskAnswer(page);
      await page.waitForTimeout(400);
      const conversation = () =>
        panel(page).getByRole('group', { name: 'Conversation' }).textContent();
      const before = await conversation();
      expect(before).toMatch(/Thought for \d+ s/);
      await page.reload();
      await lastAnswer(page).locator('[data-usage]').waitFor();
      // An answer is plain text until the page has loaded its Markdown renderer.
      await expect.poll(conversation).toBe(before);
      expect(guest.complaints).toEqual([]);
    });
  });

  describe('stopping, failing and coming back', () => {
    afterEach(() => guest?.close());

    test('Stop ends the run on the server and keeps what was written; Start over answers', async () => {
      await open(slow);
      const { stopped } = (await slow.health()).runs;
      await send(page, HARBOUR);
      await waitForGuide(page);
      await page.getByRole('button', { name: 'Stop' }).click();
      await waitForStopped(page);
      await vi.waitFor(async () => {
        expect((await slow.health()).runs).toMatchObject({ active: 0, stopped: stopped + 1 });
      });
      const research = lastAnswer(page).locator('[data-agent=Research]');
      expect(await research.getAttribute('data-status')).toBe('stopped');
      expect(await research.textContent()).toContain('Sailors, merchants');
      await page.reload();
      await waitForStopped(page);
      await page.getByRole('button', { name: 'Start over' }).click();
      await waitForEnd(page);
      await expectDeskAnswer(page);
      expect(guest.complaints).toEqual([]);
    });

    test('a failure is explained in plain words, also after a reload, and Retry answers', async () => {
      await open(fast);
      await page.getByRole('button', { name: /Show me a failure/ }).click();
      const alert = page.getByRole('alert');
      await alert.getByText('The desk lost its connection to the model.').waitFor();
      expect(await alert.textContent()).not.toMatch(/Error:|\bat \w+ \(|https?:|\.ts\b/);
      const failed = lastAnswer(page).locator('[data-agent=Research]');
      expect(await failed.getAttribute('data-status')).toBe('error');
      await page.reload();
      await page.getByText('The desk lost its connection to the model.').first().waitFor();
      await page.getByRole('button', { name: 'Retry' }).click();
      await waitForEnd(page);
      expect(await page.getByRole('alert').count()).toBe(0);
      expect(await panel(page).locator('[data-role]').count()).toBe(2);
      expect(await lastAnswer(page).textContent()).toContain('attempt number 2, and it worked');
    });

    test('a server that cannot be reached is said so, and no message is lost', async () => {
      await open(fast);
      await send(page, 'clock');
      await waitForEnd(page);
      await page.route('**/api/chat**', (route) => route.abort('connectionrefused'));
      await send(page, HARBOUR);
      await page.getByText('The server cannot be reached').waitFor();
      expect(await page.getByRole('alert').textContent()).not.toContain('this tab');
      await page.unroute('**/api/chat**');
      await page.getByRole('button', { name: 'Retry' }).click();
      await waitForEnd(page);
      await expectDeskAnswer(page, 2);
    });

    test('a reload in mid-answer: it goes on to the full answer, nothing twice, one run', async () => {
      await open(slow);
      await send(page, 'clock');
      await waitForEnd(page);
      const { finished } = (await slow.health()).runs;
      await send(page, HARBOUR);
      await waitForGuide(page);
      await page.addInitScript(() => {
        const notices: string[] = [];
        Object.assign(window, { notices });
        new MutationObserver(() => {
          const notice = document.querySelector('[data-notice]')?.textContent;
          if (notice) notices.push(notice);
        }).observe(document, { subtree: true, childList: true });
      });
      await page.reload();
      await waitForGuide(page);
      // Still being written, and can be stopped.
      await page.getByRole('button', { name: 'Stop' }).waitFor();
      expect(await lastAnswer(page).getAttribute('aria-busy')).toBe('true');
      await waitForEnd(page);
      await expectDeskAnswer(page, 2);
      expect(
        await page.evaluate(() => (window as unknown as { notices: string[] }).notices),
      ).toEqual([]);
      expect((await slow.health()).runs).toMatchObject({ active: 0, finished: finished + 1 });
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
      await expectDeskAnswer(page);
    });

    test('a second window watches the same answer, and Stop there ends it for both', async () => {
      await open(server);
      const second = await openSecondWindow();
      await send(page, 'clock');
      await lastAnswer(second).locator('[data-agent=Triage]').waitFor();
      await Promise.all([waitForEnd(page), waitForEnd(second)]);
      expect(await words(second)).toBe(await words(page));
      await send(second, HARBOUR);
      await Promise.all([waitForTool(page), waitForTool(second)]);
      await second.getByRole('button', { name: 'Stop' }).click();
      await Promise.all([waitForStopped(page), waitForStopped(second)]);
      expect(await words(second)).toBe(await words(page));
      expect((await server.health()).runs.active).toBe(0);
      expect(guest.complaints).toEqual([]);
    });

    test('New chat in mid-answer leaves it running, and Back is in time to stop it', async () => {
      await open(server);
      await send(page, HARBOUR);
      await waitForTool(page);
      await page.getByRole('button', { name: 'New chat' }).click();
      await panel(page).getByText('A desk that asks first.').waitFor();
      expect(new URL(page.url()).hash).toMatch(/^#chat_[0-9a-z]{32,64}$/);
      await page.goBack();
      await waitForTool(page);
      expect((await server.health()).runs.active).toBe(1);
      await page.getByRole('button', { name: 'Stop' }).click();
      await waitForStopped(page);
    });

    test('a server that dies is waited for; Stop ends the waiting', async () => {
      const mortal = await startServer({ ...ON, SABIR_DEMO_SPEED: '6' });
      await open(mortal);
      await send(page, HARBOUR);
      await waitForTool(page);
      await mortal.stop();
      await page.getByText('Reconnecting…').waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await waitForStopped(page);
      expect(await page.getByText('Reconnecting…').count()).toBe(0);
      expect(await lastAnswer(page).locator('[data-state=done]').count()).toBeGreaterThan(0);
    });

    test('where the gateway is off, the page says so and where to go', async () => {
      const plain = await startServer({ SABIR_DEMO_SPEED: '30' });
      await open(plain);
      await page.getByText('The gateway is off on this server').waitFor();
      await send(page, HARBOUR);
      await page.getByRole('alert').getByText('This server was started without it.').waitFor();
      await openTab(page, 'useChat');
      await send(page, HARBOUR);
      await waitForAnswer(page);
      await expectWhole(page);
      await plain.stop();
    });
  });

  describe('the page', () => {
    afterEach(() => guest?.close());

    test.each(['light', 'dark'] as const)(
      'axe finds nothing serious in %s: empty, streaming, finished with everything open, failed',
      async (colorScheme) => {
        // Half-way through a fade every colour is too pale.
        await open(server, { colorScheme, bypassCSP: true, reducedMotion: 'reduce' });
        await loadAxe(page);
        expect(await audit(page)).toEqual([]);
        await send(page, HARBOUR);
        await lastAnswer(page).locator('[data-agent=Research][data-status=running]').waitFor();
        expect(await audit(page)).toEqual([]);
        await waitForEnd(page);
        const folds = await lastAnswer(page).locator('button[aria-expanded=false]').all();
        // From the last: an opened fold leaves the list, and the others move up.
        for (const fold of folds.toReversed()) await fold.click();
        expect(await audit(page)).toEqual([]);
        await send(page, 'Show me a failure');
        await page.getByRole('alert').waitFor();
        expect(await audit(page)).toEqual([]);
      },
    );

    test('nothing jumps while an answer streams', async () => {
      await open(server);
      await watchLayout(page);
      await send(page, HARBOUR);
      await waitForEnd(page);
      const { shift, composerTops } = await seenLayout(page);
      console.log(`layout shift on the contract: ${shift.toFixed(4)}`);
      expect(shift).toBeLessThan(0.1);
      expect(composerTops).toHaveLength(1);
    });

    test.each([375, 320])('at %i px nothing is wider than the screen', async (width) => {
      await open(fast, { viewport: { width, height: 700 } });
      expect(await overflow(page)).toBe(0);
      for (const topic of [HARBOUR, 'Which berths have I booked?', 'x'.repeat(300)]) {
        await send(page, topic);
        await waitForEnd(page);
        expect(await overflow(page)).toBe(0);
      }
    });
  });
});
