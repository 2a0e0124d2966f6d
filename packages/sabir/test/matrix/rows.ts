/** The rows of the matrix: what a person does, and what must be on the screen then. */
import type { Page } from 'playwright-core';
import { FIRST_HALF, WHOLE } from './agent.ts';
import { click, edit, sees, seesInAnyOrder, seesSoFar, send, setVisible } from './screen.ts';

type Cell = {
  page: Page;
  /** Another tab of the same person on the same chat. */
  openTab(): Promise<Page>;
  /** Lets the slow answer go on. */
  release(): void;
  /** Cuts every connection of the page. */
  cut(): void;
  setOffline(isOffline: boolean): Promise<void>;
  /** A client without approvals shows a denied tool as one that failed. */
  hasApprovals: boolean;
};

export type Row = {
  name: string;
  /** For the report. */
  description: string;
  run(cell: Cell): Promise<void>;
  /** What a reload shows after a cell that cannot be right. */
  afterReload?: readonly string[];
};

const SLOW_SO_FAR = ['user: slow', `assistant: ${FIRST_HALF}`];
const SLOW = ['user: slow', `assistant: ${WHOLE}`];
const PAID = ['user: pay', 'assistant: [pay Completed {"paid":3}] Paid.'];

const TWO_QUICK = [...SLOW, 'user: two', 'assistant: Answer 1 to two.'];
const THREE = [...TWO_QUICK, 'user: three', 'assistant: Answer 2 to three.'];

/** assistant-ui does not send in mid-answer: the text stays where the person typed it. */
async function isInComposer(page: Page): Promise<boolean> {
  return (await page.locator('[name=message]').inputValue()) !== '';
}

async function sendHeld(page: Page): Promise<void> {
  await sees(page, SLOW);
  await page.locator('[name=message]').press('Enter');
}

async function beginSlow({ page }: Cell): Promise<void> {
  await send(page, 'slow');
  await seesSoFar(page, SLOW_SO_FAR);
}

/** The question is on the screen, with its buttons. */
async function isAsked(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor({ timeout: 10_000 });
}

