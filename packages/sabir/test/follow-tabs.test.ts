/** Tabs of a real browser with the unmodified `useChat` of three majors, on a real gateway. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import { serve } from '../src/platforms/node/serve.ts';
import { chatBody } from './gateway-client.ts';
import { startHosted } from './hosted-gateway.ts';
import type { ClientName } from './real-clients.ts';
import { startSocketProxy } from './socket-proxy.ts';
import { buildStockPage } from './stock-clients/build.ts';

const HTML =
  '<!doctype html><title>Chat</title><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/page.js"></script>';
const CLIENTS: ClientName[] = ['ai@5', 'ai@6', 'ai@7'];

declare global {
  var send: (text: string) => void;
}

describe.skipIf(!findChromium())(`tabs that follow${findChromium() ? '' : NO_CHROMIUM}`, () => {
  let browser: Browser;
  const scripts = new Map<ClientName, string>();
  beforeAll(async () => {
    browser = await launchChromium();
    for (const name of CLIENTS)
      scripts.set(name, await buildStockPage(name, { page: 'following-page.ts' }));
  }, 120_000);
  afterAll(() => browser?.close());

  /** A gateway with a session, behind a proxy that can be cut. */
  async function setUp(client: ClientName, query = '') {
    const hosted = startHosted();
    const follows: string[] = [];
    const server = await serve({
      fetch: (request) => {
        const { pathname } = new URL(request.url);
        if (pathname.endsWith('/follow')) {
          follows.push(request.headers.get('last-event-id') ?? '');
        }
        if (pathname.startsWith('/api/')) return hosted.gateway.fetch(request);
        const isScript = pathname === '/page.js';
        return new Response(isScript ? scripts.get(client) : HTML, {
          headers: { 'content-type': isScript ? 'text/javascript' : 'text/html' },
        });
      },
    });
    const proxy = await startSocketProxy(server.port, () => undefined);
    const context = await browser.newContext();
    const errors: string[] = [];
    onTestFinished(async () => {
      expect(errors).toEqual([]);
      await context.close();
      await proxy.close();
      await hosted.close();
      await server.close();
    });
    const openTab = async (more = '') => {
      const page = await context.newPage();
      page.on('pageerror', (error) => errors.push(error.message));
      await page.goto(`${proxy.url}/?user=carl${query}${more}`);
      await page.waitForSelector('main[data-connection=open][data-loaded=true]');
      return page;
    };
    /** How many connections follow at this moment. */
    const haveConnections = (count: number) =>
      vi.waitFor(
        async () => expect((await hosted.user('olga').metrics()).sabir_followers).toBe(count),
        { timeout: 5_000 },
      );
    return { ...hosted, context, proxy, follows, haveConnections, openTab };
  }

  /** Headless tabs are all shown. */
  const setHidden = (page: Page, isHidden: boolean) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
    }, isHidden);

  const shows = (page: Page, ...expected: string[]) =>
    vi.waitFor(
      async () =>
        expect(await page.$$eval('p', (all) => all.map((p) => p.textContent))).toEqual(expected),
      { timeout: 10_000, interval: 20 },
    );

  it.each<ClientName>(['ai@5', 'ai@7'])(
    "of %s show each other's turns over one connection, hand it over, and come back",
    async (client) => {
      const { agent, user, context, proxy, follows, haveConnections, openTab } =
        await setUp(client);
      const one = await openTab();
      const two = await openTab();
      expect(follows).toEqual(['']);

      await two.evaluate(() => send('Hello'));
      const run = await agent.run();
      run.text('Ahoy');
      await shows(one, 'user: Hello', 'assistant: Ahoy');
      run.text(' there');
      run.end();
      const first = ['user: Hello', 'assistant: Ahoy there'];
      await shows(one, ...first);
      await shows(two, ...first);

      // The tab that has the connection closes.
      await one.close();
      // A browser may send a GET again by itself.
      await vi.waitUntil(() => follows.length > 1, { timeout: 5_000 });
      expect(follows[1]).toMatch(/:\d+$/);
      await haveConnections(1);
      void user('olga').post(chatBody('Again'));
      (await agent.run(1)).text('Yes');
      const second = [...first, 'user: Again', 'assistant: Yes'];
      await shows(two, ...second);

      // Its network goes away in the middle of an answer, and comes back.
      await context.setOffline(true);
      proxy.cutAll();
      await two.waitForSelector('main[data-connection=offline]');
      agent.runs[1]?.text(', again');
      agent.runs[1]?.end();
      await context.setOffline(false);
      await shows(two, ...second.slice(0, -1), 'assistant: Yes, again');
      await two.waitForSelector('main[data-connection=open][data-status=ready]');
    },
  );

  it('of eight chats keep three connections while they are hidden, and each one is up to date when it is shown', async () => {
    const { agent, haveConnections, openTab } = await setUp('ai@7');
    const tabs: Page[] = [];
    for (let at = 0; at < 8; at++) {
      for (const tab of tabs.slice(-1)) await setHidden(tab, true);
      tabs.push(await openTab(`&id=chat-${at}`));
    }
    await haveConnections(4);
    const last = tabs.at(-1) as Page;
    await last.evaluate(() => send('Hello'));
    (await agent.run()).text('Ahoy');
    agent.runs[0]?.end();
    const all = ['user: Hello', 'assistant: Ahoy'];
    await shows(last, ...all);
    await setHidden(last, true);
    for (const tab of tabs.slice(3, 5)) {
      await setHidden(tab, false);
      await shows(tab, ...all);
      await setHidden(tab, true);
    }
    await haveConnections(3);
  });

  it('take the connection from a hidden tab when they are shown', async () => {
    const { agent, follows, haveConnections, openTab } = await setUp('ai@7');
    const [one, two] = [await openTab(), await openTab()];
    await setHidden(one, true);
    await two.evaluate(() => send('Hello'));
    const run = await agent.run();
    run.text('Ahoy');
    // A browser may send a GET again by itself.
    await vi.waitUntil(() => follows.length > 1, { timeout: 5_000 });
    run.text(' there');
    run.end();
    for (const tab of [one, two]) await shows(tab, 'user: Hello', 'assistant: Ahoy there');
    await haveConnections(1);
  });

  it('of useChatStream show the turns of each other', async () => {
    const { agent, follows, openTab } = await setUp('ai@7', '&hook=useChatStream');
    const [one, two] = [await openTab(), await openTab()];
    const all: string[] = [];
    for (const [at, tab] of [one, two, one].entries()) {
      await tab.evaluate(() => send('Go'));
      (await agent.run(at)).text(`${at}`);
      all.push('user: Go', `assistant: ${at}`);
      for (const either of [one, two]) await shows(either, ...all);
      agent.runs[at]?.end();
      for (const either of [one, two]) await either.waitForSelector('main[data-status=ready]');
    }
    expect(follows).toHaveLength(1);
  });

  it.each<ClientName>(['ai@5', 'ai@6'])(
    'of %s whose own answer breaks off show the rest of it',
    async (client) => {
      const { agent, proxy, openTab } = await setUp(client);
      const tab = await openTab();
      await tab.evaluate(() => send('Hello'));
      const run = await agent.run();
      run.text('Ahoy');
      await shows(tab, 'user: Hello', 'assistant: Ahoy');
      proxy.cutAll();
      run.text(' there');
      await shows(tab, 'user: Hello', 'assistant: Ahoy there');
      run.end();
      await tab.waitForSelector('main[data-status=ready]');
      await shows(tab, 'user: Hello', 'assistant: Ahoy there');
    },
  );
});
