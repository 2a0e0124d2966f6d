/** Attacks on the page of `sabir serve` by an agent, by other people and by other sites, in a browser. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../../scripts/chromium.ts';
import { makeFolder, startServe } from '../cli-process.ts';

const MARKUP = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

/** Says markup wherever an agent can say something. */
const HOSTILE_AGENT = `
  const markup = ${JSON.stringify(MARKUP)};
  export default () => ({ name: markup, async *prompt({ ask, emit }) {
    yield { type: 'reasoning-delta', delta: markup };
    yield { type: 'text-delta', delta: markup + ' **' + markup + '** \`' + markup + '\`' };
    const call = { toolCallId: markup };
    yield { type: 'tool-input-available', ...call, toolName: markup, input: { [markup]: markup } };
    yield { type: 'tool-output-available', ...call, output: markup };
    for (const url of ['javascript:window.hacked=1', ' javascript:window.hacked=1', 'data:text/html,' + markup]) {
      yield { type: 'source-url', sourceId: url, url, title: 'link ' + markup };
      yield { type: 'file', url, mediaType: 'text/html' };
    }
    yield { type: 'data-' + markup, data: { [markup]: markup } };
    yield { type: 'message-metadata', messageMetadata: { [markup]: markup, reason: markup } };
    emit({ type: 'models', models: markup });
    emit({ type: markup, data: markup });
    await ask({ questionId: 'q', text: markup, options: [markup, 'Go on'] });
    yield { type: 'text-delta', delta: 'The end.' };
    throw new Error(markup);
  } });`;

describe.skipIf(!findChromium())(
  `the page of sabir serve under attack${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launchChromium();
    }, 60_000);
    afterAll(() => browser?.close());

    async function openPage(address: string) {
      const context = await browser.newContext();
      onTestFinished(() => context.close());
      const page = await context.newPage();
      await page.goto(address);
      return page;
    }
    const isHacked = () => Object.hasOwn(window, 'hacked');

    it('runs nothing of what an agent, a question or an address says', async () => {
      const cwd = makeFolder();
      writeFileSync(join(cwd, 'hostile.mjs'), HOSTILE_AGENT);
      const args = ['--agent', './hostile.mjs', '--database', ':memory:'];
      const server = await startServe(args, { cwd });
      const page = await openPage(`${server.url}/?session=${encodeURIComponent(MARKUP)}`);
      await page.getByRole('textbox', { name: 'Message' }).fill(MARKUP);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Go on' }).waitFor();
      for (const fold of await page.locator('main [aria-expanded]').all()) await fold.click();
      // A file that came whole can be saved; no address that an agent names is opened.
      const links = await page
        .locator('main a')
        .evaluateAll((all) =>
          (all as HTMLAnchorElement[]).map(({ href, download }) => [href, download]),
        );
      expect(links).toEqual([[`data:text/html,${MARKUP}`, 'File']]);
      await page.getByRole('button', { name: 'Go on' }).click();
      const failure = page.getByText('The answer could not be finished');
      await failure.waitFor();
      await page.reload();
      await failure.waitFor();
      expect(await page.evaluate(isHacked)).toBe(false);
      expect(await page.locator('main img, main script').count()).toBe(0);
    });

    it('is shown in no frame of another site, and sends its address to no other site', async () => {
      const server = await startServe(['--database', ':memory:', '--token', 'olga=s3cret']);
      const referers: (string | undefined)[] = [];
      const elsewhere = createServer(({ url, headers }, response) => {
        if (url === '/seen') referers.push(headers.referer);
        const frame = `<iframe src="${server.url}/"></iframe>`;
        response.setHeader('content-type', 'text/html').end(frame);
      }).listen(0, '127.0.0.1');
      onTestFinished(() => void elsewhere.close());
      await new Promise((resolve) => elsewhere.once('listening', resolve));
      const evil = `http://localhost:${(elsewhere.address() as AddressInfo).port}`;
      const framing = await openPage(evil);
      const framed = framing.frames().find((frame) => frame !== framing.mainFrame());
      expect(framed).toBeDefined();
      expect(await framed?.getByRole('textbox').count()).toBe(0);

      const page = await openPage(`${server.url}/?session=secret-id#token=s3cret`);
      await page.getByText('olga').waitFor();
      await page.evaluate((address) => {
        const link = Object.assign(document.createElement('a'), { href: address });
        document.body.append(link);
        link.click();
      }, `${evil}/seen`);
      await expect.poll(() => referers.length).toBe(1);
      expect(referers).toEqual([undefined]);
    });

    it('of another site can neither open a socket here nor read an answer', async () => {
      const server = await startServe(['--database', ':memory:']);
      const elsewhere = createServer((_, response) => {
        response.setHeader('content-type', 'text/html').end('<title>Elsewhere</title>');
      }).listen(0, '127.0.0.1');
      onTestFinished(() => void elsewhere.close());
      await new Promise((resolve) => elsewhere.once('listening', resolve));
      const { port } = elsewhere.address() as AddressInfo;
      for (const host of ['localhost', '127.0.0.1', 'evil.localhost']) {
        const page = await openPage(`http://${host}:${port}/`);
        const tried = await page.evaluate(async (url) => {
          const address = `${url.replace('http', 'ws')}/api/sessions/s/ws?role=client`;
          const socket = new WebSocket(address, ['sabir', 'bearer.x']);
          const opened = new Promise((resolve) => {
            socket.onopen = () => resolve('open');
            socket.onerror = () => resolve('refused');
          });
          const body = JSON.stringify({ id: 'c', messages: [] });
          const read = (path: string, init = {}) =>
            fetch(`${url}${path}`, init).then(
              () => 'read',
              () => 'refused',
            );
          return [
            await opened,
            await read('/api/sessions/s/messages'),
            await read('/api/sessions/s/chat', { method: 'POST', body }),
            await read('/metrics'),
          ];
        }, server.url);
        expect(tried, host).toEqual(['refused', 'refused', 'refused', 'refused']);
      }
    });
  },
);
