import type { TurnInfo } from '../../turns/log.ts';
import { createByteWriter } from '../byte-writer.ts';
import type { WireEncoder } from '../wire-encoder.ts';
import { encodeContract } from './encode.ts';
import { type ContractEvent, type ContractMeta, toContractSse } from './events.ts';

/** Shared by all encoders: nothing waits between a batch's first byte and its last. */
const writer = createByteWriter();

/**
 * Logged chunks → the contract's SSE. A chunk that becomes several events has its number on the
 * last of them; one that becomes none is not sent, and the next event's number covers it.
 */
export function createContractFrames(
  turn: TurnInfo,
  meta: ContractMeta,
  from = { toEvents: contractEncoderOf(turn, meta), lastSeq: 0 },
): WireEncoder {
  const { toEvents } = from;
  let { lastSeq } = from;

  function write(events: ContractEvent[], seq: number): void {
    const last = events.length - 1;
    for (const [i, event] of events.entries()) {
      const id = i === last && seq > 0 ? `${turn.turnId}:${seq}` : undefined;
      writer.text(toContractSse(event, id));
    }
  }

  return {
    // A run's `meta` is made of its turn alone, and so the same for all viewers.
    key: 'contract',
    isStateless: false,
    skip(entries) {
      for (const { seq, chunk } of entries) {
        toEvents(chunk);
        lastSeq = seq;
      }
    },
    encode(entries) {
      writer.drop();
      for (const { seq, chunk } of entries) {
        write(toEvents(chunk), seq);
        lastSeq = seq;
      }
      return writer.take();
    },
    end() {
      writer.drop();
      // It covers all there is: a client that has it has nothing to come back for.
      write(toEvents.fork().end(), lastSeq);
      return writer.take();
    },
    farewell({ code, retryable, userMessage: message }, { after }) {
      writer.drop();
      for (const event of toEvents.fork()({ type: 'error', errorText: message })) {
        // Only the stream has failed: nothing is said of the message, or of its tools.
        if (event.type === 'meta' && after === 0) write([event], 0);
        if (event.type !== 'error') continue;
        write([{ type: 'error', data: { ...event.data, code, retryable } }], 0);
      }
      return writer.take();
    },
    fork: () => createContractFrames(turn, meta, { toEvents: toEvents.fork(), lastSeq }),
  };
}

export function contractEncoderOf({ messageId, startedAt }: TurnInfo, meta: ContractMeta) {
  return encodeContract({
    meta,
    createdAt: new Date(startedAt).toISOString(),
    generateMessageId: () => messageId,
  });
}
