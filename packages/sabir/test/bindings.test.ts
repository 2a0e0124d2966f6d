/** The Vue, Svelte and Solid bindings in a real browser, each with its framework, on a real gateway. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import { asUpstream, createChatGateway } from '../src/gateway/index.ts';
import { type RunningServer, serve } from '../src/platforms/node/serve.ts';
import { buildBinding, FRAMEWORKS } from './bindings/build.ts';

describe.skipIf(!findChromium())(
  `the bindings in a browser${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    const scripts = new Map<string, string>();
    /** What the agent says next, by chat. */
    const says = new Map<string, (text: string | undefined) => void>();
    const stopped: string[] = [];
    const gateway = createChatGateway({
      upstream: asUpstream(async function* ({ chatId, signal }) {
        signal.addEventListener('abort', () => {
          if (signal.reason.name === 'AbortError') stopped.push(chatId);
        });
        for (;;) {
          const { promise, resolve } = Promise.withResolvers<string | undefined>();
          says.set(chatId, resolve);
          signal.addEventListener('abort', () => resolve(undefined));
          const delta = await promise;
          if (delta === undefined) return;
          yield { type: 'text-delta', delta };
        }
      }),
      authenticate: (request) => ({ id: new URL(request.url).host }),
      access: () => 'owner',
      timing: { disconnectGraceMs: 200 },
    });
    let server: RunningServer;
    let browser: Browser;

    beforeAll(async () => {
      server = await serve({
        fetch(request, info) {
          const { pathname } = new URL(request.url);
          if (pathname.startsWith('/api/')) return gateway.fetch(request, info);
          const script = scripts.get(pathname.slice(1).replace('.js', ''));
          if (!script) return new Response('Not found.', { status: 404 });
          const page = `<!doctype html><title>Chat</title><div id="root"></div><script type="module" src="${pathname}.js"></script>`;
          return pathname.endsWith('.js')
            ? new Response(script, { headers: { 'content-type': 'text/javascript' } })
            : new Response(page, { headers: { 'content-type': 'text/html' } });
        },
      });
      browser = await launchChromium();
      for (const name of FRAMEWORKS) scripts.set(name, await buildBinding(name));
    }, 120_000);
    afterAll(async () => {
      await browser?.close();
      await gateway.close();
      await server?.close();
    });

    const click = (page: Page, name: string) => page.getByRole('button', { name }).click();
    const shown = (page: Page) => page.locator('p').allTextContents();
    const status = (page: Page) => page.locator('output').textContent();
    async function say(chatId: string, text: string | undefined): Promise<void> {
      await expect.poll(() => says.has(chatId)).toBe(true);
      const resolve = says.get(chatId);
      says.delete(chatId);
      resolve?.(text);
    }

    it.each(FRAMEWORKS)(
      '%s: the page shows the answer as it comes, stops it, and opens another chat',
      async (name) => {
        const page = await browser.newPage();
        const errors: string[] = [];
        page.on('pageerror', ({ message }) => errors.push(message));
        const chat = `${name}-stopped`;
        await page.goto(`${server.url}/${name}?chat=${chat}`);
        await click(page, 'Send');
        await say(chat, 'Hel');
        await expect.poll(() => shown(page)).toEqual(['ahoy', 'Hel']);
        expect(await status(page)).toBe('streaming');
        await say(chat, 'lo');
        await expect.poll(() => shown(page)).toEqual(['ahoy', 'Hello']);
        await click(page, 'Stop');
        await expect.poll(() => status(page)).toBe('ready');
        expect(stopped).toContain(chat);

        await click(page, 'Other chat');
        await expect.poll(() => shown(page)).toEqual([]);
        await click(page, 'Send');
        await say(`${chat}-other`, 'Elsewhere');
        await expect.poll(() => shown(page)).toEqual(['ahoy', 'Elsewhere']);
        await say(`${chat}-other`, undefined);
        await expect.poll(() => status(page)).toBe('ready');
        expect(errors).toEqual([]);
        await page.close();
      },
    );

    it.each(FRAMEWORKS)(
      '%s: a component that leaves stops watching, and a reload resumes the answer',
      async (name) => {
        const page = await browser.newPage();
        const chat = `${name}-resumed`;
        await page.goto(`${server.url}/${name}?chat=${chat}`);
        await click(page, 'Send');
        await say(chat, 'Half');
        await expect.poll(() => shown(page)).toEqual(['ahoy', 'Half']);
        await click(page, 'Close');
        await page.getByText('closed').waitFor();
        await page.reload();
        await expect.poll(() => shown(page)).toEqual(['Half']);
        await say(chat, ' and whole');
        await say(chat, undefined);
        await expect.poll(() => shown(page)).toEqual(['Half and whole']);
        await expect.poll(() => status(page)).toBe('ready');
        expect(stopped).not.toContain(chat);
        await page.close();
      },
    );

    it.each(FRAMEWORKS)(
      '%s: a component that closes in mid-answer and opens again shows the whole answer',
      async (name) => {
        const page = await browser.newPage();
        const chat = `${name}-reopened`;
        const answer = () => page.locator('p').last().textContent();
        await page.goto(`${server.url}/${name}?chat=${chat}`);
        await click(page, 'Send');
        await say(chat, 'Half');
        await expect.poll(answer).toBe('Half');
        await click(page, 'Close');
        await page.getByText('closed').waitFor();
        await say(chat, ' and more');
        await click(page, 'Open');
        await expect.poll(answer).toBe('Half and more');
        // Without a pause: the request of the closed component has not ended when the next one begins.
        await page.evaluate(async () => {
          const [close, open] = ['Close', 'Open'].map((text) =>
            [...document.querySelectorAll('button')].find((one) => one.textContent === text),
          );
          close?.click();
          await Promise.resolve();
          open?.click();
        });
        await say(chat, ' and whole');
        await expect.poll(answer).toBe('Half and more and whole');
        await say(chat, undefined);
        await expect.poll(() => status(page)).toBe('ready');
        await page.close();
      },
    );

    it('svelte: a component that opens after the answer has ended shows the whole answer', async () => {
      const page = await browser.newPage();
      const chat = 'svelte-ended';
      await page.goto(`${server.url}/svelte?chat=${chat}`);
      await click(page, 'Send');
      await say(chat, 'Half');
      await expect.poll(() => shown(page)).toEqual(['ahoy', 'Half']);
      await click(page, 'Close');
      await page.getByText('closed').waitFor();
      await say(chat, ' and whole');
      await say(chat, undefined);
      const stream = `${server.url}/api/chat/${chat}/stream`;
      await expect.poll(async () => (await fetch(stream)).status).toBe(204);
      await click(page, 'Open');
      await expect.poll(() => shown(page)).toEqual(['ahoy', 'Half and whole']);
      await expect.poll(() => status(page)).toBe('ready');
      await page.close();
    });

    it('solid: messages from the store can be given to setMessages, sendMessage and initialMessages', async () => {
      const page = await browser.newPage();
      const errors: string[] = [];
      page.on('pageerror', ({ message }) => errors.push(message));
      const chat = 'solid-returned';
      await page.goto(`${server.url}/solid?chat=${chat}`);
      await click(page, 'Send');
      await say(chat, 'Hello');
      await say(chat, undefined);
      await expect.poll(() => status(page)).toBe('ready');
      await click(page, 'Reverse');
      await expect.poll(() => shown(page)).toEqual(['Hello', 'ahoy']);
      await click(page, 'Remove question');
      await expect.poll(() => shown(page)).toEqual(['Hello']);
      await click(page, 'Quote');
      await say(chat, 'Again');
      await say(chat, undefined);
      await expect.poll(() => shown(page)).toEqual(['Hello', 'Hello', 'Again']);
      await click(page, 'Copy');
      await expect.poll(() => shown(page)).toEqual(['Hello', 'Hello', 'Again']);
      expect(errors).toEqual([]);
      await page.close();
    });
  },
);
