/** The page in a browser, beside a server that speaks the contract as the test tells it. */
import type { Browser, Page } from 'playwright-core';
import { expect, onTestFinished, vi } from 'vitest';
import { event, type SeenRequest, startContractServer } from '../contract-server.ts';
import type { HookPage } from './page.tsx';
import type { ReaderProps, Scene } from './scene.tsx';

export const META = event('meta', { runId: 'r1' });
export const START = event('message.start', { messageId: 'a1', role: 'assistant' });
export const delta = (text: string) => event('message.delta', { messageId: 'a1', delta: text });
export const END = event('message.end', { messageId: 'a1' });
export const DONE = event('done', { finishReason: 'stop' });

declare global {
  // In the page only.
  var page: HookPage;
  var forgetting: { asked: number; done: number };
}

export type OpenOptions = {
  answer?: (request: SeenRequest) => Response | Promise<Response> | undefined;
  /** What a server has rendered, and what of. */
  rendered?: { html: string; scene: Scene };
  /** A script that is there before the page's own. */
  before?: () => void;
};

/** What is never shown is forgotten after a while that no test waits for. */
export function hurryToForget(): void {
  const { setTimeout } = window;
  const forgetting = { asked: 0, done: 0 };
  const hurried = (run: (...args: []) => void, ms: number, ...args: []) => {
    if (ms !== 10_000) return setTimeout(run, ms, ...args);
    forgetting.asked++;
    const forget = () => {
      run(...args);
      forgetting.done++;
    };
    return setTimeout(forget, 50);
  };
  Object.assign(window, { forgetting, setTimeout: hurried });
}

/** Whatever warns or fails in the page fails the test. */
export async function openPage(browser: Browser, script: string, options: OpenOptions = {}) {
  const { answer, rendered, before } = options;
  const html = `<!doctype html><title>Chat</title><link rel="icon" href="data:,"><div id="root">${
    rendered?.html ?? ''
  }</div>${
    rendered
      ? `<script id="scene" type="application/json">${JSON.stringify(rendered.scene)}</script>`
      : ''
  }<script type="module" src="/page.js"></script>`;
  const files: Record<string, [type: string, text: string]> = {
    '/': ['text/html', html],
    '/page.js': ['text/javascript', script],
  };
  const { api, requests, streams } = await startContractServer({
    answer: (request) => {
      const [type, text] = files[request.path] ?? [];
      return type ? new Response(text, { headers: { 'content-type': type } }) : answer?.(request);
    },
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (said) => {
    if (/^(warning|error|assert)$/.test(said.type())) complaints.push(said.text());
  });
  onTestFinished(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });
  if (before) await page.addInitScript(before);
  await page.goto(new URL('/', api).href);
  await page.waitForFunction(() => 'page' in window);

  /** The stream that a request opened. */
  const stream = async (index = 0) => {
    await vi.waitUntil(() => streams[index], { timeout: 10_000, interval: 2 });
    return streams[index] as (typeof streams)[number];
  };
  return {
    page,
    stream,
    streams,
    /** What was asked of the server, but for the page itself. */
    calls: () => requests.filter(({ path }) => path.startsWith('/api/')),
    show: (scene: Scene) =>
      page.evaluate((text) => globalThis.page.show(JSON.parse(text)), JSON.stringify(scene)),
    showLater: (scene: Scene) =>
      page.evaluate((text) => globalThis.page.showLater(JSON.parse(text)), JSON.stringify(scene)),
    heard: () => page.evaluate(() => globalThis.page.heard),
    chats: createRemote(page),
    /** Until a component shows just this. */
    shows: (name: string, text: string) =>
      page.waitForFunction(
        ([reader, expected]) =>
          Array.from(
            document.querySelectorAll(`[data-reader=${reader}] li`),
            ({ textContent }) => textContent,
          ).join('|') === expected,
        [name, text],
      ),
    has: (name: string, status: string) =>
      page.waitForSelector(`[data-reader=${name}][data-status=${status}]`, { state: 'attached' }),
  };
}

/** What a component got from the hook, called from here. */
function createRemote(page: Page) {
  return {
    /** Does not wait for the answer. */
    call: (name: string, method: 'sendMessage' | 'regenerate' | 'abort', ...args: unknown[]) =>
      page.evaluate(
        ([reader, verb, given]) => {
          const chat = globalThis.page.chats[reader] as unknown as Record<
            string,
            (...all: unknown[]) => unknown
          >;
          void chat[verb]?.(...given);
        },
        [name, method, args] as const,
      ),
    send: (name: string, text: string) =>
      page.evaluate(([reader, said]) => void globalThis.page.chats[reader]?.sendMessage(said), [
        name,
        text,
      ] as const),
    state: (name: string) =>
      page.evaluate((reader) => {
        const { id, messages, status, error } = globalThis.page.chats[reader] ?? {};
        return structuredClone({ id, messages, status, error: error?.message });
      }, name),
  };
}

export const reader = (name: string, options: ReaderProps['options'], more = {}): ReaderProps => ({
  name,
  options,
  ...more,
});
