const encoder = new TextEncoder();

const FIRST_BYTES = 64 * 1024;
/** What one large batch needed is not kept for all the small ones after it. */
const MAX_KEPT_BYTES = 1024 * 1024;

/**
 * Text and bytes, one after another, in memory that is used again. Strings that were put together
 * first and encoded afterwards would take twice the time.
 */
export function createByteWriter() {
  let bytes = new Uint8Array(FIRST_BYTES);
  let length = 0;

  function makeRoom(more: number): void {
    if (length + more <= bytes.length) return;
    const larger = new Uint8Array(Math.max(bytes.length * 2, length + more));
    larger.set(bytes.subarray(0, length));
    bytes = larger;
  }

  function text(value: string): void {
    // No character of a string takes more.
    makeRoom(value.length * 3);
    length += encoder.encodeInto(value, bytes.subarray(length)).written;
  }

  return {
    text,
    bytes(value: Uint8Array): void {
      makeRoom(value.length);
      bytes.set(value, length);
      length += value.length;
    },
    /** As JSON, between quotes. Nearly all text is such that every character is itself. */
    json(value: string): void {
      makeRoom(value.length + 2);
      bytes[length] = QUOTE;
      for (let i = 0, at = length + 1; i < value.length; i++, at++) {
        const code = value.charCodeAt(i);
        if (!isPlain(code)) {
          text(JSON.stringify(value));
          return;
        }
        bytes[at] = code;
      }
      length += value.length + 2;
      bytes[length - 1] = QUOTE;
    },
    /** What was written since it was last taken, or dropped. */
    take(): Uint8Array<ArrayBuffer> {
      const taken = bytes.slice(0, length);
      length = 0;
      if (bytes.length > MAX_KEPT_BYTES) bytes = new Uint8Array(FIRST_BYTES);
      return taken;
    },
    drop(): void {
      length = 0;
    },
  };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isPlain(code: number): boolean {
  return code >= 0x20 && code < 0x7f && code !== QUOTE && code !== BACKSLASH;
}
