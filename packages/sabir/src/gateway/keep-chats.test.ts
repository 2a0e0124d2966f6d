import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { namedBlocks } from '../../../../scripts/named-blocks.ts';
import { eventually } from '../../test/gateway-client.ts';
import { CLIENTS, openPage, saysOf } from '../../test/stock-pages.ts';
import type { ChatGateway } from './index.ts';

const ROOT = new URL('../../../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/GATEWAY.md', ROOT), 'utf8');
const GATEWAY = new URL('packages/sabir/src/gateway/index.ts', ROOT);

/** What the page leaves to the application. */
const MY_APP = `
let answers = 0;
export async function* agent({ text, signal }) {
  yield { type: 'text-delta', delta: \`Answer \${++answers} to \${text}\` };
  if (text === 'slow' && answers === 1) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
}
export const authenticate = ({ headers }) => ({
  id: headers.get('authorization').replace('Bearer ', ''),
});
export const access = () => 'collaborator';
`;

/** The code of the page, each `start` of it in a process of its own as far as it can tell. */
function startApp() {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-keep-chats-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const code = namedBlocks(PAGE).find((block) => block.name === 'keep-chats.ts')?.code ?? '';
  let starts = 0;
  return async (): Promise<ChatGateway> => {
    const app = join(folder, `${++starts}`);
    mkdirSync(app);
    writeFileSync(join(app, 'my-app.js'), MY_APP);
    const imports = code
      .replace("'sabir/gateway'", `'${GATEWAY}'`)
      .replace("'./my-app'", "'./my-app.js'")
      .replace("process.env.CHATS_FILE ?? 'chats.db'", JSON.stringify(join(folder, 'chats.db')));
    writeFileSync(join(app, 'keep-chats.ts'), imports);
    const { gateway } = await import(
      /* @vite-ignore */ `${pathToFileURL(join(app, 'keep-chats.ts'))}`
    );
    onTestFinished(() => gateway.close());
    return gateway;
  };
}

describe.each(CLIENTS)(
  'the code of docs/GATEWAY.md that keeps chats, with stock $name',
  (client) => {
    const { name } = client;

    function expectStored({ history }: Awaited<ReturnType<typeof openPage>>, texts: string[]) {
      return vi.waitFor(async () => expect(saysOf(await history())).toEqual(texts));
    }

    it('shows what the page showed after a reload and a restart, a regenerate and an edit included', async () => {
      const start = startApp();
      const gateway = await start();
      const page = await openPage(name, gateway);
      for (const text of ['one', 'two', 'three']) await page.chat.sendMessage({ text });
      await page.chat.regenerate();
      expect(page.shown().slice(4)).toEqual(['three', 'Answer 4 to three']);
      const [, , second] = page.ids();
      await page.chat.sendMessage({ text: 'deux', messageId: second } as { text: string });
      await page.chat.regenerate();
      const shown = ['one', 'Answer 1 to one', 'deux', 'Answer 6 to deux'];
      expect(page.shown()).toEqual(shown);
      await expectStored(page, shown);
      const reloaded = await openPage(name, await start());
      expect(reloaded.shown()).toEqual(shown);
      expect(reloaded.ids()).toEqual(page.ids());
      await reloaded.chat.regenerate({ messageId: reloaded.ids()[1] });
      expect(reloaded.shown()).toEqual(['one', 'Answer 1 to one']);
    });

    it('keeps the new answer after a stop that only disconnects and a regenerate', async () => {
      const page = await openPage(name, await startApp()());
      const sent = page.chat.sendMessage({ text: 'slow' });
      await eventually(() => page.shown()[1] === 'Answer 1 to slow', 'the answer');
      await page.chat.stop();
      await sent;
      await page.chat.regenerate();
      expect(page.shown()).toEqual(['slow', 'Answer 2 to slow']);
      await expectStored(page, page.shown());
    });

    it('keeps what other people wrote, whatever a stale tab regenerates or edits', async () => {
      const gateway = await startApp()();
      const page = await openPage(name, gateway);
      await page.chat.sendMessage({ text: 'one' });
      const other = await openPage(name, gateway, { as: 'cora' });
      await other.chat.sendMessage({ text: 'two' });
      const shown = ['one', 'Answer 1 to one', 'two', 'Answer 2 to two'];
      await expectStored(other, shown);
      const [mine, , hers] = other.ids();
      const edited = (messageId: string | undefined) => ({ text: 'forged', messageId });
      await page.chat.regenerate();
      await page.chat.sendMessage(edited(mine) as { text: string });
      const stale = await openPage(name, gateway);
      await stale.chat.sendMessage(edited(hers) as { text: string });
      await other.chat.regenerate({ messageId: mine });
      await other.chat.sendMessage({ text: 'three' });
      await expectStored(other, [...shown, 'three', 'Answer 7 to three']);
    });
  },
);
