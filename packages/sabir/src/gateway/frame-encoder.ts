import type { AiSdkMajor, Chunk } from '../chunks.ts';
import { createDowngrade } from '../downgrade.ts';
import { encodeSse } from '../sse.ts';
import type { LoggedChunk } from '../turns/log.ts';

/**
 * Logged chunks → SSE for one viewer, who has seen everything up to `after`. A chunk that becomes
 * several frames has its number on the last of them, so that a cursor never stands between them;
 * number 0 is none.
 */
export function createFrameEncoder(
  turnId: string,
  client: AiSdkMajor | 'portable',
  after: number,
): (entries: readonly LoggedChunk[]) => string {
  const downgrade = createDowngrade(client);
  // Nearly all frames are text: what does not change in them is put together once a part.
  const textHead = `event: text-delta\nid: ${turnId}:`;
  let partId: string | undefined;
  let partHead = '';

  function textFrame(id: string, delta: string, seq: number): string {
    if (id !== partId) {
      partId = id;
      partHead = `\ndata: {"type":"text-delta","id":${JSON.stringify(id)},"delta":`;
    }
    return `${textHead}${seq}${partHead}${JSON.stringify(delta)}}\n\n`;
  }

  function frame(chunk: Chunk, seq: number): string {
    if (seq === 0) return encodeSse(chunk, { eventName: true });
    if (chunk.type === 'text-delta' && isPlain(chunk)) {
      return textFrame(chunk.id, chunk.delta, seq);
    }
    return encodeSse(chunk, { id: `${turnId}:${seq}`, eventName: true });
  }

  return (entries) => {
    let text = '';
    for (const { seq, chunk } of entries) {
      const sent = downgrade(chunk);
      if (seq <= after && seq > 0) continue;
      const last = sent.length - 1;
      for (let i = 0; i <= last; i++) text += frame(sent[i] as Chunk, i === last ? seq : 0);
    }
    return text;
  };
}

/** Has its type, its id and its delta, and nothing else. */
function isPlain(chunk: object): boolean {
  let fields = 0;
  for (const _ in chunk) fields++;
  return fields === 3;
}
