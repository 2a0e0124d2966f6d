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
  const decoder = new TextDecoder(undefined, { ignoreBOM: true });
  // The character to pass over should the next text begin with it: the one byte order mark, then
  // the LF of a CRLF that was split.
  let skip = '\ufeff';
  // The line that has begun. Undefined once ended.
  let pieces: string[] | undefined = [];
  let id: string | undefined;
  let event: string | undefined;
  let data: string | undefined;
  return {
    push(bytes) {
      if (!pieces) return;
      const isText = typeof bytes === 'string';
      on.bytes?.((isText ? new TextEncoder().encode(bytes) : bytes).length);
      // After an ASCII byte no character is half read. Engines decode faster when told so.
      let text = isText
        ? bytes
        : decoder.decode(bytes, { stream: !((bytes[bytes.length - 1] as number) < 128) });
      if (!text) return;
      if (text[0] === skip) text = text.slice(1);
      skip = text.endsWith('\r') ? '\n' : '';
      if (text.includes('\r')) text = text.replace(/\r\n?/g, '\n');
      let end = text.indexOf('\n');
      if (pieces[0]) {
        // More pieces than the first has characters: the line has doubled since it was last joined.
        // So a long line costs linear time, and does not stay in crumbs. Adding strings up would
        // leave the engine's rope, slow to read from.
        if (pieces.push(text) <= pieces[0].length && end < 0) return;
        text = pieces.join('');
        end = text.indexOf('\n');
      }
      // Should a callback throw, the rest of this push is dropped.
      pieces = [];
      let at = 0;
      for (; end >= 0; end = text[at] === '\n' ? at : text.indexOf('\n', at)) {
        if (at === end) {
          const frame = { id, event, data };
          id = event = data = undefined;
          if (frame.data !== undefined) on.frame(frame as SseFrame);
          if (!pieces) return;
        } else {
          const length = text.startsWith('data', at)
            ? 4
            : text.startsWith('event', at)
              ? 5
              : text.startsWith('id', at)
                ? 2
                : 0;
          const colon = at + length;
          if (length && (text[colon] === ':' || colon === end)) {
            const value = text.slice(colon + (text[colon + 1] === ' ' ? 2 : 1), end);
            if (length === 4) data = data?.concat('\n', value) ?? value;
            else if (length === 5) event = value || undefined;
            else if (!value.includes('\0')) id = value;
          }
        }
        at = end + 1;
      }
      pieces = [text.slice(at)];
    },
    end() {
      pieces = data = undefined;
    },
  };
}
