/** Server-sent events: chunks → frames, bytes → frames. https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { createParser } from 'eventsource-parser';
import type { Chunk } from './chunks.ts';

/** What AI SDK servers send last. Clients do not need it. */
export const SSE_DONE = 'data: [DONE]\n\n';

export type SseFrame = { event?: string; id?: string; data: string };

// A line break would let a value forge lines of its own; a NUL makes readers drop the field.
function isSafe(value: string): boolean {
  return !/[\r\n\0]/.test(value);
}

/**
 * One chunk as one frame. AI SDK clients read `data` only; `EventSource` users filter by `event`
 * and resume by `id`. An id or event name that no frame can carry is left out.
 *
 * ```ts
 * encodeSse({ type: 'start', messageId: 'm1' }, { id: 't1:1', eventName: true });
 * // event: message-start
 * // id: t1:1
 * // data: {"type":"start","messageId":"m1"}
 * ```
 */
export function encodeSse(chunk: Chunk, options?: { id?: string; eventName?: boolean }): string {
  let frame = `data: ${JSON.stringify(chunk)}\n\n`;
  if (options === undefined) return frame;
  const { id, eventName } = options;
  if (id !== undefined && isSafe(id)) frame = `id: ${id}\n${frame}`;
  if (eventName) {
    const { type } = chunk;
    const name = type === 'start' || type === 'finish' ? `message-${type}` : type;
    if (isSafe(name)) frame = `event: ${name}\n${frame}`;
  }
  return frame;
}

/**
 * Bytes in, frames out, however the bytes are split. A frame whose blank line has not come by
 * `end()` is dropped: it was cut, and half of it may be missing. Nothing is read after `end()`.
 *
 * `bytes` hears of every push before its frames do, comments and heartbeats included: silence on
 * it is silence on the wire.
 */
export function createSseDecoder(on: {
  frame(frame: SseFrame): void;
  bytes?(count: number): void;
}): { push(bytes: Uint8Array | string): void; end(): void } {
  // The parser strips the byte order mark; were both to do it, two marks would vanish.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const parser = createParser({ onEvent: (frame) => on.frame(frame) });
  let ended = false;
  return {
    push(bytes) {
      if (ended) return;
      if (typeof bytes === 'string') {
        on.bytes?.(new TextEncoder().encode(bytes).length);
        parser.feed(bytes);
      } else {
        on.bytes?.(bytes.length);
        parser.feed(decoder.decode(bytes, { stream: true }));
      }
    },
    end() {
      ended = true;
      parser.reset();
    },
  };
}
