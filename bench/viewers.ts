/**
 * One turn and a thousand people who watch it: what each of them costs the gateway, and how late
 * they see a delta. Beside it the pipe of `ai` 7, which has to be run once for each viewer.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { atMost, type Report, sized } from './report.ts';
import { openCrowd } from './viewers/crowd.ts';

const VIEWERS = sized(1_000, 20);
const PER_SECOND = 200;
const SECONDS = sized(10, 0.5);
const SAMPLE_EVERY = 20;

type Mark = { cpuMs: number; rss: number; heapUsed: number };
type Result = {
  cpu: number;
  p50: number;
  p99: number;
  idleRss: number;
  idleHeap: number;
  liveRss: number;
  incomplete: number;
};

async function told<T>(child: ChildProcess, say?: string): Promise<T> {
  const answer = once(child, 'message');
  if (say) child.send(say);
  return (await answer)[0];
}

async function watchAll(name: 'sabir-server' | 'ai-server'): Promise<Result> {
  const file = fileURLToPath(new URL(`./viewers/${name}.ts`, import.meta.url));
  const child = fork(file, [String(PER_SECOND), String(SECONDS)], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  try {
    const { port } = await told<{ port: number }>(child);
    if (name === 'sabir-server') await ask(port);
    const path = '/api/sessions/s/chat/c/stream';
    const before = await told<Mark>(child, 'collect');
    const crowd = await openCrowd({ port, path }, { size: VIEWERS, sampleEvery: SAMPLE_EVERY });
    await crowd.connected;
    const idle = await told<Mark>(child, 'collect');
    await told<Mark>(child, 'mark');
    const start = performance.now();
    const began = await told<Mark>(child, 'mark');
    child.send('go');
    await setTimeout(SECONDS * 1000);
    const seconds = (performance.now() - start) / 1000;
    const live = await told<Mark>(child, 'mark');
    child.send('end');
    await crowd.ended;
    const { latencies, frames, texts } = crowd;
    latencies.sort((a, b) => a - b);
    const at = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
    const whole = texts[0]?.split(' ').length === PER_SECOND * SECONDS + 1;
    const isSame = whole && texts.every((text) => text === texts[0]);
    const least = PER_SECOND * SECONDS + 2;
    return {
      cpu: (live.cpuMs - began.cpuMs) / seconds / 1000,
      p50: at(0.5),
      p99: at(0.99),
      idleRss: (idle.rss - before.rss) / VIEWERS / 1024,
      idleHeap: (idle.heapUsed - before.heapUsed) / VIEWERS / 1024,
      liveRss: (live.rss - before.rss) / VIEWERS / 1024,
      incomplete: frames.filter((count) => count < least).length + (isSame ? 0 : VIEWERS),
    };
  } finally {
    child.kill();
  }
}

/** Begins the turn, and leaves it running. */
async function ask(port: number): Promise<void> {
  const text = JSON.stringify({
    id: 'c',
    messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'go' }] }],
    trigger: 'submit-message',
  });
  const headers = { 'content-type': 'application/json', 'x-sabir-detach': '1' };
  const sent = request(
    { host: '127.0.0.1', port, path: '/api/sessions/s/chat', method: 'POST', headers },
    (response) => response.resume(),
  );
  sent.end(text);
  await once(sent, 'response');
}

const describe = ({ cpu, p50, p99, idleRss, idleHeap, liveRss, incomplete }: Result) =>
  `${(cpu * 100).toFixed(0)} % of a core; p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)} ms; a viewer: ` +
  `${liveRss.toFixed(0)} KB resident live, ${idleRss.toFixed(0)} KB idle (heap ${idleHeap.toFixed(1)} KB); ` +
  `${incomplete} without all of it`;

export async function bench(): Promise<Report> {
  const ours = await watchAll('sabir-server');
  const peer = await watchAll('ai-server');
  const name = `${VIEWERS} viewers x ${PER_SECOND}/s`;
  return {
    name: 'viewers',
    bars: [
      atMost(`${name}: of one core`, ours.cpu, 0.6),
      atMost(`${name}: p99 ms`, ours.p99, 60),
      atMost(`${name}: KB resident a live viewer`, ours.liveRss, 100),
      atMost(`${name}: without all of it`, ours.incomplete, 0),
    ],
    figures: {
      machine: `${SECONDS} s on one turn; server and crowd in a process each`,
      gateway: describe(ours),
      'ai 7 pipe, one a viewer': describe(peer),
    },
  };
}
