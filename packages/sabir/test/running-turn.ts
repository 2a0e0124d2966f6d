/** One turn, run against a log and an agent that the test drives. */
import { vi } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import type { TurnLog, TurnWriter } from '../src/turns/log.ts';
import { memoryTurnLog } from '../src/turns/memory.ts';
import { runTurn } from '../src/turns/turn.ts';
import type { FinishedTurn, TurnOptions, TurnTiming } from '../src/turns/turn-options.ts';
import type { Prompt } from '../src/turns/upstream.ts';
import { ScriptedSession, type ScriptedTurn } from './scripted-upstream.ts';

const PATIENT: TurnTiming = {
  connectMs: 10_000,
  idleMs: 120_000,
  toolLimitMs: 1_800_000,
  hookMs: 10_000,
};

export type RunOptions = Partial<Omit<TurnOptions, 'writer' | 'prompt' | 'timing'>> & {
  timing?: Partial<TurnTiming>;
  chatId?: string;
  /** What the turn writes with, in place of the log's own writer. */
  wrap?: (writer: TurnWriter) => TurnWriter;
};

export const nextTick = () => new Promise<void>((resolve) => void setImmediate(resolve));

async function readAll(log: TurnLog, turnId: string): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  const { signal } = new AbortController();
  for await (const batch of log.read(turnId, 0, signal)) {
    chunks.push(...batch.map(({ chunk }) => chunk));
  }
  return chunks;
}

export async function startTurn(options: RunOptions = {}) {
  const { wrap = (writer) => writer, chatId = 'c', timing, ...rest } = options;
  const log = options.log ?? memoryTurnLog();
  const begun = await log.begin({
    sessionId: 's',
    chatId,
    requestId: crypto.randomUUID(),
    messageId: 'm',
  });
  if ('existing' in begun) throw new Error('a turn with a new request id exists already');
  const { turnId } = begun.writer;
  const session = new ScriptedSession();
  const lease = session.lease();
  const onFinish = vi.fn((_: FinishedTurn): unknown => undefined);
  const onEnd = vi.fn();
  const logger = { info: vi.fn(), warn: vi.fn(), error: vi.fn() };
  const prompt: Prompt = {
    sessionId: 's',
    chatId,
    chatKey: 'k',
    turnId,
    messageId: 'm',
    text: 'Hello',
    user: { id: 'u' },
    attachments: [],
    messages: [],
    body: {},
  };
  const turn = runTurn({
    log,
    prompt,
    writer: wrap(begun.writer),
    open: async () => lease,
    timing: { ...PATIENT, ...timing },
    queueBytes: 1_000_000,
    onFinish,
    onEnd,
    logger,
    ...rest,
  });
  return {
    turn,
    turnId,
    log,
    session,
    lease,
    onFinish,
    onEnd,
    logger,
    stop: (reason?: string) => log.command(turnId, { type: 'stop', ...(reason && { reason }) }),
    answer: (questionId: string, answer: unknown) =>
      log.command(turnId, { type: 'answer', questionId, answer }),
    chunks: () => readAll(log, turnId),
    outcome: async () => (await log.get(turnId))?.outcome,
    finished: () => onFinish.mock.calls[0]?.[0],
    /** The agent, once it has been prompted. */
    agent: () =>
      vi.waitFor(
        () => {
          const [prompted] = session.turns;
          if (!prompted) throw new Error('the agent has not been prompted');
          return prompted as ScriptedTurn;
        },
        { interval: 1 },
      ),
  };
}

export type RunningTurn = Awaited<ReturnType<typeof startTurn>>;

/** A writer whose appends wait until the test lets them through. */
export function gate(writer: TurnWriter) {
  const waiting: Array<() => void> = [];
  let isOpen = false;
  const gated: TurnWriter = {
    ...writer,
    async append(chunks) {
      if (!isOpen) await new Promise<void>((resolve) => waiting.push(resolve));
      return writer.append(chunks);
    },
  };
  return {
    writer: gated,
    waiting,
    open() {
      isOpen = true;
      for (const go of waiting.splice(0)) go();
    },
  };
}
