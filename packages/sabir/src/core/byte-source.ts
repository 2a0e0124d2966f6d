/**
 * A response's body that pushes its bytes, for servers that can write them without a web stream in
 * between. Any other server reads the same body as the web stream that it is as well.
 */

/** Where a body's bytes go. */
export interface ByteSink {
  /** False: write no more until `resume()` is called. `isShared`: other sinks are given the same bytes. */
  write(bytes: Uint8Array, isShared?: boolean): boolean;
  /** Writes the last bytes, if there are any, whether it is ready or not; there is no more. */
  end(last?: Uint8Array): void;
}

export interface ByteSource {
  /** Called once, before `resume`. Nothing is written before that. */
  open(sink: ByteSink): void;
  /** The sink takes more. */
  resume(): void;
  /** The client is gone: nothing is written any more. */
  cancel(): void;
}

type Held = { source: ByteSource; letGo(): void };

const held = new WeakMap<Response, Held>();

/** A response with this body, which is cancelled when `signal` aborts, read or not. */
export function toByteResponse(
  source: ByteSource,
  init: ResponseInit,
  signal: AbortSignal,
): Response {
  let isOver = false;
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  const letGo = () => signal.removeEventListener('abort', leave);
  const leave = () => {
    if (isOver) return;
    stream?.close();
    cancel();
  };

  function cancel(): void {
    isOver = true;
    letGo();
    source.cancel();
  }

  const sink: ByteSink = {
    write(bytes) {
      stream?.enqueue(bytes);
      return (stream?.desiredSize ?? 0) > 0;
    },
    end(last) {
      isOver = true;
      letGo();
      if (last) stream?.enqueue(last);
      stream?.close();
    },
  };
  let isOpen = false;
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        stream = controller;
      },
      pull() {
        if (!isOpen) source.open(sink);
        isOpen = true;
        if (!isOver) source.resume();
        // A pull that has brought nothing is not repeated by the stream.
      },
      cancel,
    },
    // Nothing is made before it is asked for: a slow reader is a cursor, not a queue.
    { highWaterMark: 0 },
  );
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  const response = new Response(body, init);
  held.set(response, { source, letGo });
  return response;
}

/**
 * The source behind a response, for a server that writes the bytes itself and cancels it when the
 * client leaves. Undefined if there is none, or if the stream is being read.
 */
export function takeSource(response: Response): ByteSource | undefined {
  if (response.bodyUsed || response.body?.locked) return undefined;
  const { source, letGo } = held.get(response) ?? {};
  letGo?.();
  held.delete(response);
  return source;
}
