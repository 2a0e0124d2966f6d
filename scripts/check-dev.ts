/** `npm run dev` of an application that `create-sabir` made: its page is served, and a prompt on it is answered. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { findChromium, launchChromium, NO_CHROMIUM } from './chromium.ts';

const WAIT_MS = 10_000;
const AGENT_START = '({ text, signal }) {';
const AGENT_EXTRA = `
  console.log('prompt:', text);
  if (text === 'fail') throw new Error('wrong key');`;

async function until(subject: string, test: () => unknown): Promise<void> {
  const end = Date.now() + WAIT_MS;
  while (!test()) {
    if (Date.now() > end) throw new Error(`npm run dev: no ${subject}`);
    await setTimeout(25);
  }
}

async function prompt(url: string, content: string): Promise<string> {
  const response = await fetch(`${url}api/sessions/${content.length}/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content }] }),
  });
  return response.text();
}

/** @param made The application's folder, its packages installed. */
export async function checkDev(made: string): Promise<void> {
  const agent = join(made, 'agent.ts');
  writeFileSync(
    agent,
    readFileSync(agent, 'utf8').replace(AGENT_START, `${AGENT_START}${AGENT_EXTRA}`),
  );
  const dev = spawn(process.execPath, ['dev.ts'], {
    cwd: made,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  let output = '';
  for (const stream of [dev.stdout, dev.stderr]) {
    stream.setEncoding('utf8').on('data', (piece) => {
      output += piece;
    });
  }
  const addressOf = () => /http:\/\/localhost:\d+\//.exec(output)?.[0];
  try {
    await until('address', () => addressOf() ?? dev.exitCode !== null);
    await checkAnswers(addressOf() ?? '', () => output);
  } catch (error) {
    throw new Error(`npm run dev failed:\n${output}`, { cause: error });
  } finally {
    await end(dev);
  }
}

async function checkAnswers(url: string, output: () => string): Promise<void> {
  // At once: Vite has to start behind the server.
  const history = await fetch(`${url}api/sessions/s/messages`);
  if (!history.ok) throw new Error(`The history of a new chat has status ${history.status}.`);
  const answer = await prompt(url, 'two words');
  if (!answer.includes('"words":2')) throw new Error(`The agent says\n${answer}`);
  await until("line of the agent's console.log", () => output().includes('prompt: two words'));
  const failure = await prompt(url, 'fail');
  if (!failure.includes('The agent failed.') || failure.includes('wrong key')) {
    throw new Error(`An agent that throws shows\n${failure}`);
  }
  await until("line of the agent's error", () => output().includes('wrong key'));
  await checkPage(url);
}

async function checkPage(url: string): Promise<void> {
  if (!findChromium()) return console.log(`The page of npm run dev${NO_CHROMIUM}`);
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByLabel('Message').fill('one two three');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('That is 3 words.').waitFor({ timeout: WAIT_MS });
    await page.route('**/messages', (route) => route.fulfill({ status: 502 }));
    await page.reload();
    await page.getByText('The history could not be loaded.').waitFor({ timeout: WAIT_MS });
  } finally {
    await browser.close();
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill();
  await once(child, 'exit');
}
