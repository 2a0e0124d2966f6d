import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ByteSink, ByteSource } from '../../core/byte-source.ts';

/** So much at most is handed to a socket at once: what a slow client has taken shows in between. */
export const PIECE_BYTES = 64 * 1024;

/** Bytes that many responses share, as they are framed for HTTP. */
const shared = new WeakMap<Uint8Array, Buffer>();

/** One chunk of HTTP's chunked encoding, to be written in one go. */
function toHttpChunk(bytes: Uint8Array): Buffer {
  const head = `${bytes.length.toString(16)}\r\n`;
  const chunk = Buffer.allocUnsafe(head.length + bytes.length + 2);
  chunk.write(head, 'latin1');
  chunk.set(bytes, head.length);
  chunk.write('\r\n', head.length + bytes.length, 'latin1');
  return chunk;
}

function toSharedHttpChunk(bytes: Uint8Array): Buffer {
  const known = shared.get(bytes);
  if (known) return known;
  const chunk = toHttpChunk(bytes);
  shared.set(bytes, chunk);
  return chunk;
}

/** Sends a body that pushes its bytes. The headers are set, and not sent yet. */
export function sendSource(source: ByteSource, outgoing: ServerResponse, stallMs: number): void {
  const { socket } = outgoing;
  // The headers travel with the first bytes, or alone if there are none yet.
  socket?.cork();
  outgoing.flushHeaders();
  setImmediate(() => socket?.uncork());
  const sink = new NodeSink(source, outgoing, stallMs);
  outgoing.once('close', () => sink.close());
  source.open(sink);
  source.resume();
}

/** A response that is written to as fast as its client takes it. */
class NodeSink implements ByteSink {
  #source: ByteSource;
  #outgoing: ServerResponse;
  #stallMs: number;
  /**
   * The connection, where the bytes can be written to it as they are. A response that waits behind
   * another on its connection has none yet, and HTTP/1.0 and HTTP/2 frame their bodies otherwise.
   */
  #socket: Socket | undefined;
  /** What was not handed over yet. */
  #rest: Uint8Array | undefined;
  #isBlocked = false;
  #stall: NodeJS.Timeout | undefined;
  #isEnding = false;

  constructor(source: ByteSource, outgoing: ServerResponse, stallMs: number) {
    this.#source = source;
    this.#outgoing = outgoing;
    this.#stallMs = stallMs;
    if (outgoing.chunkedEncoding) this.#socket = outgoing.socket ?? undefined;
  }

  write(bytes: Uint8Array, isShared = false): boolean {
    const frame = isShared ? toSharedHttpChunk : toHttpChunk;
    const framed = this.#socket ? frame(bytes) : bytes;
    // A last word to a client that has not taken what came before it.
    this.#rest = this.#rest ? Buffer.concat([this.#rest, framed]) : framed;
    return !this.#isBlocked && this.#push();
  }

  end(last?: Uint8Array): void {
    this.#isEnding = true;
    // One call into the operating system for the last bytes and the end of the body.
    const { socket } = this.#outgoing;
    socket?.cork();
    if (last) this.write(last);
    if (!this.#rest) this.#finish();
    socket?.uncork();
  }

  /** The connection is gone, or the response is complete. */
  close(): void {
    clearTimeout(this.#stall);
    this.#rest = undefined;
    if (!this.#isEnding) this.#source.cancel();
  }

  /** Hands over what there is, for as long as the client takes it. */
  #push(): boolean {
    const target = this.#socket ?? this.#outgoing;
    while (this.#rest) {
      const isLong = this.#rest.length > PIECE_BYTES;
      const piece = isLong ? this.#rest.subarray(0, PIECE_BYTES) : this.#rest;
      this.#rest = isLong ? this.#rest.subarray(PIECE_BYTES) : undefined;
      if (this.#outgoing.destroyed) return false;
      if (target.write(piece)) continue;
      this.#isBlocked = true;
      target.once('drain', this.#onDrain);
      this.#watch();
      return false;
    }
    return true;
  }

  #onDrain = (): void => {
    clearTimeout(this.#stall);
    this.#isBlocked = false;
    if (!this.#push()) return;
    if (this.#isEnding) this.#finish();
    else this.#source.resume();
  };

  /** A client that takes nothing for so long is cut off. */
  #watch(): void {
    if (this.#stallMs < Infinity) {
      this.#stall = setTimeout(() => this.#outgoing.destroy(), this.#stallMs);
    }
  }

  #finish(): void {
    this.#outgoing.end();
    if (!this.#outgoing.writableFinished) this.#watch();
  }
}
