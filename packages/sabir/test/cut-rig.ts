/** One gateway, its agents and the proxy in front of it, for any number of cases at once. */
import type { Chunk } from '../src/core/chunks.ts';
import { asUpstream, createChatGateway, memoryTurnLog } from '../src/gateway/index.ts';
import { serve } from '../src/platforms/node/serve.ts';
import { agentOpsUpstream } from '../src/sources/agent-ops/index.ts';
import type { LoggedChunk } from '../src/turns/log.ts';
import type { FinishedTurn } from '../src/turns/turn-options.ts';
import type { Script, Step } from './agent-ops-script.ts';
import { startAgentOpsServer } from './agent-ops-server.ts';
import {
  type Client,
  type Content,
  itemsOf,
  type Pacing,
  type PlannedCut,
  paced,
  toCut,
} from './cut-cases.ts';
import { type Cut, type Passage, startCuttingProxy } from './cutting-proxy.ts';

type MadeCut = { passage: Passage; cut: Cut };

/** One way from a client to the gateway. */
export type Viewer = {
  /** The value of its `x-viewer`. */
  name: string;
  cuts: MadeCut[];
  /** What the last response said it is of. */
  turnId: string;
  /** Settles when a response that will not be cut has begun. */
  isThrough: Promise<void>;
};

type Watch = Viewer & {
  content: Content;
  client: Client;
  isHeld: boolean;
  planned: Iterator<PlannedCut>;
  /** Of the response that comes next. */
  isCutting: boolean;
  through(): void;
};

type WatchOptions = Pick<Watch, 'content' | 'client' | 'isHeld'> & { cuts: PlannedCut[] };

/** A turn that is told to whoever asks in this session. */
export type Play = {
  content: Content;
  pacing: Pacing;
  hold?: { at: number; wait(): Promise<unknown> };
};

export type CutRig = Awaited<ReturnType<typeof startCutRig>>;

/** While a turn is held, a cut that waits for more than there is comes when all of that has come. */
const QUIET_MS = 15;

export async function startCutRig() {
  const plays = new Map<string, Play & { prompts: number }>();
  const watches = new Map<string, Watch>();
  const finished = new Map<string, PromiseWithResolvers<FinishedTurn>>();
  const log = memoryTurnLog();

  function finishedOf(turnId: string): PromiseWithResolvers<FinishedTurn> {
    const known = finished.get(turnId) ?? Promise.withResolvers<FinishedTurn>();
    finished.set(turnId, known);
    return known;
  }

  /** A session has one play; its id is the prompt. */
  function playOf(sessionId: string): Play {
    const play = plays.get(sessionId);
    if (!play) throw new Error(`Nobody plays in ${sessionId}.`);
    play.prompts += 1;
    // Whoever asks again has nobody to wait for.
    const { hold, ...rest } = play;
    return hold && play.prompts === 1 ? { ...rest, hold } : rest;
  }

  const generator = asUpstream(({ sessionId }) => {
    const { content, pacing, hold } = playOf(sessionId);
    return paced(itemsOf(content) as Chunk[], pacing, hold);
  });
  const script =
    (text: string): Script =>
    () => {
      const { content, pacing, hold } = playOf(text);
      return paced(itemsOf(content) as Step[], pacing, hold);
    };
  const agents = {
    snapshot: await startAgentOpsServer({ script, dialect: 'snapshot' }),
    v2: await startAgentOpsServer({ script, dialect: 'v2' }),
  };
  const upstreams = {
    generator,
    snapshot: agentOpsUpstream({ url: agents.snapshot.url }),
    v2: agentOpsUpstream({ url: agents.v2.url }),
  };
  const gateway = createChatGateway({
    upstream: (sessionId) => upstreams[plays.get(sessionId)?.content.via ?? 'generator'],
    log,
    authenticate: () => ({ id: 'u' }),
    access: () => 'owner',
    onFinish: (turn) => finishedOf(turn.turnId).resolve(turn),
    timing: { disconnectGraceMs: 60_000, lingerMs: 0, shutdownMs: 0 },
  });
  const server = await serve({ fetch: gateway.fetch, shutdownMs: 0 });
  const proxy = await startCuttingProxy({
    port: server.port,
    onRequest(passage) {
      const watch = watches.get(passage.viewer);
      if (!watch) return undefined;
      const { value } = watch.planned.next();
      watch.isCutting = value !== undefined;
      if (!value) return undefined;
      const cut = toCut(watch.content, watch.client, passage, value);
      return watch.isHeld ? { ...cut, quietMs: QUIET_MS } : cut;
    },
    onResponse({ viewer }, head) {
      const watch = watches.get(viewer);
      if (!watch) return;
      watch.turnId = /^x-sabir-turn: *(\S+)/im.exec(head)?.[1] ?? watch.turnId;
      if (!watch.isCutting) watch.through();
    },
    onCut: (passage, cut) => void watches.get(passage.viewer)?.cuts.push({ passage, cut }),
  });

  return {
    api: (sessionId: string) => `${proxy.url}/api/sessions/${sessionId}/chat`,
    play: (sessionId: string, play: Play) => void plays.set(sessionId, { ...play, prompts: 0 }),
    prompts: (sessionId: string) => plays.get(sessionId)?.prompts ?? 0,
    /** `isHeld`: the turn waits for the last cut. */
    watch(name: string, { content, client, cuts, isHeld }: WatchOptions): Viewer {
      const { promise: isThrough, resolve: through } = Promise.withResolvers<void>();
      const viewer: Viewer = { name, cuts: [], turnId: '', isThrough };
      const watch = { content, client, isHeld, planned: cuts.values(), isCutting: true, through };
      watches.set(name, Object.assign(viewer, watch));
      return viewer;
    },
    /** All of a turn, from the log itself, as soon as it has ended. */
    async read(turnId: string): Promise<LoggedChunk[]> {
      const chunks: LoggedChunk[] = [];
      const { signal } = new AbortController();
      for await (const batch of log.read(turnId, 0, signal)) chunks.push(...batch);
      return chunks;
    },
    /** All of a turn in one response, past the proxy: as it is sent to whoever was never cut off. */
    async readUncut(sessionId: string, turnId: string, headers: Record<string, string> = {}) {
      const url = `${server.url}/api/sessions/${sessionId}/chat/c/stream`;
      const response = await fetch(url, {
        headers: { ...headers, 'last-event-id': `${turnId}:0` },
      });
      return response.text();
    },
    /** What `onFinish` was given. */
    finished: (turnId: string) => finishedOf(turnId).promise,
    /** Nobody asks for it any more. */
    forget(sessionId: string, viewers: Viewer[]): void {
      plays.delete(sessionId);
      for (const { name } of viewers) watches.delete(name);
    },
    async close(): Promise<void> {
      await gateway.close();
      await proxy.close();
      await server.close();
      await Promise.all([agents.snapshot.close(), agents.v2.close()]);
    },
  };
}
