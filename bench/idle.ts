/**
 * What a gateway holds while nothing happens: viewers of turns that say nothing, and turns that run; and
 * whether it holds anything when they are gone. The gateway is a process of its own, this is its clients.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type Ask, closeAll, openMany } from './idle/connections.ts';
import { atMost, type Report, sized } from './report.ts';

// 10,000 connections in all, as many as the default limits allow: 3,000 who asked, and 7,000 who watch.
const VIEWERS = sized(7_000, 100);
/** The viewers watch so many of the turns. */
const WATCHED = sized(200, 4);
const TURNS = sized(2_800, 30);
/** Crowds before the one that is measured. */
const EARLIER = sized(['first', 'second'], ['first']);
/** As many users as it takes to stay below the limits of each. */
const PER_USER = 5;

type Memory = { heapUsed: number; rss: number };
type Server = { child: ChildProcess; port: number };

async function start(): Promise<Server> {
  const script = fileURLToPath(new URL('./idle/server.ts', import.meta.url));
  const child = fork(script, {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

/** What the server holds, its garbage collected. */
async function tell({ child }: Server, what: 'memory' | 'end'): Promise<Memory> {
  const answer = once(child, 'message');
  child.send(what);
  return (await answer)[0];
}

const userOf = (i: number) => `user-${Math.floor(i / PER_USER)}`;

function asking(round: string, count: number): Ask[] {
  return Array.from({ length: count }, (_, i) => ({
    method: 'POST',
    path: `/api/sessions/s${i}/chat`,
    user: userOf(i),
    body: {
      id: `${round}-${i}`,
      messages: [{ id: `${round}-${i}-m`, role: 'user', parts: [{ type: 'text', text: 'go' }] }],
      trigger: 'submit-message',
    },
  }));
}

function watching(round: string, count: number): Ask[] {
  return Array.from({ length: count }, (_, i) => {
    const turn = i % WATCHED;
    const path = `/api/sessions/s${turn}/chat/${round}-${turn}/stream`;
    return { method: 'GET', path, user: userOf(i) };
  });
}

/** So many come, and go; and what the server holds at each step. */
async function crowd(server: Server, round: string) {
  const watched = await openMany(server.port, asking(round, WATCHED));
  const before = await tell(server, 'memory');
  const viewers = await openMany(server.port, watching(round, VIEWERS));
  const withViewers = await tell(server, 'memory');
  const turns = await openMany(server.port, asking(`${round}-live`, TURNS));
  const withTurns = await tell(server, 'memory');
  await tell(server, 'end');
  await closeAll([...watched, ...viewers, ...turns]);
  const after = await tell(server, 'memory');
  return { before, withViewers, withTurns, after };
}

const megabytes = ({ heapUsed, rss }: Memory) =>
  `heap ${(heapUsed / 2 ** 20).toFixed(1)} MB, resident ${(rss / 2 ** 20).toFixed(1)} MB`;

const each = (less: Memory, more: Memory, count: number) =>
  `heap ${((more.heapUsed - less.heapUsed) / count / 1024).toFixed(1)} KB, ` +
  `resident ${((more.rss - less.rss) / count / 1024).toFixed(1)} KB`;

export async function bench(): Promise<Report> {
  const server = await start();
  try {
    const cold = await tell(server, 'memory');
    // V8 keeps what it has compiled, and the system's allocator most of what it once had.
    let begin = cold;
    for (const round of EARLIER) begin = (await crowd(server, round)).after;
    const { before, withViewers, withTurns, after } = await crowd(server, 'last');
    return {
      name: 'idle',
      bars: [
        atMost('heap afterwards, times the start', after.heapUsed / begin.heapUsed, 1.1),
        atMost('resident afterwards, times the start', after.rss / begin.rss, 1.1),
      ],
      figures: {
        machine: `${cpus().length} cores, ${cpus()[0]?.model}; garbage collected before each figure`,
        'before anybody came': megabytes(cold),
        [`start: after ${EARLIER.length} such crowds`]: megabytes(begin),
        [`with ${VIEWERS} idle viewers`]: megabytes(withViewers),
        'each idle viewer': each(before, withViewers, VIEWERS),
        [`and ${WATCHED + TURNS} live turns`]: megabytes(withTurns),
        'each live turn, with its asker': each(withViewers, withTurns, TURNS),
        'when all of them have gone': megabytes(after),
      },
    };
  } finally {
    server.child.kill();
  }
}
