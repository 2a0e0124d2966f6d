/** A real server process and a real browser, and the few words the tests share. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';

export const hasChromium = findChromium() !== undefined;
export const inBrowser = hasChromium ? '' : NO_CHROMIUM;
export { launchChromium as launchBrowser };

type Health = {
  model: string;
  agent: string;
  gateway: boolean;
  runs: { active: number; finished: number; failed: number; stopped: number };
};
export type DemoServer = {
  url: string;
  process: ChildProcess;
  health(): Promise<Health>;
  stop(): Promise<void>;
};

const DEMO = fileURLToPath(new URL('..', import.meta.url));
/** Settings of whoever runs the tests; their keys must not make them talk to a real model. */
const NO_SETTINGS = {
  ENABLE_AI_SDK_ADAPTER: '',
  OPENAI_API_KEY: '',
  ANTHROPIC_API_KEY: '',
  SABIR_MODEL_API_KEY: '',
  SABIR_MODEL_BASE_URL: '',
  SABIR_AGENT: '',
  SABIR_DATABASE: '',
};

type Settings = Record<string, string | undefined>;

export function spawnServer(env: Settings = {}, args = ['server/main.ts']): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: DEMO,
    env: { ...process.env, ...NO_SETTINGS, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

export async function startServer(env: Settings = {}, args?: string[]): Promise<DemoServer> {
  const child = spawnServer(env, args);
  const url = await new Promise<string>((resolve, reject) => {
    let output = '';
    const read = (bytes: Buffer) => {
      output += bytes;
      const match = /Sabir demo on (http:\/\/\S+)/.exec(output);
      if (match?.[1]) resolve(match[1]);
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('exit', () => reject(new Error(`The server did not start:\n${output}`)));
  });
  return {
    url,
    process: child,
    health: async () => (await fetch(`${url}/healthz`)).json() as Promise<Health>,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await exited;
    },
  };
}

export type Visit = { page: Page; complaints: string[]; close(): Promise<void> };

/** Opens the page as a new visitor; what the browser complains about is collected. */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions & { speed?: number } = {},
): Promise<Visit> {
  const { speed = 4, ...contextOptions } = options;
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    ...contextOptions,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) complaints.push(`request to ${request.url()}`);
  });
  await page.goto(`${url}/?speed=${speed}`);
  return { page, complaints, close: () => context.close() };
}

export const HARBOUR = 'How did Mediterranean sailors understand each other?';

export async function send(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox').fill(text);
  await page.keyboard.press('Enter');
}

export async function waitForAnswer(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  await page.getByRole('button', { name: 'Send' }).waitFor();
}

export async function choosePlace(
  page: Page,
  name: 'Server' | 'This tab' | 'Gateway',
): Promise<void> {
  await page.getByText(name, { exact: true }).click();
}

export async function openTab(
  page: Page,
  hook: 'useChat' | 'useChatStream' | 'Session',
): Promise<void> {
  await page.getByRole('tab', { name: new RegExp(`^${hook}\\b`) }).click();
}

/** The tab in front; another one may go on behind it. */
export function panel(page: Page) {
  return page.getByRole('tabpanel');
}

export function lastAnswer(page: Page) {
  return panel(page).locator('[data-role=assistant]').last();
}

/** Has taken its first step, and is not done yet. */
export async function waitForTool(page: Page): Promise<void> {
  await lastAnswer(page).locator('[data-state=done]').first().waitFor();
}

export async function waitForWriter(page: Page): Promise<void> {
  await lastAnswer(page).getByText('A language without a country').waitFor();
}

/** All that is said, without how long thoughts took, which each window measures for itself, and without buttons to copy it. */
export async function words(page: Page): Promise<string> {
  const conversation = page.getByRole('group', { name: 'Conversation' });
  const said = await conversation.evaluate((element) => {
    const copy = element.cloneNode(true) as Element;
    for (const actions of copy.querySelectorAll('[data-actions]')) actions.remove();
    return copy.textContent;
  });
  return (said ?? '').replaceAll(/Thought( for \d+ s)?/g, '');
}

/** The last answer is the one to `HARBOUR`, with all there is to it, and nothing twice. */
export async function expectWhole(page: Page, turns = 1): Promise<void> {
  expect(await panel(page).locator('[data-role=user]').count()).toBe(turns);
  expect(await panel(page).locator('[data-role=assistant]').count()).toBe(turns);
  const answer = lastAnswer(page);
  expect(await answer.locator('[data-status]').count()).toBe(3);
  expect(await answer.locator('[data-status=complete]').count()).toBe(3);
  expect(await answer.locator('[data-part=tool]').count()).toBe(3);
  expect(await answer.locator('[data-usage]').count()).toBe(1);
  expect((await answer.textContent())?.split('A language without a country')).toHaveLength(2);
  expect(await panel(page).locator('[data-notice]').count()).toBe(0);
}

/** The last answer is the desk's to `HARBOUR`, with all there is to it, and nothing twice. */
export async function expectDeskAnswer(page: Page, turns = 1): Promise<void> {
  expect(await panel(page).locator('[data-role=user]').count()).toBe(turns);
  expect(await panel(page).locator('[data-role=assistant]').count()).toBe(turns);
  const answer = lastAnswer(page);
  const agents = await answer.locator('[data-agent][data-status=complete] > h3').allTextContents();
  expect(agents.map((name) => name.match(/Triage|Research/g)?.join())).toEqual([
    'Triage',
    'Triage,Research',
  ]);
  expect(await answer.locator('[data-part=tool]').count()).toBe(2);
  expect(await answer.locator('[data-part=sources] li').count()).toBe(3);
  expect(await answer.locator('[data-usage]').count()).toBe(1);
  const said = await answer.locator('[data-part=text]').allTextContents();
  expect(said.join(' ').split('Sailors, merchants and porters')).toHaveLength(2);
  expect(await panel(page).locator('[data-notice]').count()).toBe(0);
}

/** The desk has begun to answer `HARBOUR` from its guide, and is not done yet. */
export async function waitForGuide(page: Page): Promise<void> {
  const text = lastAnswer(page).locator('[data-part=text]');
  await text.getByText('Sailors, merchants').waitFor();
}
