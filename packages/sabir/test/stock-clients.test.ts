/**
 * The unmodified `useChat` and `DefaultChatTransport` of four releases in a real browser, through a
 * real gateway, on a real WebSocket.
 */
import { SignJWT } from 'jose';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import type { UIMessage } from '../src/core/message.ts';
import { createChatGateway, jwtAuth, sessionAccess } from '../src/gateway/index.ts';
import { serve, toUpgradeListener } from '../src/platforms/node/serve.ts';
import { agentOpsUpstream } from '../src/sources/agent-ops/index.ts';
import { aborted, type Script, say } from './agent-ops-script.ts';
import { startAgentOpsServer } from './agent-ops-server.ts';
import { CLIENTS, type ClientName } from './real-clients.ts';
import { startSocketProxy } from './socket-proxy.ts';
import { buildStockPage } from './stock-clients/build.ts';

const SECRET = 'a secret that is long enough for tests';
const GRACE_MS = 1_000;
const WORDS = Array.from({ length: 60 }, (_, i) => `word-${i} `);

/** A long answer that the test lets go on, with a tool in the middle. */
function createSlowAnswer() {
  const gate = Promise.withResolvers<void>();
  const script: Script = async function* ({ signal, number }) {
    for (const word of WORDS.slice(0, 20)) yield { say: word };
    const call = { callId: `call-${number}`, toolName: 'search', args: { q: 'harbour' } };
    yield { tool: { ...call, status: 'running' } };
    yield { tool: { ...call, status: 'completed', result: { hits: 3 } } };
    for (const word of WORDS.slice(20, 40)) yield { say: word };
    await Promise.race([gate.promise, aborted(signal)]);
    for (const word of WORDS.slice(40)) yield { say: word };
  };
  return { script, goOn: gate.resolve };
}

/** A release with its `DefaultChatTransport`, or ai@7 with its `WebSocketChatTransport`. */
type PageName = ClientName | 'WebSocket';

