import { encodeContract } from '../contract/encode.ts';
import { type ContractEvent, type ContractMeta, toContractSse } from '../contract/events.ts';
import type { AnyTurnLog, TurnInfo } from '../turns/log.ts';
import { createByteWriter } from './byte-writer.ts';
import type { FrameEncoder, Viewing } from './frame-encoder.ts';

/** Shared by all viewers: nothing waits between a batch's first byte and its last. */
const writer = createByteWriter();

/**
 * Logged chunks → the contract's SSE. A chunk that becomes several events has its number on the
 * last of them; one that becomes none is not told, and the next event's number covers it.
 */
export function createContractFrames(
  { turn, after, isResuming }: Viewing,
  meta: ContractMeta,
): FrameEncoder {
  const toEvents = encoderOf(turn, meta);
  let lastSeq = 0;

  function write(events: ContractEvent[], seq: number): void {
    const last = events.length - 1;
    for (const [i, event] of events.entries()) {
      const id = i === last && seq > 0 ? `${turn.turnId}:${seq}` : undefined;
      writer.text(toContractSse(event, id));
    }
  }

  return {
    encode(entries) {
      writer.drop();
      for (const { seq, chunk } of entries) {
        const events = toEvents(chunk);
        if (seq > after) write(events, seq);
        lastSeq = seq;
      }
      return writer.take();
    },
    end() {
      writer.drop();
      // It covers all there is: whoever has heard it has nothing to come back for.
      write(toEvents.end(), lastSeq);
      return writer.take();
    },
    farewell({ code, retryable, userMessage: message }) {
      writer.drop();
      if (!isResuming) {
        for (const event of toEvents({ type: 'error', errorText: message })) {
          // Only the stream has failed: nothing is said of the message, or of its tools.
          if (event.type === 'meta' && after === 0) write([event], 0);
          if (event.type !== 'error') continue;
          write([{ type: 'error', data: { ...event.data, code, retryable } }], 0);
        }
      }
      return writer.take();
    },
  };
}

/** Whether a turn that has ended has anything to tell past a cursor: after an error comes nothing. */
export async function hasContractEvents(
  log: AnyTurnLog,
  turn: TurnInfo,
  after: number,
  signal: AbortSignal,
): Promise<boolean> {
  const toEvents = encoderOf(turn, {});
  for await (const batch of log.read(turn.turnId, 0, signal)) {
    for (const { seq, chunk } of batch) {
      if (toEvents(chunk).length > 0 && seq > after) return true;
    }
  }
  return toEvents.end().length > 0;
}

function encoderOf({ messageId, startedAt }: TurnInfo, meta: ContractMeta) {
  return encodeContract({
    meta,
    createdAt: new Date(startedAt).toISOString(),
    generateMessageId: () => messageId,
  });
}
