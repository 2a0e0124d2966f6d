import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { namedBlocks } from '../../../scripts/named-blocks.ts';
import { createClient } from './real-clients.ts';

const PAGE = readFileSync(new URL('../../../docs/GATEWAY.md', import.meta.url), 'utf8');
const PACKAGES: Record<string, string> = {
  'sabir/gateway': new URL('../src/gateway/index.ts', import.meta.url).href,
  'sabir/node': new URL('../src/platforms/node/serve.ts', import.meta.url).href,
  ai: import.meta.resolve('ai-v7'),
};

it('the WebSocket server and transport of docs/GATEWAY.md work as they stand there', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-docs-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const code = namedBlocks(PAGE)
    .filter(({ name }) => name.startsWith('websocket-'))
    .map((block) =>
      block.code.replaceAll(/from '([^']+)'/g, (_, name) => `from '${PACKAGES[name]}'`),
    )
    .join('\n');
  const file = join(folder, 'websocket.mjs');
  writeFileSync(file, `${code}\nexport { gateway, server, transport };\n`);
  const { gateway, server, transport } = await import(/* @vite-ignore */ file);
  onTestFinished(async () => {
    transport.close();
    await gateway.close();
    await server.close();
  });
  const { chat, result } = await createClient('ai@7', transport);
  await chat.sendMessage({ text: 'ahoy' });
  expect(JSON.stringify(result().message?.parts)).toContain('You said ahoy');
});
