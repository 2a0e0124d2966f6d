/** The real OpenCode in a session behind the gateway, in a browser with nothing of ours in it: the unmodified `useChat`. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import type { UIMessage } from '../src/core/message.ts';
import { openCodeAgent } from '../src/platforms/node/opencode.ts';
import { startSessionStack } from '../src/platforms/node/sessions.ts';
import { memorySessionStore } from '../src/sessions/index.ts';
import { createOpenCodeHome } from './opencode/opencode-options.ts';
import { startScriptedModel } from './opencode/scripted-model.ts';
import { buildStockPage } from './stock-clients/build.ts';

const write = (path: string) => ({
  reasoning: ['They want ', 'a file.'],
  text: ['Let me write it. '],
  calls: [
    {
      id: 'call-1',
      name: 'bash',
      input: { command: `echo Sabir > ${path}`, description: 'Write the file' },
    },
  ],
});

it.skipIf(!findChromium())(
  `OpenCode answers stock useChat, and asks before it acts [BAR-02] [RUN-05] [RFC-MANUAL-07]${findChromium() ? '' : NO_CHROMIUM}`,
  async () => {
    const model = await startScriptedModel({
      'write the file': [write('written.txt'), { text: ['It is ', 'written.'] }],
    });
    const home = createOpenCodeHome(model);
    const script = await buildStockPage('ai@7');
    const html =
      '<!doctype html><title>Chat</title><div id="root"></div><script type="module" src="/page.js"></script>';
    const stack = await startSessionStack({
      store: memorySessionStore(),
      agent: () => openCodeAgent(home.options),
      fetch: (request) => {
        const { pathname } = new URL(request.url);
        if (pathname.startsWith('/api/')) return undefined;
        const isScript = pathname === '/page.js';
        const type = isScript ? 'text/javascript' : 'text/html';
        return new Response(isScript ? script : html, { headers: { 'content-type': type } });
      },
      shutdownMs: 100,
    });
    const browser = await launchChromium();
    onTestFinished(async () => {
      await browser.close();
      await stack.close();
      await model.close();
      home.remove();
    });
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await page.goto(`${stack.url}/?session=harbour&chat=c1&token=any`);
    await page.fill('input', 'Please write the file');
    await page.click('button[type=submit]');

    // The command has not run: its permission is a question, and the call waits for it.
    const asked = await page.waitForSelector('li[data-part=data-question]', { timeout: 60_000 });
    const question = JSON.parse((await asked.textContent()) ?? '');
    expect(question).toMatchObject({
      status: 'open',
      options: ['Allow once', 'Always allow', 'Deny'],
      toolCallId: 'call-1',
    });
    expect(question.text).toContain('echo Sabir');
    expect(existsSync(join(home.directory, 'written.txt'))).toBe(false);
    const answer = await fetch(`${stack.url}/api/sessions/harbour/chat/c1/answer`, {
      method: 'POST',
      body: JSON.stringify({ questionId: question.questionId, answer: 'Allow once' }),
    });
    expect(answer.status).toBe(202);

    await page.waitForSelector('main[data-status=ready] ol[data-role=assistant]');
    expect(readFileSync(join(home.directory, 'written.txt'), 'utf8')).toBe('Sabir\n');
    const messages: UIMessage[] = await page.evaluate(() =>
      structuredClone((window as unknown as { chat: { messages: UIMessage[] } }).chat.messages),
    );
    const parts = messages.at(-1)?.parts ?? [];
    const shown = parts
      .map(({ type }) => type)
      .filter((type) => !/^(step-start|data-queue|data-message-metadata)$/.test(type));
    expect(shown).toEqual(['reasoning', 'text', 'tool-bash', 'data-question', 'text']);
    expect(parts).toContainEqual(
      expect.objectContaining({
        type: 'tool-bash',
        state: 'output-available',
        providerExecuted: true,
      }),
    );
    expect(parts).toContainEqual(expect.objectContaining({ type: 'text', text: 'It is written.' }));
    expect(parts.find(({ type }) => type === 'data-question')).toMatchObject({
      data: { status: 'answered', answer: 'Allow once' },
    });
    // A page that is loaded anew shows the same from the session's history.
    await page.reload();
    await page.waitForSelector('li[data-part=tool-bash][data-state=output-available]');
    expect(errors).toEqual([]);
  },
  120_000,
);
