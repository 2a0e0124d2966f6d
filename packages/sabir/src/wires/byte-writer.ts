const encoder = new TextEncoder();

const FIRST_BYTES = 64 * 1024;
/** Batches up to this size share memory: one that is kept keeps a pool of this size. */
const SMALL_BYTES = 1024;
const POOL_BYTES = 8 * 1024;
/** What one large batch needed is not kept for all the small ones after it. */
const MAX_KEPT_BYTES = 1024 * 1024;

/**
 * Text and bytes, one after another, in memory that is used again. Strings that were put together
 * first and encoded afterwards would take twice the time.
 */
export function createByteWriter() {
  let bytes = new Uint8Array(FIRST_BYTES);
  let length = 0;
  let pool = new ArrayBuffer(POOL_BYTES);
  let poolAt = 0;

  /** Memory of its own for every small batch would cost more than filling it. */
  function copySmall(): Uint8Array<ArrayBuffer> {
    if (poolAt + length > POOL_BYTES) {
      pool = new ArrayBuffer(POOL_BYTES);
      poolAt = 0;
    }
    const taken = new Uint8Array(pool, poolAt, length);
    taken.set(bytes.subarray(0, length));
    poolAt += length;
    return taken;
  }

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
      const taken = length <= SMALL_BYTES ? copySmall() : bytes.slice(0, length);
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
