/** Looks at a turn that is over: what everybody has of it, what was stored, and who is to blame. */
import type { Chunk } from '../../src/core/chunks.ts';
import { foldChunks } from '../../src/core/fold.ts';
import type { UIMessage } from '../../src/core/message.ts';
import { createSseDecoder } from '../../src/core/sse.ts';
import {
  differenceFrom,
  differenceFromBeginning,
  disagreement,
  replicaDifference,
} from './oracle.ts';
import {
  add,
  type ChaosReport,
  causesOf,
  countViewers,
  type Failure,
  LISTED_CAUSES,
} from './report.ts';
import { truthOf } from './script.ts';
import type { ChaosTurn } from './turn.ts';
import { outcomeOf, pause, type Seen } from './viewer.ts';

type Where = {
  url: string;
  signal: AbortSignal;
  /** What the log of the session has of a turn, and what the log of the gateways has: undefined where it is not kept. */
  readSession(turnId: string): Promise<Chunk[] | undefined>;
  readReplica(turnId: string): Promise<Chunk[] | undefined>;
};

const READ_TRIES = 50;
/** A stop that was taken is heeded within this time, also by a gateway that takes the turn over. */
const STOP_MS = 8_000;
/** Or in this, if nobody could: a Redis that is killed again and again keeps everybody waiting. */
const LATE_STOP_MS = 30_000;

export async function judge(
  turn: ChaosTurn,
  seen: Seen[],
  report: ChaosReport,
  where: Where,
): Promise<Failure | undefined> {
  const wrongs = [...turn.wrongs];
  const truth = truthOf(turn.script, turn.answer);
  const told = seen.filter(({ from }) => from === 'stream');
  const turnId = [...turn.turnIds].at(-1) ?? turn.finishes[0]?.turnId;
  const kept = turnId === undefined ? undefined : await readLog(turn, turnId, where);
  const final = kept ?? told[0]?.message;
  if (!kept) wrongs.push('the log could not be read');
  const outcome = outcomeOf(final) ?? 'nothing';

  const disagreeing = disagreement([
    ...told,
    ...(kept ? [{ name: 'the log', message: kept }] : []),
    ...turn.finishes
      .filter((finish) => finish.turnId === turnId)
      .map(({ message }) => ({ name: 'onFinish', message })),
  ]);
  if (disagreeing) wrongs.push(disagreeing);
  const isFinished = outcome === 'finished';
  const compare = isFinished ? differenceFrom : differenceFromBeginning;
  let isIdentical = isFinished && !disagreeing;
  for (const { name, message } of [
    ...seen,
    ...(kept ? [{ name: 'the log', message: kept }] : []),
  ]) {
    const difference = compare(truth, message);
    if (!difference) continue;
    isIdentical = false;
    wrongs.push(`${name}: ${difference}`);
  }
  const replica = turnId === undefined ? undefined : await compareLogs(turnId, isFinished, where);
  if (replica?.difference) {
    isIdentical = false;
    wrongs.push(`the replica: ${replica.difference}`);
  }
  if (seen.length < turn.plan.viewers.length) isIdentical = false;
  wrongs.push(...repetitions(turn));
  if (turn.finishes.length === 0 && !/killed/.test(causesOf(turn))) {
    wrongs.push('onFinish never ran, and no process was killed');
  }
  wrongs.push(...brokenPromises(turn));
  if (outcome === 'stopped' && !turn.isStopAsked) wrongs.push('stopped, and nobody asked for it');
  if (outcome === 'lost' && !LISTED_CAUSES.has(causesOf(turn))) {
    wrongs.push(`lost by ${causesOf(turn)}, which is no listed cause`);
  }

  report.turns++;
  if (replica) report.replicas++;
  add(report.outcomes, labelOf(turn, final, outcome));
  countViewers(report, seen);
  report.finishes[turn.finishes.length > 0 ? 'once' : 'never']++;
  if (outcome !== 'stopped') report.unstopped++;
  if (isIdentical) report.identical++;
  return wrongs.length > 0
    ? { turn: turn.plan.turn, reasons: wrongs, story: turn.story }
    : undefined;
}

