/**
 * What a stranger gets: packs the tarballs, installs them into an empty project, compiles the code of
 * the README and the guides there, runs the README's ten lines in a DOM, and has `create-sabir` make an
 * application that is built and answers.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkDev } from './check-dev.ts';
import { namedBlocks } from './named-blocks.ts';
import { ROOT } from './run-command.ts';

const project = mkdtempSync(join(tmpdir(), 'sabir-pack-'));

function must(command: string, args: string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed\n${stdout}\n${stderr}`);
  return stdout;
}

/** The versions that the demo page uses, so that they are pinned in one place. */
function versionOf(name: string): string {
  const all = ['', 'apps/demo/', 'packages/sabir/'].map((folder) => {
    const file = readFileSync(join(ROOT, `${folder}package.json`), 'utf8');
    const { dependencies, devDependencies } = JSON.parse(file);
    return { ...devDependencies, ...dependencies };
  });
  const version = all.find((one) => name in one)?.[name];
  if (!version) throw new Error(`No version of ${name} is pinned.`);
  return `${name}@${version}`;
}

const toPage = (name: string) => `docs/${name}.md`;

const RUN = `
import { JSDOM } from 'jsdom';
const { window } = new JSDOM('<main></main>', { pretendToBeVisual: true });
Object.assign(globalThis, { window, document: window.document, FormData: window.FormData });
const { createRoot } = await import('react-dom/client');
const { createElement } = await import('react');
const { Chat } = await import('./built/chat.js');
const main = window.document.querySelector('main');
createRoot(main).render(createElement(Chat));
const until = async (what, test) => {
  for (let n = 0; n < 200 && !test(); n++) await new Promise((done) => setTimeout(done, 25));
  if (!test()) throw new Error(what + ' never came:\\n' + main.innerHTML);
};
await until('the form', () => main.querySelector('input'));
main.querySelector('input').value = 'ahoy';
main.querySelector('form').requestSubmit();
await until('the answer', () => main.textContent.includes('You said: ahoy'));
console.log(main.innerHTML);
process.exit(0);
`;

/** As much of React Native and Expo as the guide's snippet uses: the packages themselves are not installed. */
const NATIVE_MODULES = `
declare module 'expo/fetch' { export function fetch(url: string, init?: object): Promise<object>; }
declare module 'expo-crypto' { export function getRandomValues<T>(array: T): T; }
declare module 'react-native' {
  export const AppState: {
    addEventListener(type: 'change', listener: (state: string) => void): { remove(): void };
  };
  export function Text(props: { children: string }): import('react').ReactElement;
}
`;

function pack(folder: string): string {
  const args = ['pack', '--json', '--pack-destination', project];
  const [{ filename }] = JSON.parse(must('npm', args, join(ROOT, folder)));
  return filename;
}

