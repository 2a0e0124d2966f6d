/** One viewer of a turn that the test writes: what it is sent, frame by frame. */
import { vi } from 'vitest';
import { toByteResponse } from '../src/core/byte-source.ts';
import type { AiSdkMajor, Chunk } from '../src/core/chunks.ts';
import { createSseDecoder, type SseFrame } from '../src/core/sse.ts';
import { createFanouts, type Fanouts } from '../src/gateway/fanout.ts';
import { createPausing } from '../src/gateway/pausing.ts';
import { type Departure, Viewer, type ViewOptions } from '../src/gateway/viewer.ts';
import type { TurnInfo, TurnLog, TurnWriter } from '../src/turns/log.ts';
import { memoryTurnLog } from '../src/turns/memory.ts';
import { createFrameEncoder } from '../src/wires/ai-sdk/encode.ts';

export type WrittenTurn = {
  log: TurnLog;
  fanouts: Fanouts;
  writer: TurnWriter;
  info(): Promise<TurnInfo>;
};

export async function beginTurn(log: TurnLog = memoryTurnLog()): Promise<WrittenTurn> {
  const begun = await log.begin({
    sessionId: 's',
    chatId: 'c',
    messageId: 'm',
    requestId: crypto.randomUUID(),
  });
  if ('existing' in begun) throw new Error('a turn with a new request id exists already');
  const { writer } = begun;
  async function info(): Promise<TurnInfo> {
    const found = await log.get(writer.turnId);
    if (!found) throw new Error('the log has forgotten the turn');
    return found;
  }
  return { log, fanouts: createFanouts(log, () => undefined), writer, info };
}

type Options = Partial<ViewOptions> & { client?: AiSdkMajor | 'portable' };

/** A viewer that reads only when the test has it read. */
export function view({ fanouts }: WrittenTurn, turn: TurnInfo, options: Options = {}) {
  const { client = 7, after = 0, ...rest } = options;
  const onDeparture = vi.fn((_: Departure) => undefined);
  const onSlow = vi.fn();
  const onReplay = vi.fn();
  const asking = { turn, after, mayAnswer: () => true, hasNotAsked: false };
  const viewer = new Viewer({
    fanouts,
    turn,
    after,
    isResuming: false,
    encoder: createFrameEncoder(turn, client),
    pausing: createPausing(asking, { canApprove: client === 6 || client === 7 }),
    keepAliveMs: 0,
    maxBacklogBytes: 1_000_000,
    onDeparture,
    onSlow,
    onReplay,
    ...rest,
  });
  const { body } = toByteResponse(viewer, {}, new AbortController().signal);
  if (!body) throw new Error('a response without a body');
  const reader = body.getReader();
  const frames: SseFrame[] = [];
  let text = '';
  const decoder = createSseDecoder({ frame: (frame) => void frames.push(frame) });
  const bytes = new TextDecoder();

  /** One read; false at the end. */
  async function pull(): Promise<boolean> {
    const { done, value } = await reader.read();
    if (done) return false;
    text += bytes.decode(value, { stream: true });
    decoder.push(value);
    return true;
  }
  return {
    onDeparture,
    onSlow,
    onReplay,
    frames,
    reader,
    pull,
    get text() {
      return text;
    },
    async readAll(): Promise<Chunk[]> {
      while (await pull());
      return chunksOf(frames);
    },
    chunks: () => chunksOf(frames),
    isDone: () => frames.at(-1)?.data === '[DONE]',
  };
}

function chunksOf(frames: SseFrame[]): Chunk[] {
  return frames.filter(({ data }) => data !== '[DONE]').map(({ data }) => JSON.parse(data));
}
