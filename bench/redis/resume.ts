/**
 * Somebody comes back to a long answer, at another process than the one that it is written in, which
 * has not seen it before: what they are sent, and how long it takes until they have all of it.
 */
import { atLeast, interleaveAsync, median, type Report, ratio } from '../report.ts';
import { ANSWER_DELTAS, answerDeltas } from './answer.ts';
import { ask, resume, type Server, startServer, type Watching, watch } from './processes.ts';

const ROUNDS = 7;
/** As our own translators name a part, and as long as the ids of OpenAI's Responses API. */
const PARTS = { short: 'text-1', long: `msg_${'0123456789ab'.repeat(4)}` };

type Resumed = { bytes: number; ms: number };

const ANSWER = answerDeltas().join('');

async function timed(begun: Watching, open: () => Watching): Promise<Resumed> {
  // All of it is there before anybody comes back.
  await begun.until(ANSWER.length);
  const start = performance.now();
  const watching = open();
  const ms = (await watching.until(ANSWER.length)) - start;
  if (watching.text !== ANSWER) throw new Error('it is not the answer');
  const { bytes } = watching;
  for (const one of [watching, begun]) one.leave();
  return { bytes, ms };
}

async function compare(url: string, part: string) {
  const servers = await Promise.all([
    ...['gateway-server', 'gateway-server', 'peer-server', 'peer-server'].map((name) =>
      startServer(name, url, part),
    ),
  ]);
  const [first, second, peer, otherPeer] = servers as [Server, Server, Server, Server];
  let turns = 0;
  try {
    return await interleaveAsync(ROUNDS, {
      sabir: () => {
        const chat = `resumed-${part}-${++turns}`;
        return timed(ask(first.port, chat, 'answer'), () => resume(second.port, chat));
      },
      peer: () => {
        const path = `/streams/${part}-${++turns}`;
        return timed(watch(peer.port, path, {}), () => watch(otherPeer.port, path));
      },
    });
  } finally {
    for (const { child } of servers) child.kill();
  }
}

export async function measureResume(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const bars: Report['bars'] = [];
  const figures: Report['figures'] = {};
  for (const [name, part] of Object.entries(PARTS)) {
    const found = await compare(url, part);
    const of = (key: keyof Resumed) =>
      [found.peer.map((round) => round[key]), found.sabir.map((round) => round[key])] as const;
    const title = `resume, ${name} ids`;
    bars.push(atLeast(`${title}: times fewer bytes`, ratio(...of('bytes')), 20));
    for (const [who, rounds] of Object.entries(found)) {
      const middle = (key: keyof Resumed) => median(rounds.map((round) => round[key]));
      figures[`${title}: ${who}`] =
        `${middle('bytes')} bytes, ${middle('ms').toFixed(1)} ms until all is there`;
    }
    figures[`${title}: time`] = `the peer takes ${ratio(...of('ms')).toFixed(2)} times as long`;
  }
  figures['resume: the answer itself'] =
    `${ANSWER_DELTAS} deltas, ${Buffer.byteLength(ANSWER)} bytes of text; made, not recorded`;
  return { bars, figures };
}
