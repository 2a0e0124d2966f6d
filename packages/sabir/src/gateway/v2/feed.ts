import { NO_LONGER_NEEDED } from '../../core/no-longer-needed.ts';
import type { Channel } from '../../core/translator.ts';
import type { PromptInfo } from '../../sessions/index.ts';
import type { TurnLog } from '../../turns/log.ts';
import { createV2Encoder } from '../../wires/agent-ops/encode.ts';
import type { AnswerMessage, V2Event } from '../../wires/agent-ops/events.ts';
import { createSnapshotEncoder } from '../../wires/agent-ops/snapshot-encoder.ts';
import type { Clients } from './clients.ts';

type FeedOptions = { log: TurnLog; prompt: PromptInfo; clients: Clients; onEnd(): void };

export type Feed = ReturnType<typeof createFeed>;

/**
 * The turn that runs, as V2 clients get it: reads its log once for all of them, and knows its message and its open
 * questions for those who connect later.
 */
export function createFeed({ log, prompt, clients, onEnd }: FeedOptions) {
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
  let isBegun = false;

  function send(seq: number, event: V2Event): void {
    // What the agent is doing is derived from its chunks, and has no place of its own.
    const isPlaced = event.type !== 'agentStatus' && event.type !== 'complete';
    const placed = isPlaced ? { ...event, seq } : event;
    note(placed as V2Event & { seq: number });
    clients.broadcastIn(placed, channel, messageId);
    const old = snapshots.push(event);
    if (old) clients.broadcastSnapshot(old, channel);
  }

  function note(event: V2Event & { seq: number }): void {
    if (event.type === 'message.create') isBegun = true;
    else if (event.type === 'question') questions.set(event.questionId, event);
    else if (event.type === 'status') {
      const { questionAnswered, questionExpired } = event.data ?? {};
      questions.delete(questionAnswered ?? questionExpired ?? '');
    }
  }

  async function follow(): Promise<void> {
    const { lastSeq = 0, outcome } = (await log.get(turnId)) ?? {};
    if (lastSeq === 0 && !outcome) ready.resolve();
    for await (const batch of log.read(turnId, 0, reading.signal)) {
      for (const { seq, chunk } of batch) {
        for (const event of encoder.push(chunk)) send(seq, event);
        position = seq;
      }
      const missed = snapshots.flush();
      if (missed) clients.broadcastSnapshot(missed, channel);
      if (position >= lastSeq) ready.resolve();
    }
  }

  const done = follow()
    // A log that cannot be read shows nothing more of the turn; its end comes as a notice of the session.
    .catch(() => undefined)
    .then(() => {
      ready.resolve();
      if (!reading.signal.aborted) onEnd();
    });

  return {
    prompt,
    channel,
    done,
    /** Settles when everything is read that the log had when this began. */
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