/**
 * A prompt is answered by one turn, which is told of once. Only who sends again what was stopped
 * means it: with a stock client, which does not repeat itself, that is somebody at the page.
 */
function repetitions(turn: ChaosTurn): string[] {
  const { prompts, turnIds, finishes, isStopAsked, plan } = turn;
  const ended = new Set([...turnIds, ...finishes.map(({ turnId }) => turnId)]);
  const mayRepeat = isStopAsked && plan.viewers[0]?.kind === 'stock';
  const most = mayRepeat ? Math.max(1, ended.size) : 1;
  const wrongs: string[] = [];
  const least = isStopAsked ? 0 : 1;
  if (prompts < least || prompts > most) wrongs.push(`the agent was asked ${prompts} times`);
  if (ended.size > 1 && !mayRepeat) wrongs.push(`there were ${ended.size} turns`);
  if (new Set(finishes.map(({ turnId }) => turnId)).size < finishes.length) {
    turn.isTwiceKnown = true;
    wrongs.push(`onFinish ran ${finishes.length} times`);
  }
  return wrongs;
}

/** What was taken is heeded, whichever gateway took it and whatever became of that one. */
function brokenPromises(turn: ChaosTurn): string[] {
  const { answersTaken, answer, stoppedAt, isSaid, saidAt, isAborted } = turn;
  const [taken, ...others] = answersTaken;
  const wrongs: string[] = [];
  if (others.length > 0) wrongs.push('two answers to one question were taken');
  else if (taken !== undefined && answer !== undefined && answer !== taken) {
    wrongs.push(`the answer ${taken} was taken, and the agent heard ${String(answer)}`);
  }
  const most = isAborted ? LATE_STOP_MS : STOP_MS;
  if (stoppedAt !== undefined && isSaid && saidAt - stoppedAt > most) {
    wrongs.push(`the agent went on for ${saidAt - stoppedAt} ms after a stop was taken`);
  }
  return wrongs;
}

function labelOf(turn: ChaosTurn, final: UIMessage | undefined, outcome: string): string {
  if (outcome === 'finished' || outcome === 'stopped') return outcome;
  const { code } = (final?.metadata ?? {}) as { code?: unknown };
  return `${outcome}${code === undefined ? '' : ` (${String(code)})`}: ${causesOf(turn)}`;
}

/** Nothing to compare where a turn never reached its session, or a log has forgotten it. */
async function compareLogs(
  turnId: string,
  isFinished: boolean,
  { readSession, readReplica }: Where,
): Promise<{ difference: string | undefined } | undefined> {
  const session = await readSession(turnId);
  const replica = await readReplica(turnId);
  return session && replica && { difference: replicaDifference(session, replica, !isFinished) };
}

/** All of it, from its first chunk, through any gateway. */
async function readLog(
  { sessionId, chatId, plan }: ChaosTurn,
  turnId: string,
  { url, signal }: Pick<Where, 'url' | 'signal'>,
): Promise<UIMessage | undefined> {
  for (let i = 0; i < READ_TRIES && !signal.aborted; i++) {
    try {
      const response = await fetch(`${url}/api/sessions/${sessionId}/chat/${chatId}/stream`, {
        headers: {
          connection: 'close',
          'x-viewer': `${plan.turn}.log`,
          'x-sabir-ai-sdk': '7',
          'last-event-id': `${turnId}:0`,
        },
        signal: AbortSignal.timeout(5_000),
      });
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (response.status === 200) {
        const message = foldChunks(chunksOf(bytes));
        if (outcomeOf(message)) return message;
      } else if (response.status === 204) return undefined;
    } catch {
      // The gateway was killed under it, for one: there are others.
    }
    await pause(100, signal);
  }
  return undefined;
}

function chunksOf(bytes: Uint8Array): Chunk[] {
  const chunks: Chunk[] = [];
  const decoder = createSseDecoder({
    frame: ({ data }) => {
      if (data && data !== '[DONE]') chunks.push(JSON.parse(data));
    },
    bytes: () => undefined,
  });
  decoder.push(bytes);
  return chunks;
}
