import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
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
export async function* agent({ text }) {
  yield { type: 'text-delta', delta: \`Answer \${++answers} to \${text}\` };
}
export const authenticate = () => ({ id: 'carl' });
export const access = () => 'owner';
`;

describe.each(CLIENTS)(
  'the code of docs/GATEWAY.md that keeps chats, with stock $name',
  ({ name }) => {
    it('shows what the page showed after a reload and a restart, a regenerate and an edit included', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'sabir-keep-chats-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const code = namedBlocks(PAGE).find((block) => block.name === 'keep-chats.ts')?.code ?? '';
      let starts = 0;

      async function start(): Promise<ChatGateway> {
        const app = join(folder, `${++starts}`);
        mkdirSync(app);
        writeFileSync(join(app, 'my-app.js'), MY_APP);
        const imports = code
          .replace("'sabir/gateway'", `'${GATEWAY}'`)
          .replace("'./my-app'", "'./my-app.js'")
          .replace(
            "process.env.CHATS_FILE ?? 'chats.db'",
            JSON.stringify(join(folder, 'chats.db')),
          );
        writeFileSync(join(app, 'keep-chats.ts'), imports);
        const { gateway } = await import(
          /* @vite-ignore */ `${pathToFileURL(join(app, 'keep-chats.ts'))}`
        );
        onTestFinished(() => gateway.close());
        return gateway;
      }

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
      const stored = async () => saysOf(await page.history());
      let last: string[] = [];
      await eventually(() => {
        void stored().then((texts) => {
          last = texts;
        });
        return last.join() === shown.join();
      }, 'onFinish');
      const reloaded = await openPage(name, await start());
      expect(reloaded.shown()).toEqual(shown);
      expect(reloaded.ids()).toEqual(page.ids());
      await reloaded.chat.regenerate({ messageId: reloaded.ids()[1] });
      expect(reloaded.shown()).toEqual(['one', 'Answer 1 to one']);
    });
  },
);
