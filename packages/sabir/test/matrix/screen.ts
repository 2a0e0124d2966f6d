/** What a person sees and does on a page of the matrix. */
import type { Page } from 'playwright-core';

const PATIENCE_MS = 10_000;
/** A screen that is right must stay so for this long: a replay may still double it. */
const SETTLE_MS = 300;

export type Screen = {
  /** `user: hello`, `assistant: [search Completed {"hits":3}] There are three.` */
  lines: string[];
  isBusy: boolean;
  alert: string | undefined;
};

export function readScreen(page: Page): Promise<Screen> {
  return page.evaluate(() => {
    const textOf = (element: Element) => element.textContent?.replaceAll(/\s+/g, ' ').trim();
    const lines = [...document.querySelectorAll('article[data-role]')].map((article) => {
      const parts = [...article.querySelectorAll('[data-text], [data-tool]')].map((part) => {
        if (part.hasAttribute('data-text')) return textOf(part);
        const label = part.querySelector('[data-label]')?.textContent;
        const output = part.querySelector('code')?.textContent;
        return `[${[part.getAttribute('data-tool'), label, output].filter(Boolean).join(' ')}]`;
      });
      return `${article.getAttribute('data-role')}: ${parts.filter(Boolean).join(' ')}`.trim();
    });
    const alert = document.querySelector('[role=alert]');
    return {
      lines,
      isBusy: document.querySelector('[role=status]') !== null,
      alert: alert ? textOf(alert) : undefined,
    };
  });
}

async function until(
  page: Page,
  what: string,
  isRight: (screen: Screen) => boolean,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const screen = await readScreen(page);
    if (isRight(screen)) return;
    if (Date.now() > giveUpAt) {
      throw new Error(`Expected ${what}; on the screen: ${JSON.stringify(screen)}`);
    }
    await page.waitForTimeout(40);
  }
}

/** A line of the screen, or what its end must look like. */
export type Line = string | RegExp;

function matches({ lines }: Screen, expected: readonly Line[]): boolean {
  if (lines.length !== expected.length) return false;
  return expected.every((line, i) =>
    typeof line === 'string' ? lines[i] === line.trim() : line.test(lines[i] as string),
  );
}

/** The whole screen, idle and without an error, and it stays so. */
export async function sees(page: Page, lines: readonly Line[], patienceMs?: number): Promise<void> {
  const isRight = (screen: Screen) => !screen.isBusy && !screen.alert && matches(screen, lines);
  await until(page, lines.join(' | '), isRight, patienceMs);
  await page.waitForTimeout(SETTLE_MS);
  await until(page, `to stay: ${lines.join(' | ')}`, isRight, 0);
}

/** The same lines, in any order. */
export async function seesInAnyOrder(page: Page, lines: readonly string[]): Promise<void> {
  const sorted = lines.toSorted();
  await until(page, `in any order: ${lines.join(' | ')}`, ({ lines: shown, ...screen }) => {
    const isIdle = !screen.isBusy && !screen.alert;
    return isIdle && matches({ ...screen, lines: shown.toSorted() }, sorted);
  });
}

/** The screen while an answer is coming. One that waits its turn may have an empty bubble already. */
export function seesSoFar(page: Page, lines: readonly Line[]): Promise<void> {
  return until(page, `so far: ${lines.join(' | ')}`, (screen) => {
    const said = screen.lines.filter((line) => line !== 'assistant:');
    return matches({ ...screen, lines: said }, lines);
  });
}

export async function send(page: Page, text: string): Promise<void> {
  const input = page.locator('[name=message]');
  await input.fill(text);
  await input.press('Enter');
}

export async function click(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).last().click({ timeout: PATIENCE_MS });
}

export async function edit(page: Page, text: string): Promise<void> {
  await click(page, 'Edit');
  const input = page.locator('[name=edit]');
  await input.fill(text);
  await input.press('Enter');
}

/** As if the person went to another tab, and came back. */
export async function setVisible(page: Page, isVisible: boolean): Promise<void> {
  await page.evaluate(
    (state) => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
      Object.defineProperty(document, 'hidden', { value: state === 'hidden', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    },
    isVisible ? 'visible' : 'hidden',
  );
}
