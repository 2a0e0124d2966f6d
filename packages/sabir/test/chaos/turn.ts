/** One turn of a run: what is known of it, and how far it has come. */
import type { UIMessage } from '../../src/core/message.ts';
import type { TurnPlan } from './plan.ts';
import { promptOf, type Script, scriptOf } from './script.ts';

export type Finish = { gateway: number; turnId: string; outcome: unknown; message: UIMessage };

export type ChaosTurn = ReturnType<typeof createTurn>;

export function createTurn(plan: TurnPlan) {
  const startedAt = Date.now();
  const story: string[] = [];
  const script: Script = scriptOf(plan.scriptSeed);
  const waiting = new Set<{ progress: number; resolve(): void }>();
  const ending = new AbortController();
  /** Before the agent has heard of it. */
  let progress = -1;
  let isOver = false;

  function release(): void {
    for (const one of waiting) {
      if (!isOver && !ending.signal.aborted && one.progress > progress) continue;
      waiting.delete(one);
      one.resolve();
    }
  }

  const turn = {
    plan,
    script,
    startedAt,
    sessionId: `session-${plan.turn}`,
    chatId: `chat-${plan.turn}`,
    prompt: promptOf(plan.turn, plan.scriptSeed),
    /** Every line with its time. */
    story,
    /** How often the agent was asked. */
    prompts: 0,
    answer: undefined as unknown,
    isSaid: false,
    saidAt: 0,
    /** It was told to stop, and did. */
    isAborted: false,
    /** Somebody asked for it. */
    isStopAsked: false,
    /** When they were told that it will be. */
    stoppedAt: undefined as number | undefined,
    /** Those that were taken, as whoever gave them was told. */
    answersTaken: [] as string[],
    turnIds: new Set<string>(),
    finishes: [] as Finish[],
    /** That it was stored twice has been told. */
    isTwiceKnown: false,
    /** What went wrong, as far as it was seen on the way. */
    wrongs: [] as string[],
    /** What was done to it, or to all while it ran. */
    faults: [] as string[],
    lastFaultAt: startedAt,
    /** For whoever hangs. */
    hung: ending.signal,
    hang(): void {
      ending.abort();
      release();
    },
    tell(line: string): void {
      story.push(`${String(Date.now() - startedAt).padStart(6)} ms  ${line}`);
    },
    hit(what: string): void {
      turn.faults.push(what);
      turn.lastFaultAt = Date.now();
      turn.tell(`*** ${what}`);
    },
    advance(to: number): void {
      progress = Math.max(progress, to);
      release();
    },
    /** Everybody has seen its end. */
    end(): void {
      isOver = true;
      release();
    },
    get isOver() {
      return isOver;
    },
    /** Resolves when the agent has come so far, when it is over, and when it never will be. */
    until(to: number): Promise<void> {
      if (isOver || ending.signal.aborted || progress >= to) return Promise.resolve();
      return new Promise((resolve) => void waiting.add({ progress: to, resolve }));
    },
  };
  return turn;
}
