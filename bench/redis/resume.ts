/**
 * Somebody comes back to a long answer, at another process than the one that it is written in, which
 * has not seen it before: what they are sent, and how long it takes until they have all of it.
 */
import { atLeast, interleaveAsync, median, type Report, ratio, sized } from '../report.ts';
import { ANSWER_DELTAS, answerDeltas, type Cut } from './answer.ts';
import { ask, resume, type Server, startServer, type Watching, watch } from './processes.ts';

const ROUNDS = 7;
type Answer = { cut: Cut; part: string };

/** Parts are named as our own translators do, or as long as the ids of OpenAI's Responses API are. */
const ANSWERS: Record<string, Answer> = {
  'in letters': { cut: 'letters', part: 'text-1' },
  'in tokens': { cut: 'tokens', part: 'text-1' },
  'in tokens, long ids': { cut: 'tokens', part: `msg_${'0123456789ab'.repeat(4)}` },
};

/** What they are sent; and what whoever was there from the start was, chunk by chunk. */
type Resumed = { bytes: number; ms: number; liveBytes: number };

async function timed(text: string, begun: Watching, open: () => Watching): Promise<Resumed> {
  // All of it is there before anybody comes back.
  await begun.until(text.length);
  const start = performance.now();
  const watching = open();
  const ms = (await watching.until(text.length)) - start;
  if (watching.text !== text) throw new Error('it is not the answer');
  if (begun.deltas !== ANSWER_DELTAS) throw new Error('it did not come in its deltas');
  const { bytes } = watching;
  for (const one of [watching, begun]) one.leave();
  return { bytes, ms, liveBytes: begun.bytes };
}

async function compare(url: string, text: string, { cut, part }: Answer) {
  const servers = await Promise.all([
    ...['gateway-server', 'gateway-server', 'peer-server', 'peer-server'].map((name) =>
      startServer(name, url, part, cut),
    ),
  ]);
  const [first, second, peer, otherPeer] = servers as [Server, Server, Server, Server];
  let turns = 0;
  try {
    return await interleaveAsync(ROUNDS, {
      sabir: () => {
        const chat = `resumed-${cut}-${part}-${++turns}`;
        return timed(text, ask(first.port, chat, 'answer'), () => resume(second.port, chat));
      },
      peer: () => {
        const path = `/streams/${cut}-${part}-${++turns}`;
        return timed(text, watch(peer.port, path, {}), () => watch(otherPeer.port, path));
      },
    });
  } finally {
    for (const { child } of servers) child.kill();
  }
}

export async function measureResume(url: string): Promise<Pick<Report, 'bars' | 'figures'>> {
  const bars: Report['bars'] = [];
  const figures: Report['figures'] = {};
  for (const [name, answer] of Object.entries(ANSWERS).slice(0, sized(3, 1))) {
    const text = answerDeltas(answer.cut).join('');
    const found = await compare(url, text, answer);
    const all = (rounds: Resumed[], key: keyof Resumed) => rounds.map((round) => round[key]);
    const bytes = all(found.sabir, 'bytes');
    const title = `resume, ${name}`;
    const ofOwn = ratio(all(found.sabir, 'liveBytes'), bytes);
    const ofPeer = ratio(all(found.peer, 'bytes'), bytes);
    const times = ratio(all(found.peer, 'ms'), all(found.sabir, 'ms'));
    bars.push(atLeast(`${title}: times fewer bytes than chunk by chunk`, ofOwn, 20));
    figures[`${title}: the answer`] =
      `${ANSWER_DELTAS} deltas, ${Buffer.byteLength(text)} bytes of text; made, not recorded`;
    for (const [who, rounds] of Object.entries(found)) {
      const middle = (key: keyof Resumed) => median(all(rounds, key));
      figures[`${title}: ${who}`] =
        `${middle('bytes')} bytes (as it came: ${middle('liveBytes')}), ${middle('ms').toFixed(1)} ms until all is there`;
    }
    figures[`${title}: against the peer`] =
      `${ofPeer.toFixed(1)} times fewer bytes, though its frames have no ids to resume at; it takes ${times.toFixed(2)} times as long`;
  }
  return { bars, figures };
}
