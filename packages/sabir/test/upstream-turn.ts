/** Runs a prompt on an upstream's session as the gateway does, and keeps what came of it. */
import { expect, vi } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { TurnOutcome } from '../src/core/outcome.ts';
import type { Translator } from '../src/core/translator.ts';
import { verifyChunks } from '../src/core/verify.ts';
import type {
  Prompt,
  TurnSink,
  UpstreamSession,
  UpstreamTurn,
  User,
  Written,
} from '../src/turns/upstream.ts';

export const ann: User = { id: 'ann' };
export const bob: User = { id: 'bob' };

let prompts = 0;

export function promptOf(text: string, more: Partial<Prompt> = {}): Prompt {
  const turnId = `t${++prompts}`;
  return {
    sessionId: 's',
    chatId: 'c',
    chatKey: 'k',
    turnId,
    messageId: `m-${turnId}`,
    user: ann,
    text,
    attachments: [],
    messages: [{ id: `u-${turnId}`, role: 'user', parts: [{ type: 'text', text }] }],
    body: {},
    ...more,
  };
}

/** An event as the sink was given it. */
type Told = {
  event: unknown;
  /** The turn's, when it was told. */
  position: number;
  chunks: Chunk[];
};

export type Watched = {
  readonly turn: UpstreamTurn;
  /** What was told, without what was written before. */
  readonly chunks: Chunk[];
  readonly told: Told[];
  /** Everything the sink was given. */
  readonly events: unknown[];
  /** What the sink was closed with. */
  readonly closed: TurnOutcome[];
  readonly text: string;
  readonly isOver: boolean;
  /** Resolves at the end, with the outcome in the message's metadata. */
  readonly done: Promise<{ outcome?: string; reason?: string; code?: string }>;
};

/** A turn that has not ended in this time is not going to. */
const PATIENCE = { timeout: 10_000, interval: 5 };
export const until = (check: () => unknown) =>
  vi.waitFor(() => expect(check()).toBeTruthy(), PATIENCE);

/** With `written`, the turn is one that another process has prompted and written so far. */
export function watch(session: UpstreamSession, prompt: Prompt, written?: Written): Watched {
  const chunks: Chunk[] = [];
  const told: Told[] = [];
  const events: unknown[] = [];
  const closed: TurnOutcome[] = [];
  const over = Promise.withResolvers<void>();
  let translator: Translator<unknown> | undefined;
  let isOver = false;

  function take(given: Chunk[]): void {
    chunks.push(...given);
    if (!translator?.ended || isOver) return;
    isOver = true;
    turn.release();
    over.resolve();
  }

  const sink: TurnSink = {
    event(event) {
      // From inside `prompt` there is no translator yet.
      if (!translator) throw new Error('The sink was called from inside prompt.');
      events.push(event);
      const { position = 0 } = turn;
      const one = { event, position, chunks: translator.push(event) };
      told.push(one);
      take(one.chunks);
    },
    close(outcome) {
      if (!translator) throw new Error('The sink was closed from inside prompt.');
      closed.push(outcome);
      take(translator.end(outcome));
    },
  };
  const turn = written ? attachTo(session, prompt, sink, written) : session.prompt(prompt, sink);
  translator = turn.translator;
  return {
    turn,
    chunks,
    told,
    events,
    closed,
    get text() {
      return textOf(chunks);
    },
    get isOver() {
      return isOver;
    },
    get done() {
      return withPatience(over.promise).then(() => {
        const whole = [...(written?.chunks ?? []), ...chunks];
        expect(verifyChunks(whole)).toEqual([]);
        return (foldChunks(whole).metadata ?? {}) as { outcome?: string };
      });
    },
  };
}

function attachTo(
  session: UpstreamSession,
  prompt: Prompt,
  sink: TurnSink,
  written: Written,
): UpstreamTurn {
  if (!session.attach) throw new Error('The session cannot attach.');
  return session.attach(prompt, sink, written);
}

export const NOTHING_WRITTEN: Written = { chunks: [], mark: 0 };

/** What the log has of a turn if its first process wrote so many of the events that it was told. */
export function writtenOf({ told }: Watched, events = told.length): Written {
  const taken = told.slice(0, events);
  return { chunks: taken.flatMap(({ chunks }) => chunks), mark: taken.at(-1)?.position ?? 0 };
}

export const textOf = (chunks: Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');

async function withPatience(promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The turn never ended.')), PATIENCE.timeout);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Nobody in a test gives up. */
export const never = () => new AbortController().signal;

/** Counts the timers that were started and neither cleared nor, if they run once, have run. */
export function trackTimers() {
  const running = new Set<unknown>();
  const { setTimeout: start, setInterval: repeat, clearTimeout: clear } = globalThis;
  const forget = (timer: unknown) => {
    running.delete(timer);
    clear(timer as number);
  };
  const spies = [
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms?: number) => {
      const timer = start(() => {
        running.delete(timer);
        run();
      }, ms);
      running.add(timer);
      return timer;
    }) as typeof setTimeout),
    vi.spyOn(globalThis, 'setInterval').mockImplementation(((run: () => void, ms?: number) => {
      const timer = repeat(run, ms);
      running.add(timer);
      return timer;
    }) as typeof setInterval),
    vi.spyOn(globalThis, 'clearTimeout').mockImplementation(forget),
    vi.spyOn(globalThis, 'clearInterval').mockImplementation(forget),
  ];
  return {
    get count() {
      return running.size;
    },
    restore: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}
