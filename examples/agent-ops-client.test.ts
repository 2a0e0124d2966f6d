import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../scripts/chromium.ts';
import { type ExampleServer, runToEnd, startServer } from './test/start-server.ts';

const VITE = new URL('../node_modules/vite/bin/vite.js', import.meta.url).pathname;

describe.skipIf(!findChromium())(
  `the session editor with two chat panels${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let server: ExampleServer;
    let browser: Browser;
    beforeAll(async () => {
      await runToEnd(VITE, 'build', 'agent-ops-client', '--logLevel', 'error');
      vi.stubEnv('ENABLE_AI_SDK_ADAPTER', 'true');
      vi.stubEnv('SPEED', '4');
      [server, browser] = await Promise.all([
        startServer('agent-ops-client/server.ts'),
        launchChromium(),
      ]);
    }, 120_000);
    afterAll(async () => {
      vi.unstubAllEnvs();
      await browser?.close();
      await server?.stop();
    });

    async function open(session: string): Promise<Page> {
      const page = await browser.newPage();
      await page.goto(`${server.url}/?session=${session}`);
      return page;
    }
    const flag = (page: Page) => page.getByLabel('Use the AI SDK chat');
    const panel = (page: Page, name: 'AI SDK chat' | 'WebSocket chat') =>
      page.getByRole('region', { name });
    async function choose(page: Page, name: 'AI SDK chat' | 'WebSocket chat'): Promise<void> {
      await flag(page).click();
      await panel(page, name).waitFor();
    }
    const answers = (page: Page) => page.locator('[data-role="assistant"]');
    const stop = (page: Page) => page.getByRole('button', { name: 'Stop' });
    async function send(page: Page, text: string): Promise<void> {
      await page.getByLabel('Message').fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
    }

    it('swaps the WebSocket panel for useChat by the session’s flag, and both show one conversation [RFC-CLIENT-01] [RFC-CLIENT-02] [RFC-CLIENT-03]', async () => {
      const page = await open('one-conversation');
      await panel(page, 'WebSocket chat').waitFor();
      await send(page, 'a free berth, please');
      await answers(page).getByText('The second is quieter.').waitFor();

      await choose(page, 'AI SDK chat');
      await panel(page, 'AI SDK chat').getByText('The second is quieter.').waitFor();
      await send(page, 'another berth');
      await answers(page).nth(1).getByText('The second is quieter.').waitFor();
      const tool = answers(page).nth(1).locator('[data-tool="find_berths"]');
      await expect.poll(() => tool.textContent()).toContain('Kalkara 2');

      await choose(page, 'WebSocket chat');
      await expect.poll(() => page.locator('[data-role]').count()).toBe(4);
      await page.close();
    });

    it('stops the agent’s turn for every window when the person presses Stop [RFC-MANUAL-04]', async () => {
      const watching = await open('stopped');
      await panel(watching, 'WebSocket chat').waitFor();
      const page = await open('stopped');
      await choose(page, 'AI SDK chat');
      await send(page, 'the logbook');
      await answers(watching).first().waitFor();
      await stop(page).click();
      await expect.poll(() => stop(page).isEnabled()).toBe(false);
      await expect.poll(() => stop(watching).isEnabled()).toBe(false);
      const said = await answers(page).textContent();
      expect(said?.length).toBeLessThan(300);
      await page.close();
      await watching.close();
    });

    it('shows the agent’s error in both panels, and takes the next prompt [RFC-MANUAL-05]', async () => {
      const page = await open('failing');
      await choose(page, 'AI SDK chat');
      await send(page, 'a storm is coming');
      await page.getByRole('alert').first().waitFor();
      await send(page, 'a berth, then');
      await answers(page).getByText('The second is quieter.').waitFor();
      await page.close();
    });

    it('answers prompts of two windows one after another, each once [RFC-MANUAL-06]', async () => {
      const page = await open('rapid');
      await choose(page, 'AI SDK chat');
      const other = await open('rapid');
      await panel(other, 'AI SDK chat').waitFor();
      await Promise.all([send(page, 'berth one'), send(other, 'berth two')]);
      await answers(page).getByText('The second is quieter.').waitFor();
      await answers(other).getByText('The second is quieter.').waitFor();
      await page.reload();
      await expect.poll(() => page.locator('[data-role="user"]').count()).toBe(2);
      await expect.poll(() => answers(page).count()).toBe(2);
      await page.close();
      await other.close();
    });

    it('answers 404 at the adapter of a session without the flag, and its WebSocket works [RFC-FLAG-02]', async () => {
      const page = await open('without-flag');
      await panel(page, 'WebSocket chat').waitFor();
      const status = await page.evaluate(async () => {
        const token = await (await fetch('/api/token', { method: 'POST' })).text();
        const { status } = await fetch('/api/sessions/without-flag/chat', {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ messages: [{ role: 'user', content: 'ahoy' }] }),
        });
        return status;
      });
      expect(status).toBe(404);
      await page.close();
    });

    it('keeps the WebSocket panel when ENABLE_AI_SDK_ADAPTER is off, whatever the session’s flag says [RFC-FLAG-01] [RFC-FLAG-03]', async () => {
      vi.stubEnv('ENABLE_AI_SDK_ADAPTER', 'false');
      const withoutAdapter = await startServer('agent-ops-client/server.ts');
      onTestFinished(() => withoutAdapter.stop());
      const page = await browser.newPage();
      await page.goto(`${withoutAdapter.url}/?session=rolled-back`);
      await choose(page, 'WebSocket chat');
      await send(page, 'berth');
      await answers(page).getByText('The second is quieter.').waitFor();
      await page.close();
    });
  },
);
