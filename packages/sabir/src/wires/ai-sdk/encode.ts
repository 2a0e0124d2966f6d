import type { AiSdkMajor, Chunk } from '../../core/chunks.ts';
import { createDowngrade, isPlainText } from '../../core/downgrade.ts';
import { encodeSse, SSE_DONE } from '../../core/sse.ts';
import { closingsOf } from '../../turns/closings.ts';
import type { LoggedChunk, TurnInfo } from '../../turns/log.ts';
import { createByteWriter } from '../byte-writer.ts';
import type { Bytes, WireEncoder } from '../wire-encoder.ts';

/** Shared by all encoders: nothing waits between a batch's first byte and its last. */
const writer = createByteWriter();
const FRAME_END = new TextEncoder().encode('}\n\n');

type Turn = Pick<TurnInfo, 'turnId' | 'messageId'>;
type Client = AiSdkMajor | 'portable';

/**
 * Logged chunks → the AI SDK's SSE. A chunk that becomes several frames has its number on the last
 * of them, so that a cursor never stands between them.
 */
export function createFrameEncoder(
  turn: Turn,
  client: Client,
  downgrade = createDowngrade(client),
): WireEncoder {
  const { turnId, messageId } = turn;
  // Nearly all frames are text, and differ in their number and their words alone.
  let head: TextHead | undefined;

  function writeText(id: string, delta: string, seq: number): void {
    if (head?.partId !== id || seq < head.from || seq > head.to) head = headOf(turnId, id, seq);
    writer.bytes(numbered(head, seq));
    writer.json(delta);
    writer.bytes(FRAME_END);
  }

  function writeAll(entries: Iterable<LoggedChunk>, fit = downgrade): void {
    for (const { seq, chunk } of entries) {
      if (seq > 0 && isPlainText(chunk) && fit.passesText()) {
        writeText(chunk.id, chunk.delta, seq);
        continue;
      }
      const sent = fit(chunk);
      const last = sent.length - 1;
      for (let i = 0; i <= last; i++) writeFrame(turnId, sent[i] as Chunk, i === last ? seq : 0);
    }
  }

  const encoder: WireEncoder = {
    key: `ai-sdk ${client}`,
    // What 7 is sent never follows from what it was sent before.
    isStateless: client === 7,
    skip(entries) {
      if (client === 7) return;
      for (const { chunk } of entries) {
        if (!isPlainText(chunk) || !downgrade.passesText()) downgrade(chunk);
      }
    },
    encode(entries) {
      writer.drop();
      writeAll(entries);
      return writer.take();
    },
    end() {
      writer.drop();
      writer.text(SSE_DONE);
      return writer.take();
    },
    farewell({ code, userMessage: message }, { structure }) {
      writer.drop();
      const closings = closingsOf(structure, messageId, { status: 'failed', code, message });
      // Not in the log, so they have no number.
      writeAll(
        closings.map((chunk) => ({ seq: 0, chunk })),
        downgrade.fork(),
      );
      writer.text(SSE_DONE);
      return writer.take();
    },
    fork: () => (client === 7 ? encoder : createFrameEncoder(turn, client, downgrade.fork())),
  };
  return encoder;
}

/** The frame that opens a message which a client goes on with, under the cursor it goes on from. */
export function encodeStart({ turnId, messageId }: Turn, after: number): Bytes {
  writer.drop();
  writeFrame(turnId, { type: 'start', messageId }, after);
  return writer.take();
}

/** What ends the stream of a client that can answer an approval only then; the turn goes on. */
export function encodePause({ turnId }: Turn): Bytes {
  writer.drop();
  writeFrame(turnId, { type: 'finish', finishReason: 'tool-calls' }, 0);
  writer.text(SSE_DONE);
  return writer.take();
}

/** A chunk with number 0 is not in the log, and has no cursor. */
function writeFrame(turnId: string, chunk: Chunk, seq: number): void {
  const name = { eventName: true };
  writer.text(encodeSse(chunk, seq === 0 ? name : { ...name, id: `${turnId}:${seq}` }));
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
