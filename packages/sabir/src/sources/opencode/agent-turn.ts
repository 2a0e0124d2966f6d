import type { Chunk } from '../../core/chunks.ts';
import type { Logger } from '../../core/translator.ts';
import type { AgentPrompt } from '../../turns/agent.ts';
import { type OpenCodeApi, OpenCodeRefusal } from './api.ts';
import { askPeople } from './ask-people.ts';
import { createChunkQueue } from './chunk-queue.ts';
import { pause } from './event-stream.ts';
import { toFailureText } from './failures.ts';
import { createOpenCodeReader, type OpenCodeReader, type OpenCodeSignal } from './read-events.ts';
import type { OpenCodeRequest } from './requests.ts';
import { createSignalWriter } from './write-signals.ts';

export type OpenCodeTurn = {
  readonly sessionId: string;
  readonly chunks: AsyncIterable<Chunk>;
  readonly reader: OpenCodeReader;
  read(event: unknown): void;
  /** Events were missed: asks how the session stands. */
  catchUp(): void;
  fail(error: unknown): void;
  /** The server is gone: the turn fails, and there is nothing to stop. */
  lose(error: unknown): void;
  /** Makes the server stop, if it has not, and waits until it has. */
  stop(): Promise<void>;
};

/** More messages than a turn has between two of our looks at it. */
const CAUGHT_UP_MESSAGES = 100;
/** How often a session that should be busy is looked at, and how long it may take to become so. */
const LOOK_EVERY_MS = 200;
const LOOKS = 25;
/** A prompt that was accepted is worked on within this time. */
const BEGIN_LIMIT_MS = 1_000;

/** One prompt on its way through OpenCode: events of its session in, chunks out. */
export function createOpenCodeTurn(options: {
  api: OpenCodeApi;
  sessionId: string;
  after: string;
  prompt: AgentPrompt;
  mergeDeltas: boolean;
  logger?: Logger | undefined;
}): OpenCodeTurn {
  const { api, sessionId, prompt, logger } = options;
  const queue = createChunkQueue(options.mergeDeltas);
  const writer = createSignalWriter({ messageId: prompt.messageId });
  const over = new AbortController();
  const begun = Promise.withResolvers<void>();
  /** What waits for an answer: the server forgets it only when it gets one. */
  const unanswered = new Map<string, 'permission' | 'question'>();
  /** While we ask how the session stands, what it says waits. */
  let held: unknown[] | undefined;
  let isLost = false;
  let lookedAt = Promise.resolve();
  let stopped: Promise<void> | undefined;

  const reader = createOpenCodeReader({
    sessionId,
    after: options.after,
    signal: (signal) => heed(signal),
  });

  function heed(signal: OpenCodeSignal): void {
    begun.resolve();
    switch (signal.kind) {
      case 'asked':
        ask(signal.request);
        break;
      case 'replied':
        unanswered.delete(signal.requestId);
        break;
      case 'end':
        end(signal);
        break;
      default:
        writer.write(signal);
        flush();
        // A turn that is stopped has no end of its own that says it.
        if (signal.kind === 'usage') {
          queue.push({ type: 'message-metadata', messageMetadata: writer.metadata });
        }
    }
  }

  function flush(): void {
    for (const chunk of writer.take()) queue.push(chunk);
  }

  function ask(request: OpenCodeRequest): void {
    const { requestId, kind } = request;
    unanswered.set(requestId, kind);
    // Behind the call that it is about.
    queue.push(() => {
      answer(request).catch((error) => {
        // The turn is to stop, or another client of OpenCode has answered.
        logger?.info?.('a request of OpenCode was not answered', { requestId, error });
      });
    });
  }

  async function answer(request: OpenCodeRequest): Promise<void> {
    const tell = await askPeople(api, prompt, request);
    while (!over.signal.aborted) {
      try {
        await tell();
        return;
      } catch (error) {
        if (error instanceof OpenCodeRefusal) throw error;
        // The connection broke. Nobody is asked twice, so the answer has to get there.
        await pause(LOOK_EVERY_MS, over.signal);
      }
    }
  }

  function end({ outcome, error }: OpenCodeSignal & { kind: 'end' }): void {
    over.abort();
    if (outcome.status === 'failed') queue.fail(new Error((error && toFailureText(error)) ?? ''));
    else if (outcome.status === 'lost') queue.fail(new Error('OpenCode stopped in mid-answer.'));
    else {
      writer.end(outcome);
      flush();
      queue.end();
    }
  }

  function release(): void {
    const events = held ?? [];
    held = undefined;
    for (const event of events) reader.read(event);
  }

  async function look(): Promise<void> {
    held = [];
    try {
      // In this order: a session that is idle now has all its messages then.
      const isIdle = await api.isIdle(sessionId);
      reader.catchUp(await api.messages(sessionId, CAUGHT_UP_MESSAGES));
      const [permissions, questions] = await Promise.all([api.permissions(), api.questions()]);
      for (const properties of permissions) reader.read({ type: 'permission.asked', properties });
      for (const properties of questions) reader.read({ type: 'question.asked', properties });
      release();
      if (isIdle) reader.read({ type: 'session.idle', properties: { sessionID: sessionId } });
    } finally {
      release();
    }
  }

  async function lookUntilBegun(): Promise<void> {
    for (let looks = 0; looks < LOOKS; looks++) {
      await look().catch((error) => {
        // A connection that broke with the other one: there is a next look.
        logger?.warn('could not ask OpenCode how a turn stands', { error });
      });
      // A session that has begun will say when it is done.
      if (reader.isEnded || reader.hasAnswer || over.signal.aborted) return;
      await pause(LOOK_EVERY_MS, over.signal);
    }
    queue.fail(new Error('OpenCode ended the turn without an answer.'));
  }

  function fail(error: unknown): void {
    over.abort();
    queue.fail(error);
  }

  async function stop(): Promise<void> {
    over.abort();
    queue.end();
    if (isLost || reader.isEnded) return;
    // What has been accepted and not begun would begin after it was stopped.
    const waiting = new AbortController();
    await Promise.race([begun.promise, pause(BEGIN_LIMIT_MS, waiting.signal)]);
    waiting.abort();
    for (let looks = 0; looks < LOOKS; looks++) {
      await api.abort(sessionId);
      if (await api.isIdle(sessionId)) break;
      await pause(LOOK_EVERY_MS);
    }
    for (const [requestId, kind] of unanswered) await reject(requestId, kind);
  }

  async function reject(requestId: string, kind: 'permission' | 'question'): Promise<void> {
    try {
      if (kind === 'permission') await api.replyToPermission(requestId, 'reject');
      else await api.rejectQuestion(requestId);
    } catch {
      // It was forgotten together with its turn.
    }
  }

  return {
    sessionId,
    chunks: queue,
    reader,
    read(event) {
      if (held) held.push(event);
      else reader.read(event);
    },
    catchUp() {
      // One after another: what one holds back the other must not let through.
      lookedAt = lookedAt.then(lookUntilBegun);
    },
    fail,
    lose(error) {
      isLost = true;
      fail(error);
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}
