/** What reads bytes, text and the contract's events, and what is done to chunks afterwards. */
import type { Chunk } from '../../src/core/chunks.ts';
import { compactChunks } from '../../src/core/compact.ts';
import { createDowngrade } from '../../src/core/downgrade.ts';
import { foldChunks } from '../../src/core/fold.ts';
import { toJsonSafe } from '../../src/core/json.ts';
import type { MessageLike, UIMessage } from '../../src/core/message.ts';
import { createPartialJson } from '../../src/core/partial-json.ts';
import { createSseDecoder, encodeSse, type SseFrame } from '../../src/core/sse.ts';
import { verifyChunks } from '../../src/core/verify.ts';
import { createChunkTranslator } from '../../src/sources/ai-sdk/translate.ts';
import { decodeBatch, encodeBatch } from '../../src/turns/chunk-codec.ts';
import { createFrameEncoder } from '../../src/wires/ai-sdk/encode.ts';
import { decodeContract } from '../../src/wires/contract/decode.ts';
import { encodeContract } from '../../src/wires/contract/encode.ts';
import { type StreamEvent, toContractSse } from '../../src/wires/contract/events.ts';
import { createContractFrames } from '../../src/wires/contract/frames.ts';
import { applyEvent, createReducer } from '../../src/wires/contract/reduce.ts';
import { chunkTurns, contractEvents } from './corpus.ts';
import { mutateBytes, splitBytes } from './mutate-bytes.ts';
import { mutateSequence, mutateValue, toJson } from './mutate-json.ts';
import { checkSame, checkTurn, InvalidOutput, type Target } from './target.ts';

const encoder = new TextEncoder();

function readFrames(pieces: (Uint8Array | string)[]): SseFrame[] {
  const frames: SseFrame[] = [];
  const decoder = createSseDecoder({ frame: (frame) => void frames.push(frame) });
  for (const piece of pieces) decoder.push(piece);
  decoder.end();
  decoder.push('data: late\n\n');
  return frames;
}

const sse: Target = {
  name: 'sse decoder',
  play(random) {
    const texts = random.chance(0.5)
      ? random.pick(chunkTurns().sequences).map((chunk, at) => encodeSse(chunk, { id: `t:${at}` }))
      : random.pick(contractEvents().sequences).map((event, at) => toContractSse(event, `t:${at}`));
    const edits = 1 + random.below(texts.length);
    const bytes = mutateBytes(encoder.encode(texts.join('')), random, edits);
    const whole = readFrames([bytes]);
    checkSame(readFrames(splitBytes(bytes, random)), whole, 'another split gives other frames');
    if (random.chance(0.1)) {
      checkSame(readFrames(splitBytes(bytes, random, 1)), whole, 'single bytes, other frames');
    }
    for (const { data, id, event } of whole) {
      // Each is what one line said: no line break can have come into a name.
      if (/[\r\n]/.test(`${id}${event}`) || typeof data !== 'string') {
        throw new InvalidOutput('a frame with a broken name');
      }
    }
    const out = whole.length;
    const sound = Math.max(0, texts.length - edits);
    return { malformed: edits, sound, refused: Math.max(0, texts.length - out), out };
  },
};

const contract: Target = {
  name: 'contract decoder',
  weight: 2,
  play(random) {
    const { sequences, words } = contractEvents();
    const mutation = { random, words };
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), mutation);
    const decode = decodeContract(random.chance(0.5) ? { generateMessageId: () => 'made' } : {});
    const chunks = frames.flatMap((event) => decode(event as StreamEvent));
    chunks.push(...decode.end());
    checkSame(decode(frames[0] as StreamEvent), [], 'something came after the end');
    checkSame(decode.end(), [], 'it ended twice');
    checkTurn(chunks, random, { clients: [7], isSentAsItIs: true });
    const sound = Math.max(0, frames.length - malformed);
    return { malformed, sound, refused: 0, out: chunks.length };
  },
};

const reducer: Target = {
  name: 'contract reducer',
  play(random) {
    const { sequences, words } = contractEvents();
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), { random, words });
    const mutable = createReducer<UIMessage>();
    let pure: UIMessage[] = [];
    for (const event of frames) {
      mutable.apply(event as StreamEvent);
      pure = applyEvent(pure, event as StreamEvent);
    }
    for (const list of [mutable.messages, pure]) checkMessages(list);
    mutable.close();
    checkMessages(mutable.messages);
    // Goes on with messages that somebody else has broken.
    const broken = mutateValue(pure, { random, words });
    if (Array.isArray(broken) && broken.every(isMessage)) {
      const next = createReducer(broken as UIMessage[]);
      for (const event of given) next.apply(event);
      checkMessages(next.messages);
    }
    const sound = Math.max(0, frames.length - malformed);
    return { malformed, sound, refused: 0, out: pure.length };
  },
};

