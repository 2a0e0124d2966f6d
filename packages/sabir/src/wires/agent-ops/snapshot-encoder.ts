import { createFold } from '../../core/fold.ts';
import { createTurnTranslator } from '../../sources/agent-ops/translate-turn.ts';
import { OVERHEAD_BYTES } from '../../turns/chunk-bytes.ts';
import type { V2EncoderOptions } from './encode.ts';
import type { AnswerMessage, V2Event } from './events.ts';
import { toSessionMessage } from './snapshot.ts';

export type SnapshotEncoderOptions = V2EncoderOptions & {
  /** When the turn began, in seconds since 1970. */
  createdAt: number;
  /** Whether there is a client of the old dialect. Without one no frame is written. @default always */
  isWanted?: () => boolean;
};

/**
 * Clients of the old dialect get the whole message when a tool changes. At most so many bytes of
 * snapshots wait to be sent, and all snapshots of a turn come to at most so many times the bytes of the
 * turn itself.
 */
const PENDING_SNAPSHOT_BYTES = 1_000_000;
const FREE_SNAPSHOT_BYTES = 4_000_000;
const SNAPSHOT_RATIO = 64;

/**
 * The events of a V2 encoder → what clients of the old dialect get beside them, as JSON: the message
 * when it begins, its text as it comes, and the whole message at each change of a tool and at the end.
 *
 * Owns the message as readers of V2 have it. That is not the fold of the turn's own chunks: V2 holds
 * back the second of two open texts, and a text that goes on behind a tool call is a part of its own. A
 * client that gets this message and then the next events must not get a word twice.
 */
export function createSnapshotEncoder(options: SnapshotEncoderOptions) {
  const { turnId, promptId, channel, createdAt, isWanted = () => true } = options;
  const linked = promptId === undefined ? undefined : { promptId };
  const translator = createTurnTranslator({ turnId });
  const fold = createFold();
  /** Why the turn failed. */
  let reason: string | undefined;
  let bytes = 0;
  let snapshotBytes = 0;
  let pendingBytes = 0;
  /** A change was left out: the next snapshot has it. */
  let isDue = false;

  function read(event: V2Event): void {
    for (const chunk of translator.push(event)) fold.push(chunk);
    bytes += 'delta' in event ? event.delta.length + OVERHEAD_BYTES : JSON.stringify(event).length;
    if (event.type === 'message.finalize') reason = event.error;
  }

  function toMessage(): AnswerMessage {
    const { parts, role, metadata } = fold.message;
    const isFailed = reason !== undefined;
    const all = isFailed ? { ...(metadata as object), reason } : metadata;
    const info = { ...linked, ...(channel && { channel }), createdAt, isOver: translator.ended };
    return toSessionMessage({ id: turnId, role, parts, metadata: all }, info);
  }

  function toSnapshot(): string {
    isDue = false;
    const snapshot = JSON.stringify({ type: 'message.updated', data: toMessage() });
    snapshotBytes += snapshot.length;
    pendingBytes += snapshot.length;
    return snapshot;
  }

  function toFittingSnapshot(): string | undefined {
    isDue =
      pendingBytes > PENDING_SNAPSHOT_BYTES ||
      snapshotBytes > FREE_SNAPSHOT_BYTES + SNAPSHOT_RATIO * bytes;
    return isDue ? undefined : toSnapshot();
  }

  return {
    /** Takes every event of the turn, in its order. Gives the frame for clients of the old dialect, if there is one. */
    push(event: V2Event): string | undefined {
      read(event);
      if (!isWanted()) return undefined;
      switch (event.type) {
        case 'message.part.text-delta': {
          const { delta: content } = event;
          const about = { messageId: turnId, ...linked, ...channel };
          return JSON.stringify({ type: 'chunk', content, ...about });
        }
        case 'message.create':
          return JSON.stringify({ type: 'message', data: { ...toMessage(), parts: [] } });
        case 'message.part.tool-update':
          return toFittingSnapshot();
        case 'message.finalize':
          return toSnapshot();
        default:
          return undefined;
      }
    },
    /** What was given so far is sent. Gives a snapshot that was left out, if it fits now. */
    flush(): string | undefined {
      pendingBytes = 0;
      const missed = isDue && isWanted() ? toFittingSnapshot() : undefined;
      pendingBytes = 0;
      return missed;
    },
    /** The message as far as the events go, for a client that connects now. */
    get message(): AnswerMessage {
      return toMessage();
    },
  };
}
