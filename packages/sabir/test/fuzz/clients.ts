/** The readers in a page: transports and `ChatStream` on a server that says anything at all. */

import { ChatStream } from '../../src/clients/chat-stream.ts';
import { ContractChatTransport } from '../../src/clients/contract-chat-transport.ts';
import { SabirChatTransport } from '../../src/clients/sabir-chat-transport.ts';
import type { Chunk } from '../../src/core/chunks.ts';
import { foldChunks } from '../../src/core/fold.ts';
import { encodeSse, SSE_DONE } from '../../src/core/sse.ts';
import { createEventStream } from '../../src/sources/opencode/event-stream.ts';
import { toContractSse } from '../../src/wires/contract/events.ts';
import { chunkTurns, contractEvents, openCodeEvents } from './corpus.ts';
import { mutateBytes, splitBytes } from './mutate-bytes.ts';
import { mutateSequence, mutateValue, toJson } from './mutate-json.ts';
import type { Random } from './random.ts';
import { checkTurn, InvalidOutput, type Target, withinTime } from './target.ts';

type Wire = 'ai-sdk' | 'contract' | 'opencode';
type Said = { bodies: Uint8Array[]; malformed: number; sound: number };

const encoder = new TextEncoder();

function toFrame(wire: Wire, value: unknown, id: string | undefined): string {
  const { type, data } = Object(value) as { type?: unknown; data?: unknown };
  if (wire === 'contract') {
    // Also what no server would name an event, line breaks and all.
    const name = type as 'done';
    return toContractSse({ type: name, data: JSON.parse(toJson(data ?? null)) as never }, id);
  }
  const frame = { type: 'x', ...(value as object) } as unknown as Chunk;
  return wire === 'ai-sdk' && typeof frame.type === 'string'
    ? encodeSse(frame, { ...(id !== undefined && { id }), eventName: true })
    : `data: ${toJson(value)}\n\n`;
}

/** What a server says on one connection after the other: cut off, wrongly numbered, or hurt. */
function say(wire: Wire, random: Random): Said {
  const { sequences, words } =
    wire === 'ai-sdk'
      ? chunkTurns()
      : wire === 'contract'
        ? contractEvents()
        : { ...openCodeEvents(), sequences: openCodeEvents().sequences.map(({ steps }) => steps) };
  const given = random.pick<readonly unknown[]>(sequences);
  const other = random.pick<readonly unknown[]>(sequences);
  const { frames, malformed } = mutateSequence(given, other, { random, words });
  let hurt = 0;
  const isNumbered = random.chance(0.7);
  const texts = frames.map((frame, at) => {
    const seq = random.chance(0.05) ? random.below(40) : at + 1;
    const turnId = random.chance(0.02) ? 'u' : 't';
    return toFrameSafely(wire, frame, isNumbered ? `${turnId}:${seq}` : undefined);
  });
  if (random.chance(0.5)) texts.push(SSE_DONE);
  const bodies: Uint8Array[] = [];
  for (let at = 0; at < texts.length || bodies.length === 0; ) {
    const length = random.chance(0.6) ? texts.length : random.below(texts.length);
    // After a cut a server goes on where the cursor is, or some frames before that.
    let bytes = encoder.encode(
      texts.slice(Math.max(0, at - random.below(3)), at + length).join(''),
    );
    if (random.chance(0.4)) {
      const edits = 1 + random.below(4);
      hurt += edits;
      bytes = mutateBytes(bytes, random, edits) as Uint8Array<ArrayBuffer>;
    }
    bodies.push(bytes);
    at += length + 1;
    if (bodies.length >= 4) break;
  }
  const sound = Math.max(0, frames.length - malformed - hurt);
  return { bodies, malformed: malformed + hurt, sound };
}

function toFrameSafely(wire: Wire, value: unknown, id: string | undefined): string {
  try {
    return toFrame(wire, value, id);
  } catch {
    return `data: ${toJson(value)}\n\n`;
  }
}

const STATUSES = [200, 200, 200, 200, 200, 200, 200, 204, 400, 401, 404, 500, 503];
const TYPES = ['text/event-stream', 'text/event-stream; charset=utf-8', 'text/html', ''];

function bodyOf(bytes: Uint8Array, random: Random): ReadableStream<Uint8Array> {
  const pieces = splitBytes(bytes, random, 200);
  const isCut = random.chance(0.1);
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece) controller.enqueue(piece);
      else if (isCut) controller.error(new TypeError('terminated'));
      else controller.close();
    },
  });
}

