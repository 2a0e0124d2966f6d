/** A crowd of viewers on raw sockets: each counts its frames, and some are read as a client reads. */
import { connect, type Socket } from 'node:net';
import { createSseDecoder } from 'sabir';

const LF = 0x0a;

export type Crowd = {
  /** Resolves when every viewer has its first frame. */
  connected: Promise<void>;
  /** Resolves when every response has ended. */
  ended: Promise<void>;
  /** Frames that each viewer got. */
  readonly frames: number[];
  /** Milliseconds from sending to parsing, of the viewers that are read whole. */
  readonly latencies: number[];
  /** The text that each of those got. */
  readonly texts: string[];
};

type Viewer = { socket: Socket; begun: Promise<void>; ended: Promise<void> };

/** Every `sampleEvery`th viewer is parsed; a few are opened at a time, as a listening queue is short. */
export async function openCrowd(
  { port, path }: { port: number; path: string },
  { size, sampleEvery }: { size: number; sampleEvery: number },
): Promise<Crowd> {
  const frames: number[] = [];
  const latencies: number[] = [];
  const texts: string[] = [];
  const viewers: Viewer[] = [];

  function open(index: number): Viewer {
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const socket = connect({ host: '127.0.0.1', port, noDelay: true });
    const isSample = index % sampleEvery === 0;
    const sample = isSample ? texts.push('') - 1 : -1;
    const decoder = createSseDecoder({
      frame({ data }) {
        if (data === '[DONE]') return;
        const { type, delta } = JSON.parse(data) as { type: string; delta?: string };
        if (type !== 'text-delta' || !delta) return;
        texts[sample] += delta;
        latencies.push(Number(process.hrtime.bigint() - BigInt(delta.trim())) / 1e6);
      },
    });
    const body = createBodyReader((bytes) => {
      if (isSample) decoder.push(bytes);
    });
    let last = 0;
    frames[index] = 0;
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-sabir-detach: 1\r\n\r\n`);
    socket.on('data', (bytes: Buffer) => {
      for (const byte of bytes) {
        if (byte === LF && last === LF) frames[index] = (frames[index] ?? 0) + 1;
        last = byte;
      }
      if (isSample) body(bytes);
      if ((frames[index] ?? 0) > 0) begun.resolve();
      // The last chunk of a chunked body.
      if (bytes.length >= 5 && bytes.subarray(-5).equals(LAST_CHUNK)) socket.end();
    });
    socket.on('error', (error) => {
      begun.reject(error);
      ended.resolve();
    });
    socket.on('close', () => ended.resolve());
    return { socket, begun: begun.promise, ended: ended.promise };
  }

  const connecting = (async () => {
    for (let index = 0; index < size; ) {
      const some: Viewer[] = [];
      for (let n = 0; n < 50 && index < size; n++, index++) some.push(open(index));
      viewers.push(...some);
      await Promise.all(some.map(({ begun }) => begun));
    }
  })();
  return {
    connected: connecting,
    ended: connecting.then(async () => {
      await Promise.all(viewers.map(({ ended }) => ended));
    }),
    frames,
    latencies,
    texts,
  };
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/** Takes the headers and the chunked framing off, wherever the bytes are split. */
function createBodyReader(onBytes: (bytes: Uint8Array) => void): (bytes: Buffer) => void {
  let pending: Buffer = Buffer.alloc(0);
  let left = -1;
  let hasHeaders = false;
  return (bytes) => {
    pending = pending.length > 0 ? Buffer.concat([pending, bytes]) : bytes;
    for (;;) {
      if (!hasHeaders) {
        const end = pending.indexOf('\r\n\r\n');
        if (end < 0) return;
        hasHeaders = true;
        pending = pending.subarray(end + 4);
      } else if (left < 0) {
        const end = pending.indexOf('\r\n');
        if (end < 0) return;
        left = Number.parseInt(pending.toString('latin1', 0, end), 16);
        pending = pending.subarray(end + 2);
      } else {
        if (pending.length < left + 2) return;
        onBytes(pending.subarray(0, left));
        pending = pending.subarray(left + 2);
        left = -1;
      }
    }
  };
}