const isMessage = (value: unknown): value is MessageLike => {
  const { id, role, parts } = Object(value) as Partial<MessageLike>;
  return typeof id === 'string' && typeof role === 'string' && Array.isArray(parts);
};

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages) || !messages.every(isMessage)) {
    throw new InvalidOutput('not a list of messages');
  }
}

const partialJson: Target = {
  name: 'partial json',
  play(random) {
    const { sequences, words } = chunkTurns();
    const value = mutateValue(random.pick(random.pick(sequences)), { random, words });
    const bytes = mutateBytes(encoder.encode(toJson(value)), random, random.below(6));
    const text = new TextDecoder().decode(bytes);
    const whole = createPartialJson(text);
    const split = createPartialJson();
    for (let at = 0; at < text.length; ) {
      const length = 1 + random.below(30);
      split.push(text.slice(at, at + length));
      at += length;
      if (random.chance(0.5)) void split.value;
    }
    // Too deep to be compared.
    if (text.length < 2_000) checkSame(split.value, whole.value, 'another split, another value');
    return { malformed: 1, sound: 0, refused: 0, out: whole.value === undefined ? 0 : 1 };
  },
};

/** What anybody may do with chunks that nobody has looked at: it throws nothing. */
const unchecked: Target = {
  name: 'fold, compact, downgrade, encode',
  weight: 2,
  play(random) {
    const { sequences, words } = chunkTurns();
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), { random, words });
    const chunks = frames.filter((frame) => typeof frame === 'object' && frame) as Chunk[];
    foldChunks(compactChunks(chunks), foldChunks(chunks));
    const client = random.pick([5, 6, 7, 'portable'] as const);
    const fitted = frames.flatMap((frame) => createDowngrade(client)(frame as Chunk));
    const encode = encodeContract();
    const events = frames.flatMap((frame) => encode(frame as Chunk));
    events.push(...encode.end());
    const decode = decodeContract();
    const decoded = [...events.flatMap((event) => decode(event)), ...decode.end()];
    // A call that nobody made may be one of the message that is gone on with.
    const allowed = ['tool-unknown', 'approval-unknown'] as const;
    checkTurn(decoded, random, { clients: [7], allowed, isSentAsItIs: true });
    for (const frame of frames) toJsonSafe(frame);
    const problems = verifyChunks(frames as Chunk[]).length;
    const sound = Math.max(0, frames.length - malformed);
    return { malformed, sound, refused: problems, out: fitted.length };
  },
};

/** What the contract has words for: not the fields of data that no client knows. */
function told({ metadata, ...message }: UIMessage): unknown {
  const parts = message.parts.map((part) => {
    if (!part.type.startsWith('data-')) return part;
    const { type, id, data } = part as { type: string; id?: string; data: unknown };
    return { type, id, data };
  });
  // Clients leave these out wherever they put metadata together.
  const isMerged = (key: string) => key !== 'constructor' && key !== 'prototype';
  const said = JSON.stringify(metadata ?? {}, (key, value) => (isMerged(key) ? value : undefined));
  return JSON.parse(JSON.stringify({ ...message, parts, metadata: JSON.parse(said) }));
}

/** What is odd, but right: nothing on its way to a client may change what it says. */
const odd: Target = {
  name: 'wires of odd turns',
  weight: 2,
  play(random) {
    const { sequences, words } = chunkTurns();
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), { random, words });
    const translator = createChunkTranslator({ messageId: 'm' });
    const chunks = frames.flatMap((frame) => translator.push(frame));
    chunks.push(...translator.end());
    const message = foldChunks(chunks);
    checkSame(foldChunks(compactChunks(chunks)), message, 'compacting changes the message');
    const written = JSON.parse(JSON.stringify(chunks));
    checkSame(decodeBatch(encodeBatch(chunks).stored), written, 'storing changes a chunk');
    const encode = encodeContract();
    const decode = decodeContract();
    const events = [...chunks.flatMap((chunk) => encode(chunk)), ...encode.end()];
    const decoded = [...events.flatMap((event) => decode(event)), ...decode.end()];
    checkSame(told(foldChunks(decoded)), told(message), 'the contract changes the message');
    const client = random.pick([5, 6, 7, 'portable'] as const);
    const turn = { turnId: 't', messageId: 'm', startedAt: 0 } as never;
    const entries = chunks.map((chunk, at) => ({ seq: at + 1, chunk }));
    const bytes = createFrameEncoder(turn, client).encode(entries);
    const read = readFrames(splitBytes(bytes, random)).map(({ data }) => JSON.parse(data));
    const fitted = chunks.flatMap(createDowngrade(client));
    checkSame(read, JSON.parse(JSON.stringify(fitted)), 'the wire changes a chunk');
    const contractFrames = readFrames([createContractFrames(turn, {}).encode(entries)]);
    for (const { data } of contractFrames) JSON.parse(data);
    checkTurn(chunks, random);
    const sound = Math.max(0, frames.length - malformed);
    return { malformed, sound, refused: 0, out: chunks.length };
  },
};

export const DECODERS: Target[] = [sse, contract, reducer, partialJson, unchecked, odd];