/** A server without a socket: one answer for each request, then nothing more. */
function serverOf({ bodies }: Said, random: Random): typeof fetch {
  const isSound = random.chance(0.6);
  const named: Record<string, string> = random.chance(0.7) ? { 'x-sabir-turn': 't' } : {};
  return async () => {
    const bytes = bodies.shift();
    if (!bytes) return new Response(null, { status: random.pick([204, 404]) });
    if (random.chance(0.03)) throw new TypeError('fetch failed');
    const status = isSound ? 200 : random.pick(STATUSES);
    const type = isSound ? 'text/event-stream' : random.pick(TYPES);
    const headers: Record<string, string> = { 'content-type': type, ...named };
    if (random.chance(0.05)) headers['retry-after'] = random.pick(['0', '-1', 'NaN', '1e9', '']);
    if (headers['retry-after'] === '1e9') delete headers['retry-after'];
    return new Response(status === 204 ? null : bodyOf(bytes, random), { status, headers });
  };
}

async function readAll(stream: ReadableStream<unknown> | null): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  if (stream) for await (const chunk of stream) chunks.push(chunk as Chunk);
  return chunks;
}

/** What a stream that was lost leaves open; the client closes it, having been told. */
const CUT_SHORT = ['no-start', 'no-finish', 'part-left-open', 'tool-left-open'] as const;

function transportTarget(name: string, wire: 'ai-sdk' | 'contract'): Target {
  return {
    name,
    async play(random) {
      const said = say(wire, random);
      const Transport = wire === 'ai-sdk' ? SabirChatTransport : ContractChatTransport;
      const transport = new Transport({
        api: 'http://server.test/chat',
        fetch: serverOf(said, random),
        silenceMs: 0,
        backoff: { initialMs: 0, maxMs: 1, attempts: 3 },
      });
      const options = { chatId: 'c', messages: [], abortSignal: undefined, messageId: undefined };
      let chunks: Chunk[] = [];
      let refused = 0;
      const read = async () => {
        const stream = random.chance(0.5)
          ? await transport.sendMessages({ ...options, trigger: 'submit-message' })
          : await transport.reconnectToStream(options);
        chunks = await readAll(stream);
      };
      // What a server refuses is told to whoever asked, as an `Error` with words in it.
      await withinTime(
        read().catch((error: unknown) => {
          if (!(error instanceof Error) || error instanceof RangeError) throw error;
          refused = 1;
        }),
        name,
      );
      if (chunks.some(({ type }) => typeof type !== 'string')) throw new InvalidOutput('no type');
      foldChunks(chunks);
      if (wire === 'contract') {
        checkTurn(chunks, random, { clients: [7], allowed: CUT_SHORT, isSentAsItIs: true });
      }
      return { malformed: said.malformed, sound: said.sound, refused, out: chunks.length };
    },
  };
}

const chatStream: Target = {
  name: 'chat stream',
  async play(random) {
    const said = say('contract', random);
    let heard = 0;
    const chat = new ChatStream({
      api: 'http://server.test/chat',
      fetch: serverOf(said, random),
      silenceMs: 0,
      maxWaitMs: 0,
      onEvent: () => void heard++,
    });
    chat.subscribe(() => void chat.getSnapshot().messages.length);
    await withinTime(chat.sendMessage({ text: 'Hello' }), 'chat stream');
    const { status, messages, error } = chat.getSnapshot();
    if (status !== 'ready' && status !== 'error') throw new InvalidOutput(`it stays ${status}`);
    if (!Array.isArray(messages)) throw new InvalidOutput('no messages');
    if (status === 'error' && typeof error?.message !== 'string')
      throw new InvalidOutput('no words');
    // What came another way than from the server.
    const { sequences, words } = contractEvents();
    const event = mutateValue(random.pick(random.pick(sequences)), { random, words });
    const { type, data } = Object(event) as { type?: unknown; data?: unknown };
    if (typeof type === 'string' && data) chat.apply(event as never);
    return {
      malformed: said.malformed,
      sound: said.sound,
      refused: chat.malformed,
      out: heard,
    };
  },
};

const openCodeStream: Target = {
  name: 'opencode event stream',
  async play(random) {
    const said = say('opencode', random);
    const answer = serverOf({ ...said, bodies: [...said.bodies] }, random);
    let heard = 0;
    const lost = Promise.withResolvers<void>();
    const stream = createEventStream({ events: () => answer('') } as never, {
      silenceMs: 10_000,
      reconnectMs: 0,
      event: () => void heard++,
      reconnected: () => undefined,
      lost: () => lost.resolve(),
    });
    await withinTime(lost.promise, 'the event stream');
    stream.close();
    return { malformed: said.malformed, sound: said.sound, refused: 0, out: heard };
  },
};

export const CLIENT_READERS: Target[] = [
  transportTarget('sabir transport', 'ai-sdk'),
  transportTarget('contract transport', 'contract'),
  chatStream,
  openCodeStream,
];
