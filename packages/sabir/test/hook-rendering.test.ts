/** How often, when and how consistently a page with `useChatStream` renders. */
import type { Browser } from 'playwright-core';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import { event } from './contract-server.ts';
import { buildHookPage } from './hook-page/build.ts';
import {
  DONE,
  delta,
  END,
  hurryToForget,
  META,
  type OpenOptions,
  openPage,
  reader,
  START,
} from './hook-page/open-page.ts';
import { type Scene, Stage } from './hook-page/scene.tsx';

const C1 = { api: '/api/chat', id: 'c1' };
const STEP = event('step', { messageId: 'a1', state: 'start' });
const createHistory = (length: number) =>
  Array.from({ length }, (_, i) => ({
    id: `m${i}`,
    role: i % 2 ? ('assistant' as const) : ('user' as const),
    parts: [{ type: 'text' as const, text: `text ${i}` }],
  }));

/** Frames that come when the test says so. */
function holdFrames(): void {
  const waiting: FrameRequestCallback[] = [];
  Object.assign(window, {
    requestAnimationFrame: (run: FrameRequestCallback) => waiting.push(run),
    frame: () => {
      for (const run of waiting.splice(0)) run(performance.now());
    },
  });
}
declare const frame: () => void;

describe.skipIf(!findChromium())(
  `useChatStream as it renders${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    let script: string;

    beforeAll(async () => {
      [browser, script] = await Promise.all([launchChromium(), buildHookPage()]);
    }, 120_000);
    afterAll(() => browser?.close());

    const open = (options?: OpenOptions) => openPage(browser, script, options);
    const aMoment = (ms = 1) => new Promise((resolve) => setTimeout(resolve, ms));

    describe('while words come', () => {
      it('renders none of a thousand messages again but the last', async () => {
        const { show, chats, stream, shows, has, page } = await open();
        const initialMessages = createHistory(1_000);
        await show({ readers: [reader('a', { ...C1, initialMessages })] });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START);
        for (let i = 0; i < 200; i++) {
          send(delta('x'));
          await aMoment();
        }
        const before = initialMessages.map(({ parts }) => parts[0]?.text).join('|');
        await shows('a', `${before}|go|${'x'.repeat(200)}`);
        send(END, DONE);
        await has('a', 'ready');
        const rows = await page.evaluate(() => globalThis.page.rows);
        const { a1 = 0, ...others } = rows;
        expect(Object.keys(others)).toHaveLength(1_001);
        expect(new Set(Object.values(others))).toEqual(new Set([1]));
        // A busy machine has few frames to give.
        expect(a1).toBeGreaterThan(1);
      });

      it('renders at most once a frame', async () => {
        const { show, chats, stream, shows, has, page } = await open({
          before: () => {
            const ticks = { count: 0 };
            const tick = () => {
              ticks.count++;
              requestAnimationFrame(tick);
            };
            requestAnimationFrame(tick);
            Object.assign(window, { ticks });
          },
        });
        await show({ readers: [reader('a', C1)] });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START, delta('x'));
        await shows('a', 'go|x');
        const count = () =>
          page.evaluate(() => {
            const { ticks } = window as unknown as { ticks: { count: number } };
            return { ticks: ticks.count, commits: globalThis.page.commits.a as number };
          });
        const before = await count();
        for (let i = 0; i < 2_000; i++) {
          send(delta('x'));
          if (i % 5 === 0) await aMoment();
        }
        await shows('a', `go|${'x'.repeat(2_001)}`);
        const after = await count();
        const commits = after.commits - before.commits;
        expect(commits).toBeGreaterThan(1);
        expect(commits).toBeLessThanOrEqual(after.ticks - before.ticks + 1);
        send(END, DONE);
        await has('a', 'ready');
      });

      it('shows the first words and whatever begins or ends without waiting for a frame', async () => {
        const { show, chats, stream, page } = await open({ before: holdFrames });
        const text = () => page.textContent('li[data-role=assistant]');
        await show({ readers: [reader('a', C1)] });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START);
        // Polled, because nothing else moves while frames are held.
        await vi.waitUntil(async () => (await page.$$('li')).length === 2);
        send(delta('One'));
        await vi.waitUntil(async () => (await text()) === 'One');
        send(delta(' two'));
        await aMoment(100);
        expect(await text()).toBe('One');
        await page.evaluate(() => frame());
        await vi.waitUntil(async () => (await text()) === 'One two');
        send(delta(' three'));
        await aMoment(50);
        send(STEP);
        await vi.waitUntil(async () => (await text()) === 'One two three|');
        const commits = await page.evaluate(() => globalThis.page.commits.a);
        await page.evaluate(() => frame());
        await aMoment(50);
        // Shown already.
        expect(await page.evaluate(() => globalThis.page.commits.a)).toBe(commits);
        send(delta('Four'), DONE);
        await vi.waitUntil(async () => (await text()) === 'One two three||Four');
        expect((await chats.state('a')).status).toBe('ready');
      });

      it('goes on in a tab that nobody sees, which has no frames', async () => {
        const { show, chats, stream, page } = await open({ before: holdFrames });
        await show({ readers: [reader('a', C1)] });
        await page.evaluate(() => {
          Object.defineProperty(document, 'hidden', { get: () => true });
        });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START, delta('One'));
        for (const word of [' two', ' three']) {
          await aMoment();
          send(delta(word));
        }
        await vi.waitUntil(
          async () => (await page.textContent('li[data-role=assistant]')) === 'One two three',
        );
      });
    });

    describe('concurrently', () => {
      it('two readers show the same in every commit, whatever else React renders', async () => {
        const { page, show, showLater, chats, stream, shows } = await open();
        const scene = (slowMs: number): Scene => ({
          readers: [
            reader('a', C1, { isDeferred: true, slowMs }),
            reader('b', C1, { slowMs, label: `slow ${slowMs}` }),
          ],
        });
        await show(scene(0));
        await page.evaluate(() => {
          const commits: Array<{ a: string; b: string; deferred: string; label: string }> = [];
          const text = (selector: string) => document.querySelector(selector)?.textContent ?? '';
          new MutationObserver(() => {
            commits.push({
              a: text('[data-reader=a] ol'),
              b: text('[data-reader=b] ol'),
              deferred: text('[data-deferred]').replaceAll('|', ''),
              label: document.querySelector('[data-reader=b]')?.getAttribute('data-label') ?? '',
            });
          }).observe(document.body, {
            subtree: true,
            childList: true,
            characterData: true,
            attributes: true,
          });
          Object.assign(window, { seenCommits: commits });
        });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START);
        let slowMs = 0;
        for (let i = 0; i < 150; i++) {
          if (i % 50 === 25) {
            slowMs += 10;
            await showLater(scene(slowMs));
          }
          send(delta(`${i} `));
          await aMoment(5);
        }
        const all = Array.from({ length: 150 }, (_, i) => `${i} `).join('');
        await shows('a', `go|${all}`);
        await shows('b', `go|${all}`);
        await page.waitForSelector('[data-label="slow 30"]');
        await page.waitForFunction(
          (expected) => document.querySelector('[data-deferred]')?.textContent === expected,
          `go|${all}`,
        );
        const commits = await page.evaluate(
          () =>
            (
              window as unknown as {
                seenCommits: Record<'a' | 'b' | 'deferred' | 'label', string>[];
              }
            ).seenCommits,
        );
        expect(commits.length).toBeGreaterThan(20);
        expect(commits.filter(({ a, b }) => a !== b)).toEqual([]);
        expect(commits.filter(({ a, deferred }) => !a.startsWith(deferred))).toEqual([]);
      });

      it('a change of place that is given up changes nothing', async () => {
        const { page, show, showLater, chats, stream, shows } = await open();
        const here = { api: '/api/chat' };
        await show({ readers: [reader('a', here)] });
        await chats.send('a', 'go');
        const { send, seen } = await stream();
        send(META, START, delta('Hel'));
        await shows('a', 'go|Hel');
        const { id } = await chats.state('a');
        const away = reader('a', { api: '/api/other' }, { isSuspended: true });
        await showLater({ readers: [away] });
        await aMoment(50);
        await show({ readers: [reader('a', here, { label: 'still here' })] });
        await page.waitForSelector('[data-label="still here"]', { state: 'attached' });
        send(delta('lo'));
        await shows('a', 'go|Hello');
        expect(seen.isCancelled).toBe(false);
        expect((await chats.state('a')).id).toBe(id);
      });

      it('what never came to the screen is forgotten', async () => {
        const { page, show, shows } = await open({ before: hurryToForget });
        const [old, young] = createHistory(2);
        const options = { ...C1, initialMessages: old ? [old] : [] };
        await show({ readers: [reader('a', options, { isSuspended: true })] });
        const isForgotten = () => forgetting.asked > 0 && forgetting.asked === forgetting.done;
        await page.waitForFunction(isForgotten);
        // React may have begun it again meanwhile; once it is gone, it does not.
        await show({ readers: [] });
        await page.waitForFunction(isForgotten);
        await show({ readers: [reader('b', { ...C1, initialMessages: young ? [young] : [] })] });
        await shows('b', 'text 1');
      });
    });

    describe('on a server', () => {
      const [first, ...rest] = createHistory(3);
      const initialMessages = first ? [first, ...rest] : [];
      const render = (scene: Scene) => renderToString(createElement(Stage, scene));

      it('renders what is there, does nothing else, and shares nothing', () => {
        const fetch = vi.spyOn(globalThis, 'fetch');
        const timer = vi.spyOn(globalThis, 'setTimeout');
        const complain = vi.spyOn(console, 'error');
        onTestFinished(() => void vi.restoreAllMocks());
        const options = { ...C1, resume: true };
        const one = render({ readers: [reader('a', { ...options, initialMessages })] });
        expect(one).toContain('text 0');
        expect(one).toContain('data-status="ready"');
        const two = render({ readers: [reader('a', options), reader('b', options)] });
        expect(two).not.toContain('text 0');
        expect(fetch).not.toHaveBeenCalled();
        expect(timer).not.toHaveBeenCalled();
        expect(complain).not.toHaveBeenCalled();
      });

      it('is taken over by the page, where one may know more than the server gave the other', async () => {
        // The second has nothing of its own: a server shows it empty, the page does not.
        const scene: Scene = {
          isStrict: true,
          readers: [
            reader('a', { ...C1, initialMessages, resume: true }),
            reader('b', C1),
            reader('c', { api: '/api/chat', initialMessages }),
          ],
        };
        const { shows, stream, has, calls } = await open({
          rendered: { html: render(scene), scene },
        });
        await shows('b', 'text 0|text 1|text 2');
        const { send } = await stream();
        expect(calls()).toMatchObject([{ method: 'GET' }]);
        send(META, START, delta('Hello'), DONE);
        await shows('a', 'text 0|text 1|text 2|Hello');
        await shows('b', 'text 0|text 1|text 2|Hello');
        await shows('c', 'text 0|text 1|text 2');
        await has('a', 'ready');
      });
    });
  },
);
