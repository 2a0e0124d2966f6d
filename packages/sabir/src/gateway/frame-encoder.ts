import type { AiSdkMajor, Chunk } from '../chunks.ts';
import { createDowngrade, isPlainText } from '../downgrade.ts';
import type { ErrorKind } from '../errors.ts';
import { encodeSse, SSE_DONE } from '../sse.ts';
import type { LoggedChunk, TurnInfo } from '../turns/log.ts';
import { closingsOf } from '../turns/lost.ts';
import type { Question } from '../turns/question.ts';
import { trackApprovals } from './approvals.ts';
import { createByteWriter } from './byte-writer.ts';

/** A turn as bytes for one viewer, who has seen everything up to a cursor. */
export interface FrameEncoder {
  /**
   * What it need not be given of the log. All of it is, unless said otherwise: what to tell may
   * follow from what was told before the cursor.
   */
  readonly from?: number;
  /** What comes before everything else, whatever there is to tell. */
  readonly opening?: Uint8Array<ArrayBuffer> | undefined;
  /** Nothing of what is not past the cursor. A chunk with number 0 has none. */
  encode(entries: readonly LoggedChunk[]): Uint8Array<ArrayBuffer>;
  /** This was all of it: the turn has ended, or this viewer is let go to answer. */
  end(): Uint8Array;
  /** The turn goes on, and this viewer's stream does not. */
  farewell(why: ErrorKind): Uint8Array;
  /**
   * Where in what comes next this viewer is let go because it can answer only afterwards; asked
   * about every batch, before that is encoded. Not there on a wire that answers beside its stream.
   */
  pauseIn?(batch: readonly LoggedChunk[]): number | undefined;
}

export type Viewing = {
  turn: TurnInfo;
  /** The highest number this viewer has seen. */
  after: number;
  /** It knows cursors and comes back by itself: no error is put on in place of what it missed. */
  isResuming: boolean;
  /** It has answered these approvals, and goes on with the message that it was let go with. */
  answered?: ReadonlySet<string> | undefined;
  /** Whether an answer of this viewer would be taken; it is, unless said otherwise. */
  mayAnswer?: (question: Question) => boolean;
  /** The turn is known to have asked nothing yet, neither a question nor for an approval. */
  hasNotAsked?: boolean;
};

/** Shared by all viewers: nothing waits between a batch's first byte and its last. */
const writer = createByteWriter();
const FRAME_END = new TextEncoder().encode('}\n\n');

/**
 * Logged chunks → the AI SDK's SSE. A chunk that becomes several frames has its number on the last
 * of them, so that a cursor never stands between them.
 */
export function createFrameEncoder(
  viewing: Viewing,
  client: AiSdkMajor | 'portable',
): FrameEncoder {
  const { turn, after, isResuming, answered, mayAnswer, hasNotAsked = false } = viewing;
  const { turnId, messageId } = turn;
  // The others get no approvals, only the questions behind them.
  const approvals =
    client === 6 || client === 7
      ? trackApprovals({ answered, ...(mayAnswer && { mayAnswer }) })
      : undefined;
  let pausedAt: number | undefined;
  const downgrade = createDowngrade(client);
  /** What may be open on the client's screen: the log may be gone when that has to be closed. */
  const seen: Chunk[] = [];
  // Nearly all frames are text, and differ in their number and their words alone.
  let head: TextHead | undefined;

  function writeText(id: string, delta: string, seq: number): void {
    if (head?.partId !== id || seq < head.from || seq > head.to) head = headOf(turnId, id, seq);
    writer.bytes(numbered(head, seq));
    writer.json(delta);
    writer.bytes(FRAME_END);
  }

  function write(chunk: Chunk, seq: number): void {
    const name = { eventName: true };
    writer.text(encodeSse(chunk, seq === 0 ? name : { ...name, id: `${turnId}:${seq}` }));
  }

  function writeAll(entries: readonly LoggedChunk[]): void {
    for (const { seq, chunk } of entries) {
      const isSeen = seq <= after && seq > 0;
      if (seq > 0 && isPlainText(chunk) && downgrade.passesText()) {
        if (!isSeen) writeText(chunk.id, chunk.delta, seq);
        continue;
      }
      if (!isResuming && isStructure(chunk)) seen.push(chunk);
      const sent = downgrade(chunk);
      if (isSeen) continue;
      const last = sent.length - 1;
      for (let i = 0; i <= last; i++) write(sent[i] as Chunk, i === last ? seq : 0);
    }
  }

  /** With the cursor's own number: whoever is cut off behind it comes back to the same place. */
  function open(): Uint8Array<ArrayBuffer> {
    writer.drop();
    write({ type: 'start', messageId }, after);
    return writer.take();
  }

  return {
    // What 7 is told never follows from what it was told before, but for what it was asked.
    from: client === 7 && isResuming && hasNotAsked && !answered ? after : 0,
    opening: answered && open(),
    ...(approvals && {
      pauseIn(batch) {
        approvals.see(batch);
        pausedAt = approvals.pauseFrom(after);
        return pausedAt;
      },
    }),
    encode(entries) {
      writer.drop();
      writeAll(entries);
      return writer.take();
    },
    end() {
      writer.drop();
      // Not in the log, so it has no number.
      if (pausedAt !== undefined) write({ type: 'finish', finishReason: 'tool-calls' }, 0);
      writer.text(SSE_DONE);
      return writer.take();
    },
    farewell({ code, userMessage: message }) {
      writer.drop();
      if (!isResuming) {
        const closings = closingsOf(seen, messageId, { status: 'failed', code, message });
        writeAll(closings.map((chunk) => ({ seq: 0, chunk })));
        writer.text(SSE_DONE);
      }
      return writer.take();
    },
  };
}

/** What opens or closes something: little of a long answer. */
function isStructure({ type }: Chunk): boolean {
  return type !== 'text-delta' && !type.endsWith('-delta') && !type.startsWith('data-');
}

/** What comes before the words in a part's frames, for all numbers with as many digits. */
type TextHead = {
  partId: string;
  from: number;
  to: number;
  bytes: Uint8Array;
  /** Where the number's last digit is. */
  lastDigit: number;
};

function headOf(turnId: string, partId: string, seq: number): TextHead {
  const { length } = String(seq);
  const until = `event: text-delta\nid: ${turnId}:${'0'.repeat(length)}`;
  const encoder = new TextEncoder();
  return {
    partId,
    from: 10 ** (length - 1),
    to: 10 ** length - 1,
    bytes: encoder.encode(
      `${until}\ndata: {"type":"text-delta","id":${JSON.stringify(partId)},"delta":`,
    ),
    lastDigit: encoder.encode(until).length - 1,
  };
}

/** The same bytes each time, with another number in them. */
function numbered({ bytes, lastDigit }: TextHead, seq: number): Uint8Array {
  for (let at = lastDigit, left = seq; left > 0; at--) {
    const tenth = Math.floor(left / 10);
    bytes[at] = ZERO + left - tenth * 10;
    left = tenth;
  }
  return bytes;
}

const ZERO = 0x30;