/** What `npm create sabir` makes: it compiles, its page is built, its server shows the page and answers. */
async function createOnce(): Promise<void> {
  const bin = (name: string) => join(project, 'node_modules/.bin', name);
  // A folder of the project: what it needs is installed already.
  must(process.execPath, [bin('create-sabir'), 'made'], project);
  const made = join(project, 'made');
  must(bin('tsc'), ['-p', '.'], made);
  must(process.execPath, [bin('vite'), 'build', '--logLevel', 'error'], made);
  const env = { ...process.env, PORT: '0' };
  const server = spawn(process.execPath, ['server.ts'], { cwd: made, env });
  let url: string | undefined;
  for await (const piece of server.stdout.setEncoding('utf8')) {
    [url] = /http:\/\/\S+/.exec(piece) ?? [];
    if (url) break;
  }
  const page = await (await fetch(`${url}/`)).text();
  const [script] = /\/assets\/[\w.-]+\.js/.exec(page) ?? [];
  if (!script || !(await fetch(url + script)).ok) throw new Error('create-sabir made no page.');
  const answer = await fetch(`${url}/api/sessions/s/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'two words' }] }),
  });
  const said = await answer.text();
  if (!said.includes('"words":2')) throw new Error(`create-sabir's agent says\n${said}`);
  server.kill();
  const [code] = await once(server, 'exit');
  if (code !== 0) throw new Error(`The server that create-sabir made ended with ${code}.`);
  await checkDev(made);
}

/** The command, as it is installed: it comes up, has its page, and ends when it is told to. */
async function serveOnce(): Promise<void> {
  const { bin } = JSON.parse(
    readFileSync(join(project, 'node_modules/sabir/package.json'), 'utf8'),
  );
  const command = join(project, 'node_modules/sabir', bin.sabir);
  const child = spawn(process.execPath, [command, 'serve', '--port', '0'], { cwd: project });
  let output = '';
  for await (const piece of child.stdout.setEncoding('utf8')) {
    output += piece;
    if (output.includes('curl')) break;
  }
  const [page = ''] = /http:\/\/\S+\//.exec(output) ?? [];
  const scripts = (await (await fetch(page)).text()).match(/[\w./-]+\.js/g) ?? [];
  for (const script of scripts) {
    const { status } = await fetch(new URL(script, page));
    if (status !== 200) throw new Error(`The page of the command lacks ${script}: ${status}`);
  }
  if (scripts.length === 0) throw new Error(`The command has no page:\n${output}`);
  child.kill();
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`The command ended with ${code}.`);
}

try {
  const filename = pack('packages/sabir');
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  must(
    'npm',
    [
      'install',
      '--no-audit',
      '--no-fund',
      `./${filename}`,
      `./${pack('packages/create-sabir')}`,
      ...['ai', '@ai-sdk/react', 'react', 'react-dom', 'typescript', 'vite'].map(versionOf),
      ...['@types/node', '@types/react', '@types/react-dom'].map(versionOf),
      ...['@openai/agents', '@ag-ui/client', 'zod', 'redis'].map(versionOf),
      'jsdom@27.0.1',
    ],
    project,
  );
  mkdirSync(join(project, 'app'));
  const guides = [
    ...['GETTING-STARTED', 'OPEN-HARNESS', 'OPENAI-AGENTS', 'CHAT-STREAM', 'SESSIONS', 'AGENTS'],
    ...['DEPLOYING', 'AG-UI'],
  ];
  const pages = ['README.md', ...guides.map(toPage)];
  const blocks = pages.flatMap((page) => namedBlocks(readFileSync(join(ROOT, page), 'utf8')));
  for (const { name, code } of blocks) writeFileSync(join(project, 'app', name), code);
  writeFileSync(join(project, 'app', 'native-modules.d.ts'), NATIVE_MODULES);
  writeFileSync(
    join(project, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        target: 'ES2022',
        module: 'ESNext',
        moduleResolution: 'bundler',
        jsx: 'react-jsx',
        strict: true,
        skipLibCheck: true,
        lib: ['ES2022', 'DOM', 'DOM.Iterable'],
        types: ['node'],
        outDir: 'built',
        rootDir: 'app',
      },
      include: ['app'],
    }),
  );
  must(join(project, 'node_modules/.bin/tsc'), ['-p', '.'], project);
  // Node asks for the extension that bundlers do not.
  const chat = join(project, 'built/chat.js');
  writeFileSync(chat, readFileSync(chat, 'utf8').replaceAll(/from '(\.\/\w+)'/g, "from '$1.js'"));
  writeFileSync(join(project, 'run.js'), RUN);
  // This Node, not the first one on the path: the machine's own may be older than the package allows.
  const html = must(process.execPath, ['run.js'], project);
  await serveOnce();
  await createOnce();
  console.log(
    `${blocks.length} pieces of documentation compile from ${filename}; the ten lines say:`,
  );
  console.log(html.trim());
} finally {
  rmSync(project, { recursive: true, force: true });
}
