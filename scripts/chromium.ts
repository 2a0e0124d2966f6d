/** Where a Chromium may be, and how tests start it. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

export function findChromium(): string | undefined {
  return [
    process.env.CHROMIUM_PATH,
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ].find((path) => path && existsSync(path));
}

/** Put behind a suite's title, so that a report without a browser says why. */
export const NO_CHROMIUM = ' (skipped: no Chromium found, set CHROMIUM_PATH)';

export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    // Runs as root in a container, and speaks to nobody but the page under test.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
