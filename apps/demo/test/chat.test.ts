import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
import { recordTurn, type TurnRecord } from './record-turn.ts';

describe.skipIf(!hasChromium)(`the chat${inBrowser}`, () => {
  let server: DemoServer;
  let browser: Browser;
  beforeAll(async () => {
    server = await startServer({ SABIR_DEMO_SPEED: '4' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  describe.each(['Server', 'This tab'] as const)('run on: %s', (place) => {
    let guest: Visit;
    let page: Page;
    let record: TurnRecord;

    beforeAll(async () => {
      guest = await visit(browser, server.url);
      page = guest.page;
      await choosePlace(page, place);
    });
    afterAll(() => guest?.close());

    test('[US1-AS1] the hook starts with an empty chat that is ready to be written in', async () => {
      expect(await page.locator('[data-role]').count()).toBe(0);
      await expect(page.getByRole('textbox').isEditable()).resolves.toBe(true);
      expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
      expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
    });

    test('[US1-AS2] the message appears at once, and the runtime receives it', async () => {
      await send(page, 'Tell me about quinces');
      await page.locator('[data-role=user]', { hasText: 'Tell me about quinces' }).waitFor();
      expect(await page.getByRole('textbox').inputValue()).toBe('');
      await waitForAnswer(page);
      const search = lastAnswer(page).locator('[data-part=tool]').first();
      expect(await search.textContent()).toContain('Tell me about quinces');
    });

    test('[US1-AS3] the answer grows word by word while it streams', async () => {
      const recording = recordTurn(page);
      await send(page, HARBOUR);
      record = await recording;
      const lengths = record.writerLengths;
      expect(lengths.length).toBeGreaterThan(20);
      expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
    });

    test('[US1-AS4] when the answer is complete nothing is loading any more', async () => {
      expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
      expect(await lastAnswer(page).getAttribute('aria-busy')).toBe('false');
      expect(await page.locator('[data-status=running], [data-state=running]').count()).toBe(0);
      await page.getByRole('status').filter({ hasText: 'The answer is complete.' }).waitFor();
      expect(await lastAnswer(page).locator('[data-usage]').textContent()).toMatch(
        /^[\d,]+ tokens read · [\d,]+ written · \$0$/,
      );
    });

    test('[US2-AS1] a tool call appears with its name and input while it runs', () => {
      expect(record.tools[0]).toMatchObject({
        name: 'search_notes',
        input: 'Mediterranean lingua franca ports',
      });
      expect(record.tools[0]?.states[0]).toBe('running');
    });

    test('[US2-AS2] [SC-003] a finished call shows its input and its output', async () => {
      expect(record.tools[0]?.states).toEqual(['running', 'done']);
      const card = lastAnswer(page).locator('[data-part=tool]').first();
      await card.getByRole('button').click();
      const input = await card.getByRole('group', { name: 'Input' }).textContent();
      expect(JSON.parse(input ?? '')).toEqual({ query: 'Mediterranean lingua franca ports' });
      const output = await card.getByRole('group', { name: 'Output' }).textContent();
      expect(JSON.parse(output ?? '').hits.map(({ id }: { id: string }) => id)).toContain(
        'lingua-franca',
      );
      await card.getByRole('button').click();
      await card.getByRole('group', { name: 'Input' }).waitFor({ state: 'hidden' });
    });

    test('[US2-AS3] several calls stand in the order in which they were made', () => {
      expect(record.tools.map(({ name }) => name)).toEqual([
        'search_notes',
        'search_notes',
        'open_source',
      ]);
    });

    test('[US2-AS4] a failed call is marked, says why, and the answer goes on', async () => {
      expect(record.tools[2]?.states).toEqual(['running', 'failed']);
      const card = lastAnswer(page).locator('[data-part=tool][data-state=failed]');
      expect(await card.textContent()).toContain('did not answer in time');
      expect(await lastAnswer(page).locator('[data-node=reviewer]').textContent()).toContain(
        'Verdict',
      );
    });

    test('[US3-AS1] [US3-AS3] every node is a step of its own, three in order', () => {
      expect(record.steps.map(({ node }) => node)).toEqual(['researcher', 'writer', 'reviewer']);
      for (const { states } of record.steps) expect(states).toEqual(['running', 'complete']);
    });

    test('[US3-AS2] [SC-004] steps are set apart, each under the name of its node', async () => {
      const steps = lastAnswer(page).locator('section[data-node]');
      expect(await steps.getByRole('heading', { level: 3 }).allTextContents()).toEqual(
        expect.arrayContaining(['Researcherdone', 'Writerdone', 'Reviewerdone']),
      );
      const boxes = await steps.evaluateAll((all) =>
        all.map((step) => step.getBoundingClientRect()),
      );
      for (const [index, box] of boxes.entries()) {
        const next = boxes[index + 1];
        if (next) expect(next.top).toBeGreaterThanOrEqual(box.bottom);
      }
    });

    test('[US4-AS1] [US4-AS3] thinking streams in the open, before the text it leads to', () => {
      const [thought] = record.thoughts;
      expect(thought?.openLengths.length).toBeGreaterThan(5);
      expect(thought?.openLengths).toEqual(thought?.openLengths.toSorted((a, b) => a - b));
      expect(thought?.followedBy).toBe('text');
    });

    test('[US4-AS2] a finished thought folds away and can be opened again', async () => {
      const thought = lastAnswer(page).locator('[data-part=reasoning]').first();
      const button = thought.getByRole('button', { name: /^Thought for \d+ s$/ });
      expect(await button.getAttribute('aria-expanded')).toBe('false');
      await thought.getByText('old lingua franca').waitFor({ state: 'hidden' });
      await button.click();
      await thought.getByText('old lingua franca').waitFor({ state: 'visible' });
    });

    test('the answer is Markdown: headings, a list, a table and a quotation', async () => {
      const writer = lastAnswer(page).locator('[data-node=writer]');
      expect(await writer.locator('h3').nth(1).textContent()).toBe('A language without a country');
      expect(await writer.locator('li').count()).toBe(3);
      expect(await writer.locator('tbody tr').count()).toBe(3);
      expect(await writer.locator('blockquote').textContent()).toContain('se non sabir, tazir');
    });

    test('the browser has nothing to complain about, and calls nobody else', () => {
      expect(guest.complaints).toEqual([]);
    });
  });

  test('HTML in an answer is shown as text, and a picture becomes a link', async () => {
    const guest = await visit(browser, server.url);
    const { page } = guest;
    await page.evaluate(() => {
      const text =
        'Before <img src=x onerror="document.title=1"> after\n\n<script>document.title=2</script>\n\n![pixel](https://example.com/p.png)';
      const messages = [
        { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Hello' }] },
        {
          id: 'a',
          role: 'assistant',
          metadata: { outcome: 'finished' },
          parts: [{ type: 'step-start' }, { type: 'text', text }],
        },
      ];
      localStorage.setItem('sabir-demo:chat:stored', JSON.stringify({ messages }));
      location.hash = 'stored';
    });
    await lastAnswer(page).getByText('onerror').waitFor();
    // The answer is plain text until the page has loaded its Markdown renderer.
    await lastAnswer(page).getByRole('link', { name: 'pixel' }).waitFor();
    expect(await lastAnswer(page).locator('img, script').count()).toBe(0);
    expect(await page.title()).toBe('Sabir');
    expect(guest.complaints).toEqual([]);
    await guest.close();
  });
});
