/** Server-sent events: chunks → frames, bytes → frames. https://html.spec.whatwg.org/multipage/server-sent-events.html */
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

/** Text in, frames out, however the text is split: what the clients are made of. */
export function createFrameReader(onFrame: (frame: SseFrame) => void): (text: string) => void {
  // The character to pass over should the next text begin with it: the one byte order mark, then
  // the LF of a CRLF that was split.
  let skip = '\ufeff';
  // The line that has begun. Only added to until it ends, so a long line costs linear time.
  let begun = '';
  let id: string | undefined;
  let event: string | undefined;
  let data: string | undefined;
  return (text) => {
    if (!text) return;
    if (text[0] === skip) text = text.slice(1);
    skip = text.endsWith('\r') ? '\n' : '';
    text = text.replace(/\r\n?/g, '\n');
    let at = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', at)) {
      const line = begun + text.slice(at, end);
      begun = '';
      at = end + 1;
      if (!line) {
        const frame = { id, event, data };
        id = event = data = undefined;
        // Should it throw, the rest of this text is dropped.
        if (frame.data != null) onFrame(frame as SseFrame);
      } else {
        let colon = line.indexOf(':');
        if (colon < 0) colon = line.length;
        const value = line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
        const field = line.slice(0, colon);
        if (field === 'data') data = data == null ? value : `${data}\n${value}`;
        else if (field === 'event') event = value || undefined;
        else if (field === 'id' && !value.includes('\0')) id = value;
      }
    }
    begun += text.slice(at);
  };
}

/** For bytes of UTF-8, characters that were split included. */
function createByteDecoder(): (bytes?: Uint8Array) => string {
  // The byte order mark is the reader's affair: this would pass over every one.
  const decoder = new TextDecoder(undefined, { ignoreBOM: true });
  // After an ASCII byte no character is half read. Engines decode faster when told so.
  return (bytes) => decoder.decode(bytes, { stream: !((bytes?.at(-1) as number) < 128) });
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
  let isEnded = false;
  const decode = createByteDecoder();
  const read = createFrameReader((frame) => {
    if (!isEnded) on.frame(frame);
  });
  return {
    push(bytes) {
      if (isEnded) return;
      const isText = typeof bytes === 'string';
      on.bytes?.((isText ? new TextEncoder().encode(bytes) : bytes).length);
      read(isText ? bytes : decode(bytes));
    },
    end() {
      isEnded = true;
    },
  };
}