export const ROWS = [
  {
    name: 'chat',
    description: 'two prompts, two answers',
    async run({ page }) {
      await send(page, 'one');
      await sees(page, ['user: one', 'assistant: Answer 1 to one.']);
      await send(page, 'two');
      await sees(page, [
        'user: one',
        'assistant: Answer 1 to one.',
        'user: two',
        'assistant: Answer 2 to two.',
      ]);
    },
  },
  {
    name: 'tool',
    description: 'a tool with its result, between two texts',
    async run({ page }) {
      await send(page, 'tool');
      const answer = 'Let me look. [search Completed {"hits":3}] That is all.';
      await sees(page, ['user: tool', `assistant: ${answer}`]);
    },
  },
  {
    name: 'failed tool',
    description: 'a tool that fails; the answer goes on',
    async run({ page }) {
      await send(page, 'broken tool');
      const answer = /^assistant: Let me look\. \[read Error .*File not found.*\] That is all\.$/;
      await sees(page, ['user: broken tool', answer]);
    },
  },
  {
    name: 'reload',
    description: 'the page is reloaded in mid-answer',
    async run(cell) {
      await beginSlow(cell);
      await cell.page.reload();
      await seesSoFar(cell.page, SLOW_SO_FAR);
      cell.release();
      await sees(cell.page, SLOW);
    },
  },
  {
    name: 'second tab',
    description: 'another tab is opened in mid-answer',
    async run(cell) {
      await beginSlow(cell);
      const other = await cell.openTab();
      await seesSoFar(other, SLOW_SO_FAR);
      cell.release();
      await sees(other, SLOW);
      await sees(cell.page, SLOW);
    },
  },
  {
    name: 'idle tab',
    description: 'a prompt in one tab; the other, which is open and idle, shows it and its answer',
    async run({ page, openTab }) {
      const other = await openTab();
      await send(page, 'one');
      await sees(page, ['user: one', 'assistant: Answer 1 to one.']);
      await sees(other, ['user: one', 'assistant: Answer 1 to one.'], 4_000);
    },
    afterReload: ['user: one', 'assistant: Answer 1 to one.'],
  },
  {
    name: 'stop',
    description: 'Stop in mid-answer, then another prompt, then a reload',
    async run(cell) {
      const { page } = cell;
      await beginSlow(cell);
      await click(page, 'Stop');
      await sees(page, SLOW_SO_FAR);
      await send(page, 'one');
      const all = [...SLOW_SO_FAR, 'user: one', 'assistant: Answer 1 to one.'];
      await sees(page, all);
      await page.reload();
      await sees(page, all);
    },
  },
  {
    name: 'stop then regenerate',
    description: 'Stop in mid-answer, which only disconnects, then Regenerate, then a reload',
    async run({ page }) {
      await page.goto(`${page.url()}&stop=stock`);
      await page.waitForSelector('main');
      await send(page, 'slow first');
      const half = ['user: slow first', `assistant: ${FIRST_HALF}`];
      await seesSoFar(page, half);
      await click(page, 'Stop');
      await sees(page, half);
      await click(page, 'Regenerate');
      const again = ['user: slow first', 'assistant: Answer 1 to slow first.'];
      await sees(page, again);
      await page.reload();
      await sees(page, again);
    },
  },
  {
    name: 'drop',
    description: 'the connection is cut in mid-answer, and the person does nothing',
    async run(cell) {
      await beginSlow(cell);
      cell.cut();
      cell.release();
      await sees(cell.page, SLOW, 6_000);
    },
    afterReload: SLOW,
  },
  {
    name: 'visible again',
    description: 'the connection is cut while the page is hidden; the person comes back',
    async run(cell) {
      const { page } = cell;
      await beginSlow(cell);
      await setVisible(page, false);
      cell.cut();
      // A stock client that shows its error after the person has come back does not try again; ours show none.
      await page
        .getByRole('alert')
        .waitFor({ timeout: 5_000 })
        .catch(() => undefined);
      await setVisible(page, true);
      await seesSoFar(page, SLOW_SO_FAR);
      cell.release();
      await sees(page, SLOW, 6_000);
    },
    afterReload: SLOW,
  },
  {
    name: 'offline then online',
    description: 'the network is away in mid-answer, and returns; the person does nothing',
    async run(cell) {
      await beginSlow(cell);
      await cell.setOffline(true);
      cell.cut();
      await cell.page.waitForTimeout(300);
      await cell.setOffline(false);
      cell.release();
      await sees(cell.page, SLOW, 6_000);
    },
    afterReload: SLOW,
  },
  {
    name: 'two quick sends',
    description: 'a second prompt in mid-answer; both are answered, also after a reload',
    async run(cell) {
      const { page } = cell;
      await beginSlow(cell);
      await send(page, 'two');
      const isHeld = await isInComposer(page);
      if (!isHeld) await seesSoFar(page, [...SLOW_SO_FAR, 'user: two']);
      cell.release();
      if (isHeld) await sendHeld(page);
      await sees(page, TWO_QUICK);
      await page.reload();
      await sees(page, TWO_QUICK);
    },
    afterReload: TWO_QUICK,
  },
  {
    name: 'reload while one waits',
    description: 'a second prompt in mid-answer, and a reload before its turn',
    async run(cell) {
      const { page } = cell;
      await beginSlow(cell);
      await send(page, 'two');
      const isHeld = await isInComposer(page);
      if (!isHeld) {
        await seesSoFar(page, [...SLOW_SO_FAR, 'user: two']);
        await page.reload();
        await seesSoFar(page, [...SLOW_SO_FAR, 'user: two']);
      }
      cell.release();
      if (isHeld) await sendHeld(page);
      await sees(page, TWO_QUICK);
    },
    afterReload: TWO_QUICK,
  },
  {
    name: 'two waiting',
    description:
      'two more prompts in mid-answer, and a reload before their turns; all three are answered',
    async run(cell) {
      const { page } = cell;
      await beginSlow(cell);
      await send(page, 'two');
      const isHeld = await isInComposer(page);
      if (!isHeld) {
        await send(page, 'three');
        await seesSoFar(page, [...SLOW_SO_FAR, 'user: two', 'user: three']);
        await page.reload();
        await page.waitForSelector('main');
      }
      cell.release();
      if (isHeld) {
        await sendHeld(page);
        await sees(page, TWO_QUICK);
        await send(page, 'three');
      }
      await seesInAnyOrder(page, THREE);
      await page.reload();
      await sees(page, THREE);
    },
    afterReload: THREE,
  },
  {
    name: 'approve',
    description: 'a tool asks, the person approves',
    async run({ page }) {
      await send(page, 'pay');
      await isAsked(page);
      await click(page, 'Approve');
      await sees(page, PAID);
      await page.reload();
      await sees(page, PAID);
    },
  },
  {
    name: 'deny',
    description: 'a tool asks, the person denies',
    async run({ page, hasApprovals }) {
      await send(page, 'pay');
      await isAsked(page);
      await click(page, 'Deny');
      const state = hasApprovals ? 'Denied' : 'Error';
      await sees(page, ['user: pay', new RegExp(`^assistant: \\[pay ${state}.*\\] Not paid\\.$`)]);
    },
  },
  {
    name: 'approve after reload',
    description: 'a tool asks, the page is reloaded, the person approves',
    async run({ page }) {
      await send(page, 'pay');
      await isAsked(page);
      await page.reload();
      await isAsked(page);
      await click(page, 'Approve');
      await sees(page, PAID);
    },
  },
  {
    name: 'regenerate then reload',
    description: 'another answer takes the place of the last one, also after a reload',
    async run({ page }) {
      await send(page, 'one');
      await sees(page, ['user: one', 'assistant: Answer 1 to one.']);
      await click(page, 'Regenerate');
      await sees(page, ['user: one', 'assistant: Answer 2 to one.']);
      await page.reload();
      await sees(page, ['user: one', 'assistant: Answer 2 to one.']);
    },
  },
  {
    name: 'edit then reload',
    description: 'an edited prompt takes the place of the first, also after a reload',
    async run({ page }) {
      await send(page, 'one');
      await sees(page, ['user: one', 'assistant: Answer 1 to one.']);
      await edit(page, 'uno');
      await sees(page, ['user: uno', 'assistant: Answer 2 to uno.']);
      await page.reload();
      await sees(page, ['user: uno', 'assistant: Answer 2 to uno.']);
    },
  },
] as const satisfies readonly Row[];

export type RowName = (typeof ROWS)[number]['name'];
