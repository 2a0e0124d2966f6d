/** An agent that says what the test has it say, and remembers what it was told. */
import type { Chunk } from '../src/core/chunks.ts';
import { UPSTREAM_DROPPED } from '../src/core/errors.ts';
import { createChunkTranslator } from '../src/sources/ai-sdk/translate.ts';
import type { Answer } from '../src/turns/log.ts';
import type { SessionLease } from '../src/turns/session-pool.ts';
import type {
  Prompt,
  TurnSink,
  Upstream,
  UpstreamSession,
  UpstreamTurn,
  User,
} from '../src/turns/upstream.ts';

export class ScriptedTurn implements UpstreamTurn {
  readonly translator;
  isQueued = false;
  stops = 0;
  releases = 0;
  readonly answers: Answer[] = [];
  readonly expired: string[] = [];
  /** What was asked of it after its release, which it could only misunderstand. */
  readonly late: string[] = [];
  readonly prompt: Prompt;
  #sink: TurnSink;

  constructor(prompt: Prompt, sink: TurnSink) {
    this.prompt = prompt;
    this.#sink = sink;
    this.translator = createChunkTranslator({ messageId: prompt.messageId });
  }

  say(...chunks: Chunk[]): void {
    for (const chunk of chunks) if (this.releases === 0) this.#sink.event(chunk);
  }

  close(outcome: Parameters<TurnSink['close']>[0]): void {
    if (this.releases === 0) this.#sink.close(outcome);
  }

  drop(): void {
    const { code, userMessage: message } = UPSTREAM_DROPPED;
    this.close({ status: 'failed', code, message });
  }

  #hear(what: string): void {
    if (this.releases > 0) this.late.push(what);
  }

  stop(): void {
    this.#hear('stop');
    this.stops++;
  }

  answer(answer: Answer): void {
    this.#hear('answer');
    this.answers.push(answer);
  }

  expire(questionId: string): void {
    this.#hear('expire');
    this.expired.push(questionId);
  }

  release(): void {
    this.releases++;
  }
}

export class ScriptedSession implements UpstreamSession {
  isClosed = false;
  closes = 0;
  readonly turns: ScriptedTurn[] = [];

  prompt(prompt: Prompt, sink: TurnSink): ScriptedTurn {
    const turn = new ScriptedTurn(prompt, sink);
    this.turns.push(turn);
    return turn;
  }

  close(): void {
    this.isClosed = true;
    this.closes++;
    for (const turn of this.turns) turn.drop();
  }

  /** A lease on it that counts how often it was given back. */
  lease(): SessionLease & { releases: number } {
    return {
      session: this,
      releases: 0,
      release() {
        this.releases++;
      },
    };
  }
}

export type ScriptedOpen = {
  sessionId: string;
  user: User;
  signal: AbortSignal;
  session: ScriptedSession;
  succeed(): void;
  fail(error: unknown): void;
};

/** An upstream whose sessions open when the test says so. */
export function scriptedUpstream(): Upstream & { opens: ScriptedOpen[] } {
  const opens: ScriptedOpen[] = [];
  return {
    opens,
    open({ sessionId, user, signal }) {
      const { promise, resolve, reject } = Promise.withResolvers<UpstreamSession>();
      const session = new ScriptedSession();
      opens.push({
        sessionId,
        user,
        signal,
        session,
        succeed: () => resolve(session),
        fail: reject,
      });
      return promise;
    },
  };
}
