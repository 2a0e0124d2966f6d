import type { AiSdkMajor, Chunk } from '../chunks.ts';
import { createDowngrade, isPlainText } from '../downgrade.ts';
import { encodeSse } from '../sse.ts';
import type { LoggedChunk } from '../turns/log.ts';
import { createByteWriter } from './byte-writer.ts';

/** Shared by all viewers: nothing waits between a batch's first byte and its last. */
const writer = createByteWriter();
const FRAME_END = new TextEncoder().encode('}\n\n');

/**
 * Logged chunks → SSE for one viewer, who has seen everything up to `after`. A chunk that becomes
 * several frames has its number on the last of them, so that a cursor never stands between them;
 * number 0 is none.
 */
export function createFrameEncoder(
  turnId: string,
  client: AiSdkMajor | 'portable',
  after: number,
): (entries: readonly LoggedChunk[]) => Uint8Array<ArrayBuffer> {
  const downgrade = createDowngrade(client);
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

  return (entries) => {
    writer.drop();
    for (const { seq, chunk } of entries) {
      const isSeen = seq <= after && seq > 0;
      if (seq > 0 && isPlainText(chunk) && downgrade.passesText()) {
        if (!isSeen) writeText(chunk.id, chunk.delta, seq);
        continue;
      }
      const sent = downgrade(chunk);
      if (isSeen) continue;
      const last = sent.length - 1;
      for (let i = 0; i <= last; i++) write(sent[i] as Chunk, i === last ? seq : 0);
    }
    return writer.take();
  };
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
