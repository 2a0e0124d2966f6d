/** Both hooks in a real browser, on an answer of 10,000 deltas from a server at a high pace. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Browser } from 'playwright-core';
import { findChromium, launchChromium } from '../../scripts/chromium.ts';
import { interleaveAsync, median, sized } from '../report.ts';
import { lengthOf, textTurn } from './turns.ts';
import { contractFrames, plainFrames, type Reads } from './wire.ts';

const ROUNDS = 3;
const DELTAS = sized(10_000, 200);
/** The fastest models there are. */
const PER_SECOND = 2_000;

/** What the page's own script counts. */
export type PageCount = {
  renders: number;
  longTasks: number;
  longTaskMs: number;
  /** Characters on the screen at the end. */
  shown: number;
};
type Run = PageCount & { taskMs: number; scriptMs: number };

async function buildPage(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`./${name}.ts`, import.meta.url))],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  });
  return outputFiles[0]?.text ?? '';
}

/** Every frame is a write of its own, when its time has come by the clock. */
function stream(response: ServerResponse, frames: Reads): void {
  response.socket?.setNoDelay(true);
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-sabir-turn': 'turn-1',
  });
  const begin = performance.now();
  let next = 0;
  const tick = () => {
    const due = Math.ceil(((performance.now() - begin) / 1000) * PER_SECOND);
    for (; next < Math.min(due, frames.length); next++) response.write(frames[next]);
    if (next < frames.length && !response.destroyed) setTimeout(tick, 1);
    else response.end();
  };
  tick();
}

async function startServer() {
  const chunks = textTurn(DELTAS);
  const [ours, theirs] = [contractFrames(chunks), plainFrames(chunks)];
  const scripts = new Map([
    ['/page-sabir.js', await buildPage('page-sabir')],
    ['/page-ai.js', await buildPage('page-ai')],
  ]);
  const server = createServer((request, response) => {
    request.resume();
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const script = scripts.get(pathname);
    if (request.method === 'POST') stream(response, pathname === '/contract' ? ours : theirs);
    else if (script) response.setHeader('content-type', 'text/javascript').end(script);
    else {
      const page = searchParams.get('page') ?? '';
      response
        .setHeader('content-type', 'text/html')
        .end(
          `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/${page}.js"></script>`,
        );
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server,
    length: lengthOf(chunks),
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  };
}

/** One page, one answer: what the page counted, and what the browser's main thread did meanwhile. */
async function run(browser: Browser, url: string, length: number): Promise<Run> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    await devtools.send('Performance.enable');
    const durations = async () => {
      const { metrics } = await devtools.send('Performance.getMetrics');
      const seconds = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? 0;
      return { task: seconds('TaskDuration') * 1000, script: seconds('ScriptDuration') * 1000 };
    };
    await page.goto(url);
    await page.waitForFunction(() => 'ask' in window);
    const before = await durations();
    const counted = await page.evaluate<PageCount>('window.ask()');
    const after = await durations();
    if (counted.shown < length) throw new Error(`${url}: ${counted.shown} of ${length} are shown`);
    return {
      ...counted,
      taskMs: after.task - before.task,
      scriptMs: after.script - before.script,
    };
  } finally {
    await context.close();
  }
}

export async function measureBrowser() {
  const label = `in Chromium, ${DELTAS / 1000} k deltas`;
  if (!findChromium()) {
    return { figures: { [label]: 'skipped: no Chromium found, set CHROMIUM_PATH' }, bars: [] };
  }
  const { server, origin, length } = await startServer();
  const browser = await launchChromium();
  try {
    const runs = await interleaveAsync(
      ROUNDS,
      {
        useChatStream: () => run(browser, `${origin}/?page=page-sabir`, length),
        'useChat 7': () => run(browser, `${origin}/?page=page-ai`, length),
        'useChat 7, 16 ms': () => run(browser, `${origin}/?page=page-ai&throttle=16`, length),
      },
      0,
    );
    const figures = Object.entries(runs).map(([name, found]) => {
      const of = (key: keyof Run) => Math.round(median(found.map((one) => one[key])));
      return [
        `${label}: ${name}`,
        `${of('renders')} renders; main thread ${of('taskMs')} ms, of it script ${of('scriptMs')}; ${of('longTasks')} long tasks, ${of('longTaskMs')} ms`,
      ];
    });
    return {
      figures: {
        [`${label}: pace`]: `${PER_SECOND} a second, ${ROUNDS} rounds, Chromium ${browser.version()}`,
        ...Object.fromEntries(figures),
      },
      bars: [],
    };
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}
