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
export type Told = {
  event: unknown;
  /** The turn's, while it was told. */
  position: number;
  /** It has a place of its own among the turn's events. */
  hasPlace: boolean;
  chunks: Chunk[];
};

export type Watched = {
  readonly turn: UpstreamTurn;
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

export function watch(
  session: UpstreamSession,
  prompt: Prompt,
  begin: 'prompt' | 'attach' = 'prompt',
  onTold?: (told: Told) => void,
): Watched {
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
      const hasPlace = position > (told.at(-1)?.position ?? 0);
      const one = { event, position, hasPlace, chunks: translator.push(event) };
      told.push(one);
      take(one.chunks);
      onTold?.(one);
    },
    close(outcome) {
      if (!translator) throw new Error('The sink was closed from inside prompt.');
      closed.push(outcome);
      take(translator.end(outcome));
    },
  };
  const turn = begin === 'prompt' ? session.prompt(prompt, sink) : attachTo(session, prompt, sink);
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
        expect(verifyChunks(chunks)).toEqual([]);
        return (foldChunks(chunks).metadata ?? {}) as { outcome?: string };
      });
    },
  };
}

function attachTo(session: UpstreamSession, prompt: Prompt, sink: TurnSink): UpstreamTurn {
  if (!session.attach) throw new Error('The session cannot attach.');
  return session.attach(prompt, sink);
}

/**
 * What is in the log of a turn when another process goes on with it: what the first had written, up
 * to and with the event at `mark`, and what the second is told after that.
 */
export function takeOver(logged: Chunk[], mark: number, told: readonly Told[]): Chunk[] {
  const log = [...logged];
  for (const { position, hasPlace, chunks } of told) {
    if (position < mark || (position === mark && hasPlace)) continue;
    for (const chunk of chunks) {
      // That a prompt waits is said in a message too, before its first event.
      if (chunk.type !== 'start' || log.length === 0) log.push(chunk);
    }
  }
  return log;
}

/** The message of these chunks, but for where its prompt waited: that is not told again. */
export function messageOf(chunks: Chunk[]) {
  const message = foldChunks(chunks);
  return { ...message, parts: message.parts.filter(({ type }) => type !== 'data-queue') };
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
