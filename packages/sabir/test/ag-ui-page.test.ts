/** assistant-ui's AG-UI runtime, unmodified, in a real browser: through a real gateway, with sessions in its process. */
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import { serve } from '../src/platforms/node/serve.ts';
import type { Agent, AgentPrompt } from '../src/sessions/index.ts';
import { buildPage } from './build-page.ts';
import { eventually } from './gateway-client.ts';
import { startHosted } from './hosted-gateway.ts';

const HTML =
  '<!doctype html><title>Chat</title><div id="root"></div><script type="module" src="/page.js"></script>';

/** Does what its prompt says; `long` lasts until it is let on. */
function createPortAgent() {
  const prompts: AgentPrompt[] = [];
  const gate = Promise.withResolvers<void>();
  const agent: Agent = {
    name: 'port',
    async *prompt(prompt) {
      const { text, ask, toolOutput, signal } = prompt;
      prompts.push(prompt);
      const call = { toolCallId: `${text}-${prompts.length}`, toolName: text };
      const { toolCallId } = call;
      switch (text) {
        case 'search':
          yield { type: 'tool-input-available', ...call, input: { q: 'ships' } };
          yield { type: 'tool-output-available', toolCallId, output: { found: 3 } };
          yield { type: 'text-delta', delta: 'There are three.' };
          break;
        case 'locate':
          yield { type: 'tool-input-available', ...call, input: {} };
          yield { type: 'text-delta', delta: JSON.stringify(await toolOutput(toolCallId)) };
          break;
        case 'pay': {
          yield {
            type: 'tool-input-available',
            ...call,
            input: { eur: 5 },
            providerExecuted: true,
          };
          const { answer } = (await ask({ text: 'Pay?', callId: toolCallId })) as {
            answer: unknown;
          };
          yield {
            type: 'tool-output-available',
            toolCallId,
            output: 'paid',
            providerExecuted: true,
          };
          yield { type: 'text-delta', delta: `Heard ${JSON.stringify(answer)}.` };
          break;
        }
        case 'ask': {
          const { answer } = (await ask({ text: 'Which port?' })) as { answer: unknown };
          yield { type: 'text-delta', delta: `To ${JSON.stringify(answer)}.` };
          break;
        }
        case 'long': {
          yield { type: 'text-delta', delta: 'Half of ' };
          const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
          await Promise.race([gate.promise, stopped]);
          yield { type: 'text-delta', delta: 'it.' };
          break;
        }
        default:
          yield { type: 'text-delta', delta: `You said ${text}.` };
      }
    },
  };
  return { agent, prompts, letOn: gate.resolve };
}

describe.skipIf(!findChromium())(
  `assistant-ui on AG-UI in a browser${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    let script: string;

    beforeAll(async () => {
      [browser, script] = await Promise.all([
        launchChromium(),
        buildPage(join(import.meta.dirname, 'ag-ui-page/page.tsx')),
      ]);
    }, 60_000);
    afterAll(() => browser?.close());

    async function openPage() {
      const port = createPortAgent();
      const { gateway } = startHosted({
        sessions: { agent: () => port.agent },
        gateway: { timing: { disconnectGraceMs: 10_000 } },
      });
      const server = await serve({
        async fetch(request) {
          const { pathname } = new URL(request.url);
          if (pathname.startsWith('/api/')) return gateway.fetch(request);
          const isScript = pathname === '/page.js';
          const type = isScript ? 'text/javascript' : 'text/html';
          return new Response(isScript ? script : HTML, { headers: { 'content-type': type } });
        },
      });
      const context = await browser.newContext();
      const page = await context.newPage();
      const errors: string[] = [];
      page.on('pageerror', ({ message }) => errors.push(message));
      onTestFinished(async () => {
        await context.close();
        await server.close();
        expect(errors).toEqual([]);
      });
      await page.goto(server.url);
      await page.waitForSelector('main');
      return { page, ...port };
    }

    async function send(page: Page, text: string): Promise<void> {
      await page.fill('textarea[name=message]', text);
      await page.press('textarea[name=message]', 'Enter');
    }

    const shows = (page: Page, text: string) =>
      page.locator('article').last().getByText(text).waitFor({ timeout: 4_000 });
    const isReady = (page: Page) => page.waitForSelector('[role=status]', { timeout: 4_000 });
    const textOf = (page: Page) =>
      page.$$eval('article', (all) => all.map((one) => one.textContent));

    it('chats, and shows a tool of the agent with its result', async () => {
      const { page } = await openPage();
      await send(page, 'hi');
      await shows(page, 'You said hi.');
      await isReady(page);
      await send(page, 'search');
      await shows(page, 'There are three.');
      expect(await page.textContent('[data-tool=search] code')).toBe('{"found":3}');
    });

    it('runs a tool of the page, and goes on with its output', async () => {
      const { page, prompts } = await openPage();
      await send(page, 'locate');
      await shows(page, '"output":{"port":"Valletta"}');
      await isReady(page);
      expect(prompts).toHaveLength(1);
      expect(await page.textContent('[data-tool=locate] code')).toBe('{"port":"Valletta"}');
    });

    it('approves a tool call', async () => {
      const { page, prompts } = await openPage();
      await send(page, 'pay');
      await page.click('text=Approve', { timeout: 4_000 });
      await shows(page, 'Heard {"approved":true}.');
      await isReady(page);
      expect(prompts).toHaveLength(1);
      await send(page, 'hi');
      await shows(page, 'You said hi.');
    });

    it('answers a question, and prompts a message that is written instead of an answer', async () => {
      const { page, prompts } = await openPage();
      await send(page, 'ask');
      await page.click('text=Tunis');
      await shows(page, 'To "Tunis".');
      await isReady(page);
      await send(page, 'ask');
      await page.waitForSelector('[data-interrupt=input_required]');
      await page.fill('input[name=instead]', 'never mind');
      await page.press('input[name=instead]', 'Enter');
      await shows(page, 'You said never mind.');
      expect(prompts.map(({ text }) => text)).toEqual(['ask', 'ask', 'never mind']);
    });

    it('goes on after a reload in mid-answer', async () => {
      const { page, prompts, letOn } = await openPage();
      await send(page, 'hi');
      await shows(page, 'You said hi.');
      await isReady(page);
      await send(page, 'long');
      await shows(page, 'Half of');
      await page.reload();
      await shows(page, 'Half of');
      letOn();
      await shows(page, 'Half of it.');
      await isReady(page);
      expect(await textOf(page)).toEqual(['hi', 'You said hi.', 'long', 'Half of it.']);
      expect(prompts).toHaveLength(2);
    });

    it('stops', async () => {
      const { page, prompts } = await openPage();
      await send(page, 'long');
      await shows(page, 'Half of');
      await page.click('text=Stop');
      await isReady(page);
      await eventually(() => prompts[0]?.signal.aborted);
      await send(page, 'hi');
      await shows(page, 'You said hi.');
    });
  },
);
