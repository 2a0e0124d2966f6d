import { hash128 } from '../../core/hash.ts';
import type { TurnInfo } from '../../turns/log.ts';
import { createByteWriter } from '../byte-writer.ts';
import type { Bytes, WireEncoder } from '../wire-encoder.ts';
import { type AgUiEncoder, encodeAgUi, toRunStarted } from './encode.ts';
import { type AgUiEvent, type AgUiOutcome, toAgUiSse } from './events.ts';

/** Shared by all encoders: nothing waits between a batch's first byte and its last. */
const writer = createByteWriter();

/** One run of a client. A turn that waits for a person takes several. */
export type AgUiRun = {
  threadId: string;
  runId: string;
  /** The client speaks a version of AG-UI before 1.0. */
  isBefore1?: boolean;
  /** `RUN_STARTED` was sent before the turn began. */
  isBegun?: boolean;
  /** The run continues a message that another run has ended in: what was open there is opened again. */
  isContinuing?: boolean;
  /** The results that the client has given, by their calls. */
  knownResults?: ReadonlyMap<string, string>;
};

/**
 * Logged chunks → AG-UI's SSE. A chunk that becomes several events has its number on the last of them; one that becomes
 * none is not sent, and the next event's number covers it.
 */
export function createAgUiFrames(
  turn: TurnInfo,
  run: AgUiRun,
  from = {
    toEvents: agUiEncoderOf(turn, run),
    lastSeq: 0,
    isToReopen: run.isContinuing === true,
  },
): WireEncoder {
  const { toEvents } = from;
  let { lastSeq, isToReopen } = from;

  function last(events: AgUiEvent[], seq: number): Bytes {
    writer.drop();
    if (events.length > 0) write(turn, [...reopenings(), ...events], seq);
    return writer.take();
  }

  const reopenings = () => (isToReopen ? toEvents.reopen() : []);

  return {
    key: JSON.stringify(['ag-ui', run, hash128(JSON.stringify([...(run.knownResults ?? [])]))]),
    isStateless: false,
    skip(entries) {
      for (const { seq, chunk } of entries) {
        toEvents(chunk);
        lastSeq = seq;
      }
    },
    encode(entries) {
      writer.drop();
      write(turn, reopenings(), 0);
      isToReopen = false;
      for (const { seq, chunk } of entries) {
        write(turn, toEvents(chunk), seq);
        lastSeq = seq;
      }
      return writer.take();
    },
    // It covers all there is: a client that has it has nothing to come back for.
    end: () => last(toEvents.fork().end(), lastSeq),
    farewell: (why) => last(toEvents.fork().end(why), 0),
    fork: () => createAgUiFrames(turn, run, { toEvents: toEvents.fork(), lastSeq, isToReopen }),
  };
}

/** What begins a run before its first chunk. */
export function encodeRunStarted(turn: TurnInfo, run: AgUiRun, after: number): Bytes {
  writer.drop();
  write(turn, [toRunStarted(run)], after);
  return writer.take();
}

/** What ends a run that waits for its client. `toEvents` has seen all chunks that open or close a part. */
export function encodePausedRun(
  turn: TurnInfo,
  toEvents: AgUiEncoder,
  outcome: AgUiOutcome | undefined,
): Bytes {
  writer.drop();
  write(turn, toEvents.pause(outcome), 0);
  return writer.take();
}

export function agUiEncoderOf({ messageId }: TurnInfo, run: AgUiRun): AgUiEncoder {
  return encodeAgUi({ ...run, generateMessageId: () => messageId });
}

/** An event with number 0 has no cursor. */
function write({ turnId }: TurnInfo, events: AgUiEvent[], seq: number): void {
  const last = events.length - 1;
  for (const [i, event] of events.entries()) {
    writer.text(toAgUiSse(event, i === last && seq > 0 ? `${turnId}:${seq}` : undefined));
  }
}
