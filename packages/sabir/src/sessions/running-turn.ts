import type { ErrorKind } from '../core/errors.ts';
import type { Channel } from '../core/translator.ts';
import type { SessionMessage } from '../sources/agent-ops/index.ts';
import type { Clients } from './clients.ts';
import type { TurnEvent } from './protocol.ts';
import { readEvents } from './read-events.ts';
import type { SessionStorage, StoredMessage, StoredTurn } from './storage.ts';
import { createTurnRecord } from './turn-record.ts';

/** How a question ended, told in its turn so that whoever follows it is told as well. */
type QuestionSettled = {
  type: 'status';
  data: { questionAnswered?: string; answer?: string | boolean; questionExpired?: string };
};

type LoggedEvent = TurnEvent | QuestionSettled;
type Pending = {
  frame: string;
  /** The same for old clients: what they are told at this point, and not what is known later. */
  old?: string | undefined;
  /** What else is to be stored in the same step. */
  store?: (() => void) | undefined;
};

export type RunningTurn = ReturnType<typeof createRunningTurn>;

/**
 * Old clients get the whole message when a tool changes. So many bytes of that wait to be stored at once,
 * and all of a turn's come to no more than so many times what the turn itself comes to.
 */
const PENDING_SNAPSHOT_BYTES = 1_000_000;
const FREE_SNAPSHOT_BYTES = 4_000_000;
const SNAPSHOT_RATIO = 64;

type RunningTurnOptions = {
  turn: StoredTurn;
  storage: SessionStorage;
  clients: Clients;
  /** It was running before, in another process. */
  isRestored?: boolean;
  /** Written together with the events, in the same step. */
  onStore(): void;
  /** The events could not be stored: nobody is told what is not kept. */
  onStoreFailed(error: unknown): void;
};

/**
 * The turn that an agent works on. Its events are numbered, stored, and only then told: what
 * arrives in one tick is stored in one step.
 */
export function createRunningTurn(options: RunningTurnOptions) {
  const { turn, storage, clients, isRestored = false } = options;
  const { turnId, promptId, channelType, channelId } = turn;
  const channel: Channel = { channelType, channelId };
  const record = createTurnRecord();
  let pending: Pending[] = [];
  let isScheduled = false;
  let seq = 0;
  let storedSeq = 0;
  let bytes = 0;
  let snapshotBytes = 0;
  let pendingSnapshotBytes = 0;
  /** A change was left out: the next snapshot has it. */
  let isSnapshotDue = false;

  for (const { event, length } of isRestored ? readEvents<LoggedEvent>(storage, turnId, 0) : []) {
    note(event);
    seq = storedSeq = event.seq;
    bytes += length;
  }

  function note(event: LoggedEvent): void {
    if (event.type !== 'status') {
      record.push(event);
      return;
    }
    const { questionAnswered, questionExpired, answer } = event.data;
    if (questionAnswered) record.settleQuestion(questionAnswered, 'answered', answer);
    if (questionExpired) record.settleQuestion(questionExpired, 'expired');
  }

  function toFrame({ type, ...rest }: LoggedEvent, at: number): string {
    return JSON.stringify({ type, turnId, promptId, ...channel, ...rest, seq: at });
  }

  /** If it cannot be stored, it waits to be stored with what comes next. */
  function flush(finish?: () => void): void {
    isScheduled = false;
    if (pending.length === 0 && !finish) return;
    storage.transaction(() => {
      if (pending.length > 0) {
        storage.appendEvents(turnId, seq, pending.map(({ frame }) => frame).join(','));
      }
      for (const { store } of pending) store?.();
      options.onStore();
      finish?.();
    });
    const told = pending;
    pending = [];
    pendingSnapshotBytes = 0;
    storedSeq = seq;
    for (const { frame, old } of told) {
      clients.broadcastFrame(frame, channel, turnId);
      if (old) clients.broadcastSnapshot(old, channel);
    }
    const missed = isSnapshotDue && clients.hasSnapshots ? toFittingSnapshot() : undefined;
    pendingSnapshotBytes = 0;
    if (missed) clients.broadcastSnapshot(missed, channel);
  }

  function settle(): void {
    try {
      flush();
    } catch (error) {
      options.onStoreFailed(error);
    }
  }

  /** What deployed clients understand: the same as whole messages, and text as it comes. */
  function toOld(event: LoggedEvent): string | undefined {
    if (!clients.hasSnapshots) return undefined;
    switch (event.type) {
      case 'message.part.text-delta': {
        const { delta: content } = event;
        return JSON.stringify({ type: 'chunk', content, messageId: turnId, promptId, ...channel });
      }
      case 'message.create':
        return JSON.stringify({ type: 'message', data: toMessage([], '') });
      case 'message.part.tool-update':
        return toFittingSnapshot();
      case 'message.finalize':
        return toSnapshot();
      default:
        return undefined;
    }
  }

  function toFittingSnapshot(): string | undefined {
    isSnapshotDue =
      pendingSnapshotBytes > PENDING_SNAPSHOT_BYTES ||
      snapshotBytes > FREE_SNAPSHOT_BYTES + SNAPSHOT_RATIO * bytes;
    return isSnapshotDue ? undefined : toSnapshot();
  }

  function toSnapshot(): string {
    isSnapshotDue = false;
    const data = toMessage(record.parts, record.content);
    const snapshot = JSON.stringify({ type: 'message.updated', data });
    snapshotBytes += snapshot.length;
    pendingSnapshotBytes += snapshot.length;
    return snapshot;
  }

  function toMessage(parts: readonly unknown[], content: string): StoredMessage {
    const { startedAt = turn.askedAt } = turn;
    return {
      id: turnId,
      role: 'assistant',
      content,
      parts: parts as NonNullable<SessionMessage['parts']>,
      createdAt: Math.floor(startedAt / 1_000),
      ...channel,
      promptId,
    };
  }

  return {
    turn,
    channel,
    get isCreated() {
      return record.isCreated;
    },
    get seq() {
      return storedSeq;
    },
    get bytes() {
      return bytes;
    },
    /** `store` is given the event as it is told, and is part of the step that stores it. */
    push(event: LoggedEvent, store?: (told: object) => void): void {
      // What cannot be encoded must leave no trace.
      const frame = toFrame(event, seq + 1);
      note(event);
      seq++;
      bytes += frame.length;
      pending.push({ frame, old: toOld(event), store: store && (() => store(JSON.parse(frame))) });
      if (isScheduled) return;
      isScheduled = true;
      queueMicrotask(() => {
        if (isScheduled) settle();
      });
    },
    /** Stores and tells what has come so far. */
    settle,
    /** The same, and the end of the turn in the same step. Throws if it cannot be stored. */
    finish: flush,
    /** As far as it is written. */
    message: (): StoredMessage => toMessage(record.parts, record.content),
    /** How it ends when its own end cannot be stored: behind what was told, with an error. */
    toFailure({ code, userMessage: error }: ErrorKind) {
      const kept = record.parts.filter(({ type }) => type !== 'finish' && type !== 'error');
      const parts = [
        ...kept,
        { type: 'error', message: error, code },
        { type: 'finish', reason: 'error' },
      ];
      const at = storedSeq + 1;
      const frame = toFrame({ type: 'message.finalize', reason: 'error', error, code }, at);
      return { seq: at, frame, message: toMessage(parts, record.content), error };
    },
  };
}
