/**
 * What a hook puts into a page, React left out: everything it needs, bundled, minified, gzipped.
 * Ours against `useChat` and its transport, of the releases that are installed. As Vite bundles it,
 * which is with rolldown, and with esbuild.
 */
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { rolldown } from 'rolldown';
import { atMost, type Report } from './report.ts';

const here = createRequire(import.meta.url);
const BENCH = import.meta.dirname;

const EXTERNAL = ['react', 'react-dom'];
const gzippedBytes = (code: Uint8Array | string) => gzipSync(code, { level: 9 }).length;

type Bundle = {
  minifiedBytes: number;
  gzippedBytes: number;
  esbuildGzippedBytes: number;
  inputs: Metafile['outputs'][string]['inputs'];
};

/** What these lines bring along, as a folder's own imports are resolved. */
async function bundle(contents: string, resolveDir: string): Promise<Bundle> {
  const entry = join(resolveDir, 'entry.js');
  const made = await rolldown({
    input: entry,
    external: EXTERNAL,
    platform: 'browser',
    transform: { target: 'es2022', define: { 'process.env.NODE_ENV': '"production"' } },
    logLevel: 'silent',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === entry ? entry : undefined),
        load: (id) => (id === entry ? contents : undefined),
      },
    ],
  });
  const { output } = await made.generate({ format: 'esm', minify: true, codeSplitting: false });
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir },
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    external: EXTERNAL,
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  });
  return {
    minifiedBytes: output[0].code.length,
    gzippedBytes: gzippedBytes(output[0].code),
    esbuildGzippedBytes: gzippedBytes(outputFiles[0]?.contents ?? ''),
    inputs: Object.values(metafile.outputs)[0]?.inputs ?? {},
  };
}

/** With the very `ai` that this `@ai-sdk/react` depends on: a second copy would count twice. */
function bundlePeer(name: string): Promise<Bundle> {
  return bundle(
    `export { useChat } from '${name}'; export { DefaultChatTransport } from 'ai';`,
    dirname(here.resolve(`${name}/package.json`)),
  );
}

function versions(name: string): string {
  const manifest = here.resolve(`${name}/package.json`);
  const { version } = here(manifest);
  const { version: ai } = createRequire(manifest)('ai/package.json');
  return `@ai-sdk/react ${version} with ai ${ai}`;
}

const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(2)} KB`;
const told = (made: Bundle) =>
  `${kilobytes(made.gzippedBytes)} min+gz, ${kilobytes(made.minifiedBytes)} min; by esbuild ${kilobytes(made.esbuildGzippedBytes)} min+gz`;

/** Minified bytes of every module of ours, by esbuild, the largest first. Gzip knows no modules. */
function breakdown({ inputs }: Bundle): Record<string, string> {
  const root = dirname(here.resolve('sabir/package.json'));
  return Object.fromEntries(
    Object.entries(inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .toSorted(([, a], [, b]) => b.bytesInOutput - a.bytesInOutput)
      .map(([file, { bytesInOutput }]) => [
        `  ${relative(root, file).replace(/^.*dist\//, '')}`,
        `${bytesInOutput} B min`,
      ]),
  );
}

export async function bench(): Promise<Report> {
  const hook = await bundle(`export { useChatStream } from 'sabir/react';`, BENCH);
  const core = await bundle(`export { ChatStream } from 'sabir/client';`, BENCH);
  const seven = await bundlePeer('ai-sdk-react-v7');
  const six = await bundlePeer('ai-sdk-react-v6');
  return {
    name: 'size',
    bars: [atMost('sabir/react without React, KB min+gz', hook.gzippedBytes / 1000, 5)],
    figures: {
      peers: `${versions('ai-sdk-react-v7')}; ${versions('ai-sdk-react-v6')}`,
      'useChat 7 and its transport': told(seven),
      'useChat 6 and its transport': told(six),
      'ChatStream, without a framework': told(core),
      'sabir/react: useChatStream': told(hook),
      ...breakdown(hook),
    },
  };
}
