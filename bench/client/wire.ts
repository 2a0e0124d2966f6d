/** Turns as a server sends them, and a `fetch` that answers with them. */
import { type Chunk, encodeSse } from 'sabir';
import { type ContractEvent, encodeContract, toContractSse } from 'sabir/contract';

export type Fetch = typeof globalThis.fetch;
/** One network read after the other. */
export type Reads = Uint8Array<ArrayBuffer>[];

const encoder = new TextEncoder();

/** As servers of the AI SDK send them. */
export function plainFrames(chunks: Chunk[]): Reads {
  const frames = chunks.map((chunk) => encoder.encode(encodeSse(chunk)));
  return [...frames, encoder.encode('data: [DONE]\n\n')];
}

/** The same from our gateway: with names, and with numbers to resume from. */
export function gatewayFrames(chunks: Chunk[]): Reads {
  const frames = chunks.map((chunk, i) =>
    encoder.encode(encodeSse(chunk, { id: `turn-1:${i + 1}`, eventName: true })),
  );
  return [...frames, encoder.encode('data: [DONE]\n\n')];
}

/** The events of the contract. */
export function contractEvents(chunks: Chunk[]): ContractEvent[] {
  return chunks.flatMap(encodeContract({ meta: { runId: 'run-1' } }));
}

/** On the contract, from our gateway. */
export function contractFrames(chunks: Chunk[]): Reads {
  const encode = encodeContract({ meta: { runId: 'run-1' } });
  return chunks.flatMap((chunk, i) => {
    const events = encode(chunk);
    return events.map((event, at) => {
      const isLast = at === events.length - 1;
      return encoder.encode(toContractSse(event, isLast ? `turn-1:${i + 1}` : undefined));
    });
  });
}

/** The same bytes in reads of a size, as of a body that was waiting. */
export function inReadsOf(bytes: number, reads: Reads): Reads {
  const all = Buffer.concat(reads);
  return Array.from({ length: Math.ceil(all.length / bytes) }, (_, i) =>
    // Not a view of a Buffer's pool: a network read has its own memory.
    Uint8Array.from(all.subarray(i * bytes, (i + 1) * bytes)),
  );
}

/** How many reads come before the event loop turns once. */
const READS_PER_LOOP = 32;

/** A pause before the next one, or none. */
export type Pause = (read: number) => Promise<unknown> | undefined;

/**
 * On a network the event loop turns before every read. Without ever doing so no timer would fire,
 * and a client that tells its listeners once a frame would get away with never telling them; doing
 * so every time would measure the loop.
 */
export const turnLoop: Pause = (read) =>
  read % READS_PER_LOOP === 0 ? new Promise((resolve) => setImmediate(resolve)) : undefined;

/** Gives each when it is asked for. */
export function streamOf<T>(values: T[], pause: Pause = turnLoop): ReadableStream<T> {
  let next = 0;
  return new ReadableStream<T>(
    {
      pull(controller) {
        const value = values[next++];
        if (value === undefined) return controller.close();
        const wait = pause(next);
        if (!wait) return controller.enqueue(value);
        return wait.then(() => controller.enqueue(value));
      },
    },
    { highWaterMark: 0 },
  );
}

export function fetchOf(reads: Reads, pause?: Pause): Fetch {
  const headers = { 'content-type': 'text/event-stream', 'x-sabir-turn': 'turn-1' };
  return async () => new Response(streamOf(reads, pause), { headers });
}
