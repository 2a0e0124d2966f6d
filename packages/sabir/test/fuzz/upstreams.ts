/** The gateway's side of a socket to Agent Ops, or to a session server: a real one, on which the server sends anything at all. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket, WebSocketServer } from 'ws';
import type { Chunk } from '../../src/core/chunks.ts';
import { SabirError } from '../../src/core/errors.ts';
import type { TurnOutcome } from '../../src/core/outcome.ts';
import { sessionServerUpstream } from '../../src/sessions/index.ts';
import { agentOpsUpstream } from '../../src/sources/agent-ops/index.ts';
import type { Prompt, Upstream, UpstreamSession, UpstreamTurn } from '../../src/turns/upstream.ts';
import { agentOpsEvents, linkEvents } from './corpus.ts';
import { toFrameBytes } from './mutate-bytes.ts';
import { mutateSequence, mutateValue } from './mutate-json.ts';
import type { Random } from './random.ts';
import { checkTurn, type Played, type Target, withinTime } from './target.ts';

const LINKED = {
  type: 'init',
  protocol: { name: 'sabir-session', version: 1 },
  maxMessageBytes: 1_000_000,
  channels: [{ channelType: 'web', channelId: 'default' }],
};
const PLAIN = { type: 'init', session: { id: 's', messages: [] }, data: { runnerBusy: false } };

type Script = { random: Random; init: unknown; frames: unknown[]; hurt: number };

function promptOf(random: Random): Prompt {
  return {
    sessionId: 's',
    chatId: 'c',
    chatKey: 'k',
    turnId: 'p',
    messageId: 'm',
    user: { id: 'ann' },
    text: 'Hello',
    attachments: [],
    messages: [],
    body: {},
    ...(random.chance(0.3) && { channel: { channelType: 'web', channelId: 'default' } }),
  };
}

/** Plays its frames to whoever prompts, and hangs up. */
function playTo(socket: WebSocket, script: Script): void {
  const { random, init, frames } = script;
  socket.on('error', () => undefined);
  socket.send(toFrameBytes(init, { ...random, chance: () => false }).bytes, { binary: false });
  socket.once('message', () => {
    while (frames.length > 0) {
      const { bytes, isHurt } = toFrameBytes(frames.shift(), random);
      if (isHurt) script.hurt++;
      socket.send(bytes, { binary: random.chance(0.02) });
      // The connection drops in the middle of it; the turns of a session server are taken up again.
      if (random.chance(0.01)) break;
    }
    if (random.chance(0.5)) socket.close();
    else setImmediate(() => socket.terminate());
  });
}

async function converse(session: UpstreamSession, random: Random): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  const over = Promise.withResolvers<TurnOutcome | undefined>();
  const turn: UpstreamTurn = session.prompt(promptOf(random), {
    event(event) {
      chunks.push(...turn.translator.push(event));
      if (turn.translator.ended) over.resolve(undefined);
    },
    close: over.resolve,
  });
  if (random.chance(0.1)) turn.stop();
  if (random.chance(0.1)) turn.answer({ type: 'answer', questionId: 'q', answer: 'Yes' });
  const outcome = await withinTime(over.promise, 'a turn whose server is gone');
  chunks.push(...turn.translator.end(outcome));
  turn.release();
  return chunks;
}

type Served = {
  name: string;
  init: object;
  corpus(): { sequences: unknown[][]; words: string[] };
  upstream(url: string, random: Random): Upstream;
};

function upstreamTarget({ name, init, corpus, upstream }: Served): Target {
  let server: WebSocketServer | undefined;
  let script: Script | undefined;
  async function addressOf(): Promise<string> {
    if (!server) {
      server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
      server.on('connection', (socket) => {
        if (script) playTo(socket, script);
      });
      await once(server, 'listening');
    }
    return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  return {
    name,
    weight: 0.1,
    async play(random): Promise<Played> {
      const { sequences, words } = corpus();
      const given = random.pick(sequences);
      const other = random.pick(sequences);
      const { frames, malformed } = mutateSequence(given, other, { random, words });
      const total = frames.length;
      const isOddInit = random.chance(0.1);
      const said = isOddInit ? mutateValue(init, { random, words: ['init'] }) : init;
      // Without an init a connection waits for one, and waiting finds nothing.
      const named = { ...(Object(said) as object), type: 'init' };
      script = { random, init: named, frames, hurt: 0 };
      const opened = upstream(await addressOf(), random);
      const { signal } = new AbortController();
      let chunks: Chunk[] = [];
      let refused = 0;
      try {
        const session = await opened.open({
          sessionId: 's',
          user: { id: 'ann' },
          role: 'owner',
          signal,
        });
        chunks = await converse(session, random);
        session.channels?.();
        session.close();
      } catch (error) {
        if (!(error instanceof SabirError)) throw error;
        refused++;
      }
      if (chunks.length > 0) checkTurn(chunks, random);
      const all = malformed + script.hurt;
      return { malformed: all, sound: Math.max(0, total - all), refused, out: chunks.length };
    },
    async close() {
      for (const client of server?.clients ?? []) client.terminate();
      server?.close();
      server = undefined;
      await wait(30);
    },
  };
}

const stepsOf = () => {
  const { sequences, words } = agentOpsEvents();
  return { sequences: sequences.map(({ steps }) => steps), words };
};

export const UPSTREAMS: Target[] = [
  upstreamTarget({
    name: 'agent-ops socket',
    init: PLAIN,
    corpus: stepsOf,
    upstream: (url, random) =>
      agentOpsUpstream({
        url,
        WebSocket,
        settleMs: 20,
        approvals: random.chance(0.5),
        dialect: random.pick(['auto', 'v2', 'snapshot']),
      }),
  }),
  upstreamTarget({
    name: 'session server socket',
    init: LINKED,
    corpus: linkEvents,
    upstream: (url) => sessionServerUpstream({ url, WebSocket, returnMs: 20, giveUpMs: 20 }),
  }),
];
