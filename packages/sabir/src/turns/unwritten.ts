import type { Chunk } from '../core/chunks.ts';
import { type ErrorKind, LOG_UNAVAILABLE, UPSTREAM_FLOOD } from '../core/errors.ts';
import { afterThisTick, steadyNow } from '../core/timers.ts';
import { chunkBytes } from './chunk-bytes.ts';
import type { TurnWriter } from './log.ts';

type UnwrittenOptions = {
  writer: TurnWriter;
  lastSeq: number;
  queueBytes: number;
  /** Where in the agent's own count the turn is. */
  position(): number | undefined;
  /** Everything up to this position is in the log. */
  onWritten(position: number): void;
  /** More has piled up than may. */
  onTooMuch(why: ErrorKind): void;
  /** Nothing more is said. */
  isOver(): boolean;
  /** And all of it is written. */
  close(): Promise<void>;
  onError(error: unknown): Promise<void>;
};

export type Unwritten = ReturnType<typeof createUnwritten>;

/** A log that takes longer to confirm what it was given is away. */
const LOG_SILENT_MS = 2_000;

/** What a turn has said and its log has not confirmed yet: everything of one tick in one write. */
export function createUnwritten(options: UnwrittenOptions) {
  const { writer, queueBytes } = options;
  let { lastSeq } = options;
  let chunks: Chunk[] = [];
  let bytes = 0;
  /** Where the agent was with the last of them; and with the last that were appended. */
  let position: number | undefined;
  let mark: number | undefined;
  let isScheduled = false;
  let isWriting = false;
  let writingSince = steadyNow();

  /** Callbacks: an async function that waits would be half of what a small batch costs here. */
  function flush(): void {
    isScheduled = false;
    isWriting = true;
    if (chunks.length === 0) {
      close();
      return;
    }
    const batch = chunks;
    chunks = [];
    bytes = 0;
    writingSince = steadyNow();
    if (position !== undefined) mark = position;
    try {
      writer.append(batch, position).then(onWritten, onError);
    } catch (error) {
      onError(error);
    }
  }

  function onWritten(seq: number): void {
    lastSeq = seq;
    if (mark !== undefined) options.onWritten(mark);
    if (chunks.length > 0) flush();
    else close();
  }

  function close(): void {
    if (options.isOver()) options.close().then(onIdle, onError);
    else onIdle();
  }

  function onError(error: unknown): void {
    options.onError(error).finally(onIdle);
  }

  function onIdle(): void {
    isWriting = false;
  }

  function flushSoon(): void {
    if (isScheduled || isWriting) return;
    isScheduled = true;
    afterThisTick(flush);
  }

  return {
    get lastSeq() {
      return lastSeq;
    },
    /** When something was last given to the log. */
    get writtenAt() {
      return writingSince;
    },
    /** Throws where `position` does, which is the agent's code. */
    add(added: readonly Chunk[]): void {
      position = options.position();
      // Of exactly their number: an array that grows makes room for sixteen.
      if (chunks.length === 0) chunks = added.slice();
      else for (const chunk of added) chunks.push(chunk);
      // Only a log that is slower than the agent lets anything pile up.
      if (isWriting) {
        for (const chunk of added) bytes += chunkBytes(chunk);
        if (bytes <= queueBytes) return;
        // It is the log that hears nothing, if it has not for a while.
        const isSilent = steadyNow() - writingSince >= LOG_SILENT_MS;
        options.onTooMuch(isSilent ? LOG_UNAVAILABLE : UPSTREAM_FLOOD);
      } else if (chunks.length > 0) flushSoon();
    },
    flushSoon,
    /** What closes a turn whose end is not the agent's follows what is written. */
    async append(closings: Chunk[]): Promise<void> {
      lastSeq = await writer.append(closings);
    },
    clear(): void {
      chunks = [];
    },
  };
}
