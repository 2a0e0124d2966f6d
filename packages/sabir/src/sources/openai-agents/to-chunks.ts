import type { Chunk, ChunkOf, PortableChunk } from '../../core/chunks.ts';
import {
  type NamedAgent,
  nameOf,
  type OpenAIAgentsOptions,
  type RunItem,
  type RunStreamEvent,
} from './events.ts';
import { createOpenAIAgentsTranslator, type OpenAIAgentsTranslator } from './translate.ts';

/** What `run(agent, input, { stream: true })` gives, as far as it is looked at. */
export interface StreamedRun extends AsyncIterable<RunStreamEvent> {
  readonly completed: Promise<unknown>;
  readonly interruptions?: readonly RunItem[] | undefined;
  readonly cancelled?: boolean;
  readonly currentAgent?: NamedAgent | undefined;
  /** A web stream. */
  toStream?(): unknown;
}

const NOT_STREAMED = 'This is no streamed run. Call run(agent, input, { stream: true }).';

/** A reader can be stopped while it waits for an event, an iterator only after it. */
interface EventReader {
  read(): Promise<{ done: boolean; value?: RunStreamEvent | undefined }>;
  cancel(): Promise<unknown>;
}

/**
 * A run of the OpenAI Agents SDK → AI SDK chunks.
 *
 * ```ts
 * const running = run(agent, toAgentInput(messages), { stream: true, signal: request.signal });
 * return createUIMessageStreamResponse({ stream: toChunks(running) });
 * ```
 *
 * Whatever happens, the stream ends as a turn does: every part closed, then `finish`. A run that
 * waits for an approval ends as `paused`; pass its successor the `message` to go on with.
 */
export function toChunks(
  run: StreamedRun | Promise<StreamedRun>,
  options: OpenAIAgentsOptions & { approvals: true },
): ReadableStream<ChunkOf<6>>;
export function toChunks(
  run: StreamedRun | Promise<StreamedRun>,
  options?: OpenAIAgentsOptions & { approvals?: false },
): ReadableStream<PortableChunk>;
export function toChunks(
  run: StreamedRun | Promise<StreamedRun>,
  options: OpenAIAgentsOptions = {},
): ReadableStream<Chunk> {
  const turn = openTurn(run, options);
  return new ReadableStream<Chunk>({
    async pull(controller) {
      const chunks = await turn.next();
      if (!chunks) controller.close();
      else for (const chunk of chunks) controller.enqueue(chunk);
    },
    cancel: () => turn.leave(),
  });
}

/** The chunks of a turn that is one run, as many as an event makes at a time; then undefined. */
function openTurn(given: StreamedRun | Promise<StreamedRun>, options: OpenAIAgentsOptions) {
  let translator: OpenAIAgentsTranslator | undefined;
  let reading: RunReading | undefined;
  let hasLeft = false;

  async function open(): Promise<RunReading> {
    const run = await given;
    if (typeof run !== 'object' || run === null) throw new TypeError(NOT_STREAMED);
    const agent = nameOf(run.currentAgent);
    translator = createOpenAIAgentsTranslator({
      ...(agent !== undefined && { agent }),
      ...options,
    });
    reading = openRun(run, translator);
    if (hasLeft) reading.leave();
    return reading;
  }

  async function read(): Promise<Chunk[]> {
    try {
      const { next, run } = reading ?? (await open());
      const chunks = await next();
      return chunks ?? endOf(run, translator as OpenAIAgentsTranslator);
    } catch (error) {
      translator ??= createOpenAIAgentsTranslator(options);
      return translator.end(undefined, error ?? 'unknown');
    }
  }

  return {
    next: async () => (translator?.ended ? undefined : read()),
    leave(): void {
      hasLeft = true;
      reading?.leave();
    },
  };
}

function endOf(run: StreamedRun, translator: OpenAIAgentsTranslator): Chunk[] {
  const interruptions = run.interruptions ?? [];
  if (interruptions.length === 0) {
    return translator.end({ status: run.cancelled ? 'stopped' : 'finished' });
  }
  return [
    ...translator.push({ type: 'run_interrupted', interruptions }),
    ...translator.end({ status: 'paused' }),
  ];
}

type RunReading = ReturnType<typeof openRun>;

/** One run, which its turn may outlive. */
export function openRun(run: StreamedRun, translator: OpenAIAgentsTranslator) {
  const { completed = Promise.resolve() } = run;
  const events = readerOf(run);
  let hasLeft = false;
  // Whoever leaves early does not wait for it, and must not die of how it ends.
  completed.catch(() => undefined);
  return {
    run,
    /** What the next events say; undefined when the run is over. Throws what the run throws. */
    async next(): Promise<Chunk[] | undefined> {
      for (;;) {
        const { done, value } = await events.read();
        if (done) break;
        const chunks = translator.push(value);
        if (chunks.length > 0) return chunks;
      }
      if (!hasLeft) await completed;
      return undefined;
    },
    /** Stops the run. */
    leave(): void {
      hasLeft = true;
      events.cancel().catch(() => undefined);
    },
  };
}

function readerOf(run: StreamedRun): EventReader {
  if (!(Symbol.asyncIterator in run)) throw new TypeError(NOT_STREAMED);
  const stream = run.toStream?.() as { getReader(): EventReader } | undefined;
  if (stream) return stream.getReader();
  const iterator = run[Symbol.asyncIterator]();
  return {
    read: async () => {
      const { done = false, value } = await iterator.next();
      return { done, value };
    },
    cancel: async () => iterator.return?.(),
  };
}
