import { NO_LONGER_NEEDED } from '../../core/no-longer-needed.ts';
import type { Channel } from '../../core/translator.ts';
import type { Clock, PromptInfo } from '../../sessions/index.ts';
import type { TurnLog } from '../../turns/log.ts';
import { createV2Encoder } from '../../wires/agent-ops/encode.ts';
import type { AnswerMessage, V2Event } from '../../wires/agent-ops/events.ts';
import { createSnapshotEncoder } from '../../wires/agent-ops/snapshot-encoder.ts';
import type { Clients } from './clients.ts';

type FeedOptions = {
  log: TurnLog;
  prompt: PromptInfo;
  /** Whether the log has begun the turn, once that is known. */
  hasBegun: Promise<boolean>;
  clients: Clients;
  clock: Clock;
  onEnd(): void;
};

export type Feed = ReturnType<typeof createFeed>;

/** How long to wait before a log that failed is read again. */
const RETRY_MS = 1_000;

/** What the agent is doing, and that it is done, is derived from the chunks: such events have no number. */
export function withSeq(event: V2Event, seq: number): V2Event & { seq?: number } {
  return event.type === 'agentStatus' || event.type === 'complete' ? event : { ...event, seq };
}

/**
 * The turn that runs, as V2 clients get it: reads its log once for all of them, and knows its message and its open
 * questions for those who connect later.
 */
export function createFeed(options: FeedOptions) {
  const { log, prompt, clients, clock } = options;
  const { turnId, messageId, promptId, channelType, channelId, startedAt, askedAt } = prompt;
  const channel: Channel = { channelType, channelId };
  const named = { turnId: messageId, promptId, channel };
  const encoder = createV2Encoder(named);
  const createdAt = Math.floor((startedAt ?? askedAt) / 1_000);
  const snapshots = createSnapshotEncoder({
    ...named,
    createdAt,
    isWanted: () => clients.hasSnapshots,
  });
  const questions = new Map<string, V2Event & { seq: number }>();
  const reading = new AbortController();
  const ready = Promise.withResolvers<void>();
  let position = 0;
  let isReady = false;
  let isBegun = false;
  let isEnded = false;
  let isBroken = false;

  function getReady(): void {
    isReady = true;
    ready.resolve();
  }

  function send(seq: number, event: V2Event): void {
    const numbered = withSeq(event, seq);
    note(numbered as V2Event & { seq: number });
    clients.broadcastIn(numbered, channel, { turnId: messageId, seq });
    const old = snapshots.push(event);
    if (old) clients.broadcastSnapshot(old, channel);
  }

  function note(event: V2Event & { seq: number }): void {
    if (event.type === 'message.create') isBegun = true;
    else if (event.type === 'message.finalize') isEnded = true;
    else if (event.type === 'question') questions.set(event.questionId, event);
    else if (event.type === 'status') {
      const { questionAnswered, questionExpired } = event.data ?? {};
      questions.delete(questionAnswered ?? questionExpired ?? '');
    }
  }

  async function follow(): Promise<void> {
    const known = await log.get(turnId);
    const { lastSeq = 0 } = known ?? {};
    if (lastSeq === 0) getReady();
    if (!known && !(await options.hasBegun)) return;
    for await (const batch of log.read(turnId, position, reading.signal)) {
      for (const { seq, chunk } of batch) {
        for (const event of encoder.push(chunk)) send(seq, event);
        position = seq;
      }
      const missed = snapshots.flush();
      if (missed) clients.broadcastSnapshot(missed, channel);
      if (position >= lastSeq) getReady();
    }
  }

  async function followToEnd(): Promise<void> {
    while (!reading.signal.aborted) {
      try {
        return await follow();
      } catch {
        // The log fails: newcomers are shown what is known, and the rest when the log works again.
        getReady();
        await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
      }
    }
  }

  const done = followToEnd().then(() => {
    isBroken = !isEnded;
    getReady();
    if (!reading.signal.aborted) options.onEnd();
  });

  return {
    prompt,
    channel,
    done,
    /** The log has lost the turn, or could not begin it. */
    get isBroken() {
      return isBroken;
    },
    /** Everything is read that the log had when this began. */
    get isReady() {
      return isReady;
    },
    ready: ready.promise,
    /** The number of the last chunk that clients have. */
    get position() {
      return position;
    },
    /** Undefined until the turn says something. */
    message: (): AnswerMessage | undefined => (isBegun ? snapshots.message : undefined),
    questions: () => [...questions.values()],
    close: () => reading.abort(NO_LONGER_NEEDED),
  };
}
