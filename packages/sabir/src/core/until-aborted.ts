import { forget } from './forget.ts';

/**
 * Waiting that ends with a signal. A model, a tool or a generator may take no notice of it: then it
 * is left, and whatever it still says is heard by nobody.
 */

/** What items are pulled from. `leave` resolves when the source has cleaned up, and never rejects. */
export type Source<Item> = { next(): Promise<IteratorResult<Item>>; leave(): Promise<void> };

/** What it resolves with; undefined if the signal aborts first, also where it rejects after that. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const leave = () => resolve(undefined);
    const done = () => signal.removeEventListener('abort', leave);
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave);
    promise.then(
      (value) => {
        done();
        resolve(value);
      },
      (error) => {
        done();
        reject(error);
      },
    );
  });
}

/** Everything it gives, until it ends or the signal aborts. Nothing is opened after that. */
export async function* readUntilAborted<Item>(
  open: () => unknown,
  signal: AbortSignal,
): AsyncGenerator<Item> {
  if (signal.aborted) return;
  const opening = (async () => toSource<Item>(await open()))();
  const source = await untilAborted(opening, signal);
  if (!source) {
    // It may come yet.
    forget(async () => (await opening).leave());
    return;
  }
  let isOver = false;
  try {
    while (!signal.aborted) {
      const next = await untilAborted(source.next(), signal);
      isOver = next?.done === true;
      if (!next || next.done || signal.aborted) return;
      yield next.value;
    }
  } finally {
    if (!isOver) void source.leave();
  }
}

/** A stream or any other async iterable. Throws for anything else. */
export function toSource<Item>(given: unknown): Source<Item> {
  const from = (given ?? {}) as Partial<ReadableStream<Item> & AsyncIterable<Item>>;
  // Not by its iterator: that could not be left while it waits.
  const reader = from.getReader?.() as ReadableStreamDefaultReader<Item> | undefined;
  if (reader) {
    return {
      next: () => reader.read() as Promise<IteratorResult<Item>>,
      leave: () => forget(() => reader.cancel()),
    };
  }
  const iterator = from[Symbol.asyncIterator]?.();
  if (!iterator) throw new TypeError('The answer is no async iterable of chunks.');
  return { next: () => iterator.next(), leave: () => forget(() => iterator.return?.()) };
}