describe.skipIf(!findChromium())(
  `stock useChat in a browser${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    let token: string;
    const pages = new Map<PageName, string>();

    beforeAll(async () => {
      browser = await launchChromium();
      for (const { name } of CLIENTS) pages.set(name, await buildStockPage(name));
      pages.set('WebSocket', await buildStockPage('ai@7', { transport: 'websocket-transport.ts' }));
      token = await new SignJWT({ sub: 'olga' })
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime('10 minutes')
        .sign(new TextEncoder().encode(SECRET));
    }, 120_000);
    afterAll(() => browser?.close());

    /** An agent, a gateway in front of it, and the page beside the gateway. */
    async function setUp(client: PageName, script?: (text: string) => Script) {
      const agent = await startAgentOpsServer({ ...(script && { script }) });
      const gateway = createChatGateway({
        upstream: agentOpsUpstream({ url: agent.url }),
        authenticate: jwtAuth({ secret: SECRET }),
        access: sessionAccess(() => ({ ownerId: 'olga' })),
        timing: { disconnectGraceMs: GRACE_MS, lingerMs: 0 },
      });
      const server = await serve({
        upgrade: toUpgradeListener(gateway),
        fetch: async (request) => {
          const { pathname } = new URL(request.url);
          if (pathname.startsWith('/api/')) return gateway.fetch(request);
          const isScript = pathname === '/page.js';
          return new Response(
            isScript
              ? pages.get(client)
              : '<!doctype html><title>Chat</title><div id="root"></div><script type="module" src="/page.js"></script>',
            { headers: { 'content-type': isScript ? 'text/javascript' : 'text/html' } },
          );
        },
      });
      const context = await browser.newContext();
      const page = await context.newPage();
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(error.message));
      onTestFinished(async () => {
        expect(errors).toEqual([]);
        await context.close();
        await gateway.close();
        await server.close();
        await agent.close();
      });
      const proxy = await startSocketProxy(server.port, () => undefined);
      onTestFinished(() => proxy.close());
      await page.goto(`${proxy.url}/?session=s1&chat=c1&token=${token}`);
      await page.waitForSelector('main');
      return { page, agent, proxy };
    }

    async function send(page: Page, text: string): Promise<void> {
      await page.fill('input', text);
      await page.click('button[type=submit]');
    }

    const ready = (page: Page) =>
      page.waitForSelector('main[data-status=ready] ol[data-role=assistant]');

    const messagesOf = (page: Page): Promise<UIMessage[]> =>
      page.evaluate(() =>
        structuredClone((window as unknown as { chat: { messages: UIMessage[] } }).chat.messages),
      );

    const textOf = (page: Page) =>
      page.$$eval('ol[data-role=assistant]:last-of-type li[data-part=text]', (parts) =>
        parts.map(({ textContent }) => textContent).join(''),
      );

    it('WebSocketChatTransport of ai@7: chats, goes on after a cut and after a reload, and stops', async () => {
      const answers = [createSlowAnswer(), createSlowAnswer()];
      const scripts = [say('Hello.'), ...answers.map(({ script }) => script)];
      const { page, agent, proxy } = await setUp('WebSocket', () => scripts.shift() as Script);
      const sockets: string[] = [];
      page.on('websocket', (socket) => sockets.push(socket.url()));
      const isShown = (word: string, times = 1) =>
        page.waitForFunction(
          ([text, count]) => document.body.textContent?.split(`${text} `).length === count + 1,
          [word, times] as const,
        );
      await send(page, 'hi');
      await ready(page);
      expect(await textOf(page)).toBe('Hello.');
      await send(page, 'go');
      await isShown('word-39');
      proxy.cutAll();
      await page.waitForSelector('main[data-status=error]');
      await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
      await page.waitForSelector('main[data-status=streaming]');
      await page.reload();
      await isShown('word-39');
      answers[0]?.goOn();
      await isShown('word-59');
      await ready(page);
      expect((await messagesOf(page)).map(({ role }) => role).join()).toBe(
        'user,assistant,user,assistant',
      );
      await send(page, 'go');
      await isShown('word-39', 2);
      await page.click('button[type=button]');
      await ready(page);
      await vi.waitUntil(() => agent.received('abort').length === 1, { timeout: 10_000 });
      expect(await page.$('[role=alert]')).toBeNull();
      expect(agent.received('prompt')).toHaveLength(3);
      expect(new Set(sockets)).toEqual(
        new Set([`${proxy.url.replace('http', 'ws')}/api/sessions/s1/chat`]),
      );
    });

    describe.each(CLIENTS)('$name', ({ name }) => {
      it('[RFC-INT-1.1] [RFC-INT-1.2] chats: a question, an answer, and another', async () => {
        const { page } = await setUp(name);
        await send(page, 'hello');
        await ready(page);
        expect(await textOf(page)).toBe('You said hello');
        await send(page, 'again');
        await page.waitForFunction(
          () => document.querySelectorAll('ol[data-role=assistant]').length === 2,
        );
        await ready(page);
        expect(await textOf(page)).toBe('You said again');
        expect(await page.$('[role=alert]')).toBeNull();
        await page.reload();
        await page.waitForSelector('ol[data-role=assistant]');
        expect((await messagesOf(page)).map(({ role }) => role)).toEqual([
          'user',
          'assistant',
          'user',
          'assistant',
        ]);
      });

      it('[RFC-INT-4.1] [RFC-INT-4.3] shows tools, and tools that failed, and goes on [RFC-MANUAL-03]', async () => {
        const { page } = await setUp(name);
        await send(page, '[rfc-tool] list files');
        await ready(page);
        const tool = page.locator('li[data-part=tool-bash]');
        expect(await tool.getAttribute('data-state')).toBe('output-available');
        expect(await tool.textContent()).toContain('a.txt');
        expect(await textOf(page)).toBe('Let me check. There are two files.');
        await send(page, '[head-toolerror] read');
        await page.waitForSelector('li[data-part=tool-read][data-state=output-error]');
        await ready(page);
        expect(await page.locator('li[data-part=tool-read]').textContent()).toContain(
          'File not found',
        );
        expect(await textOf(page)).toBe('That file is missing.');
        expect(await page.$('[role=alert]')).toBeNull();
      });

      it('shows what went wrong, and can be used again', async () => {
        const answers = [
          () => [{ say: 'Some. ' }, { fail: 'The model is overloaded' }],
          say('Better.'),
        ] as Script[];
        const { page } = await setUp(name, () => answers.shift() as Script);
        await send(page, 'go');
        await page.waitForSelector('main[data-status=error]');
        expect(await page.textContent('[role=alert]')).toBe('The model is overloaded');
        await send(page, 'once more');
        await ready(page);
        expect(await textOf(page)).toBe('Better.');
      });

      it('[RFC-INT-2.1] [RFC-INT-2.2] stops: the agent is told to abort within the grace time', async () => {
        const { script } = createSlowAnswer();
        const { page, agent } = await setUp(name, () => script);
        await send(page, 'go');
        await page.waitForFunction(() => document.body.textContent?.includes('word-39'));
        expect(agent.received('abort')).toHaveLength(0);
        const stoppedAt = Date.now();
        await page.click('button[type=button]');
        await ready(page);
        await vi.waitUntil(() => agent.received('abort').length === 1, { timeout: 10_000 });
        const tookMs = Date.now() - stoppedAt;
        expect(tookMs).toBeLessThan(GRACE_MS + 2_000);
        expect(await textOf(page)).toContain('word-39');
        expect(await page.$('[role=alert]')).toBeNull();
      });

      it('goes on after a reload in mid-answer, to the identical message', async () => {
        const whole = createSlowAnswer();
        whole.goOn();
        const cut = createSlowAnswer();
        const scripts = [whole.script, cut.script];
        const { page, agent } = await setUp(name, () => scripts.shift() as Script);
        await send(page, 'go');
        await ready(page);
        await send(page, 'go');
        await page.waitForFunction(
          () => (document.body.textContent?.match(/word-39/g) ?? []).length === 2,
        );
        await page.reload();
        // The prompt and what there was of the answer, once each.
        await page.waitForFunction(
          () => (document.body.textContent?.match(/word-39/g) ?? []).length === 2,
        );
        cut.goOn();
        await page.waitForFunction(
          () => (document.body.textContent?.match(/word-59/g) ?? []).length === 2,
        );
        await ready(page);
        const messages = await messagesOf(page);
        expect(messages.map(({ role }) => role)).toEqual([
          'user',
          'assistant',
          'user',
          'assistant',
        ]);
        const comparable = ({ parts }: UIMessage) =>
          JSON.parse(JSON.stringify(parts).replaceAll(/call-\d/g, 'call'));
        expect(comparable(messages[3] as UIMessage)).toEqual(comparable(messages[1] as UIMessage));
        expect(agent.received('abort')).toHaveLength(0);
        expect(agent.received('prompt')).toHaveLength(2);
      });
    });
  },
);
