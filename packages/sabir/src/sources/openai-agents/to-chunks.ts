import type { Chunk, ChunkOf, PortableChunk } from '../../chunks.ts';
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
  const left = new AbortController();
  const chunks = readTurn(run, options, left.signal);
  return new ReadableStream<Chunk>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      left.abort();
      await chunks.return();
    },
  });
}

async function* readTurn(
  given: StreamedRun | Promise<StreamedRun>,
  options: OpenAIAgentsOptions,
  left: AbortSignal,
): AsyncGenerator<Chunk, void, undefined> {
  let translator: OpenAIAgentsTranslator | undefined;
  try {
    const run = await given;
    const agent = nameOf(run.currentAgent);
    translator = createOpenAIAgentsTranslator({
      ...(agent !== undefined && { agent }),
      ...options,
    });
    yield* readRun(run, translator, left);
    const interruptions = run.interruptions ?? [];
    if (interruptions.length > 0) {
      yield* translator.push({ type: 'run_interrupted', interruptions });
      yield* translator.end({ status: 'paused' });
    } else yield* translator.end({ status: run.cancelled ? 'stopped' : 'finished' });
  } catch (error) {
    yield* (translator ?? createOpenAIAgentsTranslator(options)).end(undefined, error ?? 'unknown');
  }
}

/**
 * The chunks of one run, which the turn may outlive. Throws what the run throws. When its reader has
 * left, the run is stopped.
 */
export async function* readRun(
  run: StreamedRun,
  translator: OpenAIAgentsTranslator,
  left?: AbortSignal,
): AsyncGenerator<Chunk, void, undefined> {
  const { completed } = run;
  // Whoever leaves early does not wait for it, and must not die of how it ends.
  completed.catch(() => undefined);
  for await (const event of eventsOf(run, left)) yield* translator.push(event);
  if (!left?.aborted) await completed;
}

async function* eventsOf(
  run: StreamedRun,
  left: AbortSignal | undefined,
): AsyncGenerator<RunStreamEvent | undefined, void, undefined> {
  const stream = run.toStream?.() as { getReader(): EventReader } | undefined;
  const reader = left && stream?.getReader();
  if (!reader) {
    yield* run;
    return;
  }
  const stop = () => void reader.cancel().catch(() => undefined);
  left.addEventListener('abort', stop);
  if (left.aborted) stop();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    left.removeEventListener('abort', stop);
    stop();
  }
}
