/**
 * Takes the pictures of the READMEs anew: `node scripts/take-screenshots.ts`. With a folder behind it, all scenes of the page
 * of `sabir serve` go there instead, in both colours, as wide as a desk's screen and as a phone's.
 */
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from './chromium.ts';
import { ROOT } from './run-command.ts';

const [folder] = process.argv.slice(2);
const PICTURES = join(ROOT, 'apps/demo/screenshots');
const DESK = { width: 1280, height: 960 };
const PHONE = { width: 375, height: 740 };
const SERVE_ARGS = [
  '--port',
  '0',
  '--database',
  ':memory:',
  '--token',
  'olga=one',
  '--token',
  'marco=two',
];

type OpenOther = () => Promise<Page>;
type Scene = (page: Page, openOther: OpenOther) => Promise<void>;

const SCENES: Record<string, Scene> = {
  async empty(page) {
    await page.getByText('What can I do for you?').waitFor();
  },
  async conversation(page) {
    await ask(page, 'Compare the prices of the berths');
    await page.getByText('I would take').waitFor();
    await ended(page);
  },
  async approval(page) {
    await ask(page, 'Which berths are free?');
    await page.getByText('The second is quieter.').waitFor();
    await ended(page);
    await ask(page, 'Cast off');
    await page.getByRole('button', { name: 'Not yet' }).waitFor();
  },
  async queue(page, openOther) {
    await ask(page, 'Read me the logbook');
    await page.getByText('Day 2.').waitFor();
    const other = await openOther();
    await other.getByText('Day 2.').waitFor();
    await ask(other, 'Which berths are free?');
    await page.getByText('Next').waitFor();
    await ask(page, 'Then cast off');
    await page.getByText('2nd in line').waitFor();
  },
};

/** The demo's third tab: a question, and what waits behind it. */
const sessionTab: Scene = async (page, openOther) => {
  await page.getByRole('tab', { name: /^Session/ }).click();
  await ask(page, 'Cast off');
  await page.getByRole('button', { name: 'Not yet' }).waitFor();
  await ask(await openOther(), 'Which berths are free?');
  await page.getByText('Next').waitFor();
  await ask(page, 'Read me the logbook');
  await page.getByText('2nd in line').waitFor();
};

async function ask(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox').fill(text);
  await page.keyboard.press('Enter');
}

async function ended(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Retry answer' }).waitFor({ state: 'attached' });
}

async function start(cwd: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, args, {
    cwd: join(ROOT, cwd),
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const piece of child.stdout.setEncoding('utf8')) {
    const [url] = /http:\/\/[\w.:]+/.exec(String(piece)) ?? [];
    if (url) return { url, stop: () => child.kill('SIGKILL') };
  }
  throw new Error(`${args.join(' ')} did not start.`);
}

type Picture = {
  scene: Scene;
  viewport: typeof DESK;
  colorScheme: 'light' | 'dark';
  /** Two people, by what stands behind the # of their addresses. */
  people: [string, string];
  path: string;
};

async function take(browser: Browser, url: string, picture: Picture): Promise<void> {
  const { scene, viewport, colorScheme, people, path } = picture;
  const look = { viewport, colorScheme, hasTouch: viewport === PHONE };
  const page = await (await browser.newContext(look)).newPage();
  await page.goto(`${url}/${people[0]}`);
  await scene(page, async () => {
    const other = await (await browser.newContext()).newPage();
    await other.goto(page.url() + people[1]);
    return other;
  });
  // What arrives fades in.
  await page.waitForTimeout(400);
  await page.screenshot({ path });
  for (const context of browser.contexts()) await context.close();
}

const serve = await start('packages/sabir', ['dist/cli/index.js', 'serve', ...SERVE_ARGS]);
const demo = await start('apps/demo', ['server/main.ts'], {
  PORT: '0',
  ENABLE_AI_SDK_ADAPTER: 'true',
});
const browser = await launchChromium();
const ofServe = { people: ['#token=one', '#token=two'] as [string, string] };
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    if (folder === undefined) {
      const scene = SCENES.conversation as Scene;
      const path = join(PICTURES, `serve-${colorScheme}.png`);
      await take(browser, serve.url, { ...ofServe, scene, viewport: DESK, colorScheme, path });
      await take(browser, demo.url, {
        ...{ scene: sessionTab, viewport: DESK, colorScheme, people: ['', ''] },
        path: join(PICTURES, `session-${colorScheme}.png`),
      });
      continue;
    }
    mkdirSync(folder, { recursive: true });
    for (const [name, scene] of Object.entries(SCENES)) {
      for (const viewport of [DESK, PHONE]) {
        const path = join(folder, `${name}-${viewport.width}-${colorScheme}.png`);
        await take(browser, serve.url, { ...ofServe, scene, viewport, colorScheme, path });
      }
    }
  }
} finally {
  await browser.close();
  serve.stop();
  demo.stop();
}
