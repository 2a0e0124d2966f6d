import { readFileSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  choosePlace,
  type DemoServer,
  expectWhole,
  HARBOUR,
  hasChromium,
  inBrowser,
  lastAnswer,
  launchBrowser,
  openTab,
  panel,
  send,
  startServer,
  visit,
  waitForAnswer,
} from './demo-harness.ts';

/** What `npm start` runs once everything is built: its own words, so that they stay true. */
function startCommand(): string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const [command, ...args] = scripts.start.split(' ');
  expect(command).toBe('node');
  return args;
}

describe.skipIf(!hasChromium)(`npm start, and a walk through all of it${inBrowser}`, () => {
  let server: DemoServer;
  let browser: Browser;
  beforeAll(async () => {
    const env = { ENABLE_AI_SDK_ADAPTER: undefined, SABIR_DEMO_SPEED: '4' };
    server = await startServer(env, startCommand());
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  test('every tab answers, asks and is answered, with nothing else installed [BAR-01]', async () => {
    expect((await server.health()).agent).toBe('scripted agent');
    const { page, complaints, close } = await visit(browser, server.url, {
      reducedMotion: 'reduce',
    });

    await choosePlace(page, 'Gateway');
    await send(page, HARBOUR);
    await waitForAnswer(page);
    await expectWhole(page);

    await openTab(page, 'useChatStream');
    await send(page, 'Cancel my berth in Marseille and refund it');
    await panel(page).getByRole('button', { name: 'Approve cancel_booking' }).click();
    await lastAnswer(page).getByText('Booking H-204 is cancelled').waitFor();
    await page.getByRole('button', { name: 'Send' }).waitFor();

    await openTab(page, 'Session');
    await send(page, 'Cast off');
    await panel(page).getByRole('button', { name: 'Cast off' }).click();
    await lastAnswer(page).getByText('Fair winds!').waitFor();

    // All of it is still there after a reload, in the tab that was in front.
    await page.reload();
    await lastAnswer(page).getByText('Fair winds!').waitFor();
    expect(await panel(page).locator('[data-role=user]').count()).toBe(1);
    expect(complaints).toEqual([]);
    await close();
  });
});
