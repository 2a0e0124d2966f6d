import type { AiSdkMajor, Chunk } from '../chunks.ts';
import { createDowngrade, isPlainText } from '../downgrade.ts';
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
    const name = { eventName: true };
    return encodeSse(chunk, seq === 0 ? name : { ...name, id: `${turnId}:${seq}` });
  }

  return (entries) => {
    let text = '';
    for (const { seq, chunk } of entries) {
      const isSeen = seq <= after && seq > 0;
      if (seq > 0 && isPlainText(chunk) && downgrade.passesText()) {
        if (!isSeen) text += textFrame(chunk.id, chunk.delta, seq);
        continue;
      }
      const sent = downgrade(chunk);
      if (isSeen) continue;
      const last = sent.length - 1;
      for (let i = 0; i <= last; i++) text += frame(sent[i] as Chunk, i === last ? seq : 0);
    }
    return text;
  };
}
