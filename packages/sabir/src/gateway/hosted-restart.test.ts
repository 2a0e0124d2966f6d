import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatBody, eventually, openSse } from '../../test/gateway-client.ts';
import { queueOf, startHosted } from '../../test/hosted-gateway.ts';
import { sqliteSessionStore } from '../platforms/node/sqlite-sessions.ts';

const CRM = 'channelType=crm&channelId=1';

function makeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-restart-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'sessions.db');
}

const start = (file: string) => startHosted({ sessions: { store: sqliteSessionStore({ file }) } });
type Process = ReturnType<typeof start>;

/** The gateway has said that the prompt waits. */
async function postToWait(
  { user }: Process,
  name: string,
  body: Record<string, unknown>,
  query = '',
) {
  const sse = openSse(await user(name).post(body, { query }));
  await sse.until(() => queueOf(sse.chunks()).length);
}

async function answer({ agent, finished }: Process, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const run = await agent.run(index);
    run.text(`Answer ${index}.`);
    run.end();
  }
  await eventually(() => finished.length >= count, 'onFinish');
}

describe('onFinish after a restart, for prompts that an earlier process accepted', () => {
  it('runs once for each turn that waited, as if there had been no restart', async () => {
    const file = makeFile();
    const first = start(file);
    const one = openSse(await first.carl.post(chatBody('one')));
    (await first.agent.run()).end();
    await one.ended;
    openSse(await first.carl.post(chatBody('crm'), { query: CRM }));
    await first.agent.run(1);
    await postToWait(first, 'olga', chatBody('two', { id: 'c2' }));
    await postToWait(first, 'carl', chatBody('three'), CRM);
    await first.close();
    expect(first.finished.map(({ outcome }) => outcome.status)).toEqual(['finished', 'failed']);

    const second = start(file);
    await answer(second, 2);
    const same = { outcome: { status: 'finished' }, sessionId: 's1', trigger: 'submit-message' };
    const text = (id: string, text: string) => ({ id, parts: [{ type: 'text', text }] });
    expect(second.finished).toMatchObject([
      {
        ...same,
        chatId: 'c2',
        user: { id: 'olga' },
        userMessage: text('u-two', 'two'),
        message: { role: 'assistant', parts: [{ text: 'Answer 0.' }] },
      },
      { ...same, chatId: 'c1', user: { id: 'carl' }, userMessage: text('u-three', 'three') },
    ]);
    expect(second.finished.map((turn) => Object.keys(turn).sort())).toEqual(
      second.finished.map(() => Object.keys(first.finished[0] ?? {}).sort()),
    );
    const next = openSse(await second.carl.post(chatBody('four')));
    (await second.agent.run(2)).end();
    await next.ended;
    await eventually(() => second.finished.length === 3, 'onFinish');
    await second.close();

    const third = start(file);
    await third.session.settle({ channelType: 'web', channelId: 'default' });
    expect(third.finished).toEqual([]);
  });

  it('says what a regenerate replaces that waited', async () => {
    const file = makeFile();
    const first = start(file);
    const one = openSse(await first.carl.post(chatBody('one')));
    (await first.agent.run()).end();
    await one.ended;
    const replaces = first.session.storage.messages().at(-1)?.id;
    openSse(await first.carl.post(chatBody('crm'), { query: CRM }));
    await first.agent.run(1);
    const again = chatBody('one', { trigger: 'regenerate-message', messageId: replaces });
    await postToWait(first, 'carl', again);
    await first.close();
    const second = start(file);
    await answer(second, 1);
    const asked = { trigger: 'regenerate-message', replaces, userMessage: { id: 'u-one' } };
    expect(second.finished).toMatchObject([asked]);
  });

  it('runs once for the turn that a crash interrupted, with what it had said', async () => {
    const file = makeFile();
    const first = start(file);
    const sse = openSse(await first.carl.post(chatBody('one')));
    (await first.agent.run()).text('Half ');
    await sse.until(() => sse.text());
    const crashed = makeFile();
    for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, `${crashed}${end}`);
    const second = start(crashed);
    await eventually(() => second.finished.length, 'onFinish');
    expect(second.finished).toMatchObject([
      {
        outcome: { status: 'failed', code: 'server-restarted' },
        userMessage: { id: 'u-one' },
        message: { parts: [{ type: 'text', text: 'Half ' }] },
      },
    ]);
  });

  it.each([
    ['ends it', false, 'failed'],
    ['waits for its end', true, 'finished'],
  ])('runs before the next process has closed, which %s', async (_, isEnding, status) => {
    const file = makeFile();
    const first = start(file);
    openSse(await first.carl.post(chatBody('one')));
    await first.agent.run();
    await postToWait(first, 'carl', chatBody('two'));
    await first.close();

    const stored: string[] = [];
    const second = startHosted({
      sessions: { store: sqliteSessionStore({ file }) },
      gateway: {
        async onFinish({ outcome }) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          stored.push(outcome.status);
        },
      },
    });
    const run = await second.agent.run();
    const closing = Promise.all([
      second.gateway.close(),
      second.sessions.close(isEnding ? 5_000 : 0),
    ]);
    if (isEnding) run.end();
    await closing;
    expect(stored).toEqual([status]);
  });

  it('does not run for a prompt that no gateway of this process asked', async () => {
    const file = makeFile();
    const first = start(file);
    const member = { user: { id: 'ann' }, role: 'owner' } as const;
    openSse(await first.carl.post(chatBody('one')));
    await first.agent.run();
    first.session.prompt({ text: 'two', bytes: 3 }, member);
    await postToWait(first, 'carl', chatBody('three'));
    await first.close();
    const second = start(file);
    for (const index of [0, 1]) (await second.agent.run(index)).end();
    await eventually(() => second.finished.length, 'onFinish');
    expect(second.finished).toMatchObject([{ userMessage: { id: 'u-three' } }]);
  });
});
