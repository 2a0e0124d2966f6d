import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import {
  available,
  call,
  end,
  REFUSED,
  SEQUENCES,
  start,
  streamed,
} from '../../test/chunk-sequences.ts';
import { CLIENTS, type ClientName, createClient, runClient } from '../../test/real-clients.ts';
import type { Chunk } from './chunks.ts';
import { createFold, foldChunks } from './fold.ts';
import type { AnyToolPart } from './fold-tools.ts';
import type { Loose } from './loose.ts';
import type { UIMessage } from './message.ts';

const json = <T>(value: T): T => JSON.parse(JSON.stringify(value));

/** Where the majors differ the fold follows 7. What the older ones make of the same part: */
const OLDER: Record<ClientName, (part: Loose) => void> = {
  'ai@5': (part) => {
    if (part.type === 'file') delete part.providerMetadata;
    if (isToolPart(part)) delete part.title;
    failedInputIsRaw(part);
  },
  'ai@6.0.9': (part) => {
    if (part.type === 'file') delete part.providerMetadata;
    if (part.type === 'reasoning') delete part.id;
    delete part.rawInput;
    failedInputIsRaw(part);
  },
  'ai@6': failedInputIsRaw,
  'ai@7': () => undefined,
};

const isToolPart = ({ type }: Loose) => type === 'dynamic-tool' || String(type).startsWith('tool-');

/** Before 7 the input of a static tool that could not be parsed is its `rawInput`. */
function failedInputIsRaw(part: Loose): void {
  if (!String(part.type).startsWith('tool-')) return;
  if (part.state !== 'output-error' || !String(part.errorText).startsWith(REFUSED)) return;
  part.rawInput = part.input;
  delete part.input;
}

/** Before late 6 an input is gone for as long as an escape like `\u00e9` in it is incomplete. */
const LOSES_INPUT: ClientName[] = ['ai@5', 'ai@6.0.9'];
const hasHalfEscape = (chunks: Chunk[]) =>
  foldChunks(chunks).parts.some((part) =>
    /\\u[\da-f]{0,3}$/.test(String((part as Loose).rawInput)),
  );

/** No client shows a `step-start` before something follows it. */
function withoutTrailingSteps(parts: Loose[]): Loose[] {
  return parts.slice(0, parts.findLastIndex((part) => part.type !== 'step-start') + 1);
}

function asClient(name: ClientName, message: UIMessage): Loose {
  const copy = json(message) as unknown as { parts: Loose[] };
  copy.parts.forEach(OLDER[name]);
  return { ...copy, parts: withoutTrailingSteps(copy.parts) };
}

async function expectClientsToAgree(
  chunks: Chunk[],
  names: ClientName[],
  via: 'sse' | 'in-process' = 'sse',
): Promise<void> {
  const folded = foldChunks(chunks);
  for (const name of names) {
    const { message, error } = await runClient(name, chunks, { via });
    const failure = chunks.find((chunk) => chunk.type === 'error');
    expect(error?.message, name).toBe(failure?.errorText);
    if (!message) throw new Error(`${name} has no message`);
    const parts = withoutTrailingSteps(json(message.parts) as Loose[]);
    expect(asClient(name, folded), name).toEqual({ ...json(message), parts });
  }
}

const namesFrom = (major: number) =>
  CLIENTS.filter((client) => client.major >= major).map(({ name }) => name);
function streamOf(chunks: Chunk[]): ReadableStream<Chunk> {
  return new ReadableStream({
    start(controller) {
      // Copied, because a client keeps a data chunk as its part and later writes into it.
      for (const chunk of chunks) controller.enqueue({ ...chunk });
      controller.close();
    },
  });
}

describe('foldChunks', () => {
  test.each(SEQUENCES)('folds %s as the clients from %i on do', async (_name, major, chunks) => {
    for (const rest of [[], end]) {
      await expectClientsToAgree([...start, ...chunks, ...rest], namesFrom(major));
      await expectClientsToAgree([...start, ...chunks, ...rest], namesFrom(major), 'in-process');
    }
  });

  test.each([5, 6, 7] as const)('folds any sequence of %i as its clients do', async (major) => {
    await fc.assert(
      fc.asyncProperty(chunkSequences(major), async (drawn) => {
        const chunks = drawn.map((chunk) =>
          chunk.type === 'tool-input-error'
            ? { ...chunk, errorText: REFUSED + chunk.errorText }
            : chunk,
        );
        const isHalf = hasHalfEscape(chunks);
        const names = namesFrom(major).filter((name) => !isHalf || !LOSES_INPUT.includes(name));
        await expectClientsToAgree(chunks, names);
      }),
      { numRuns: 60 },
    );
  });

  const assistant = (parts: object[]): UIMessage => ({
    id: 'm',
    role: 'assistant',
    metadata: { kept: { a: 1 } },
    parts: parts as UIMessage['parts'],
  });

  test.each<[string, object[], Chunk[]]>([
    [
      'with an answer to its tool',
      [
        { type: 'step-start' },
        { type: 'text', text: 'before', state: 'done' },
        { type: 'tool-x', toolCallId: 'c', state: 'input-available', input: 1 },
      ],
      [
        { type: 'tool-output-available', toolCallId: 'c', output: 2 },
        { type: 'finish-step' },
        { type: 'start-step' },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: 'after' },
        { type: 'message-metadata', messageMetadata: { kept: { b: 2 } } },
      ],
    ],
    [
      'with data of an id it has',
      [
        { type: 'data-a', id: '1', data: 'old' },
        { type: 'data-a', id: '1', data: 'never found' },
      ],
      [{ type: 'data-a', id: '1', data: 'new' }],
    ],
  ])('goes on with a message as clients do, %s', async (_name, parts, rest) => {
    const message = assistant(parts);
    const before = json(message);
    const chunks: Chunk[] = [{ type: 'start', messageId: 'm' }, ...rest];
    for (const { name } of CLIENTS) {
      const { chat, result } = await createClient(name, {
        sendMessages: async () => streamOf(chunks),
        reconnectToStream: async () => null,
      });
      chat.messages = [structuredClone(message)];
      await chat.sendMessage();
      expect(json(foldChunks(chunks, message)), name).toEqual(json(result().message));
    }
    expect(message).toEqual(before);
  });

  test('goes on with an input that a message was in the middle of', async () => {
    const message = foldChunks([...start, ...streamed]);
    const chunks: Chunk[] = [
      { type: 'start', messageId: 'm' },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: 'b"],"r":1' },
    ];
    const { chat, result } = await createClient('ai@7', {
      sendMessages: async () => streamOf(chunks),
      reconnectToStream: async () => null,
    });
    chat.messages = [structuredClone(message)];
    await chat.sendMessage();
    const folded = foldChunks(chunks, message);
    expect(json(folded)).toEqual(json(result().message));
    expect(folded.parts[1]).toMatchObject({ input: { q: ['ab'], r: 1 } });
    expect(message.parts[1]).toMatchObject({ input: { q: ['a'] } });
  });

  test("begins anew after a message that is not an assistant's", () => {
    const user: UIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
    expect(foldChunks(start, user)).toEqual({
      id: 'm',
      role: 'assistant',
      parts: [{ type: 'step-start' }],
    });
  });

  test('gives a message without undefined fields', () => {
    for (const [, , chunks] of SEQUENCES) {
      const message = foldChunks([...start, ...chunks, ...end]);
      expect(message).toStrictEqual(json(message));
    }
  });

  test.each<[string, Chunk]>([
    ['a text delta without its start', { type: 'text-delta', id: '?', delta: 'x' }],
    ['a text end without its start', { type: 'text-end', id: '?' }],
    ['a reasoning delta without its start', { type: 'reasoning-delta', id: '?', delta: 'x' }],
    ["an id like an object's own", { type: 'text-delta', id: '__proto__', delta: 'x' }],
    [
      'an input delta without its start',
      { type: 'tool-input-delta', toolCallId: '?', inputTextDelta: '{' },
    ],
    ['an output of an unknown call', { type: 'tool-output-available', toolCallId: '?', output: 1 }],
    ['an error of an unknown call', { type: 'tool-output-error', toolCallId: '?', errorText: 'x' }],
    ['a denial of an unknown call', { type: 'tool-output-denied', toolCallId: '?' }],
    [
      'an approval of an unknown call',
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: '?' },
    ],
    [
      'an answer to an unknown approval',
      { type: 'tool-approval-response', approvalId: '?', approved: true },
    ],
    ['a delta that is no text', { type: 'text-delta', id: 'open', delta: 1 } as unknown as Chunk],
    ['an unknown type', { type: 'step-start' } as unknown as Chunk],
    ['no type', {} as Chunk],
  ])('ignores %s', (_name, chunk) => {
    const before: Chunk[] = [...start, { type: 'text-start', id: 'open' }, available];
    const after: Chunk[] = [{ type: 'text-delta', id: 'open', delta: 'on' }, ...end];
    expect(foldChunks([...before, chunk, ...after])).toEqual(foldChunks([...before, ...after]));
  });

  test('merges no metadata into a prototype', () => {
    const evil =
      '{"__proto__":{"x":1},"constructor":{"prototype":{"x":1}},"ok":{"__proto__":{"x":1},"a":1}}';
    const chunk = (): Chunk => ({ type: 'message-metadata', messageMetadata: JSON.parse(evil) });
    const first: Chunk = { type: 'message-metadata', messageMetadata: { ok: {} } };
    const { metadata: merged } = foldChunks([first, chunk(), chunk()]);
    expect(merged).toEqual({ ok: { a: 1 } });
    expect(Object.keys(merged as object)).toEqual(['ok']);
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe('createFold', () => {
  function freeze<T>(value: T): T {
    if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
      Object.freeze(value);
      Object.values(value).forEach(freeze);
    }
    return value;
  }

  test('writes into no chunk, and into no message it has shown', () => {
    fc.assert(
      fc.property(chunkSequences(7), fc.nat({ max: 3 }), (chunks, every) => {
        const fold = createFold();
        const seen: Array<[shown: UIMessage, copy: UIMessage]> = [];
        chunks.forEach((chunk, at) => {
          fold.push(freeze(chunk));
          if (at % (every + 1) > 0) return;
          const shown = fold.message;
          seen.push([shown, structuredClone(withoutLiveInputs(shown))]);
        });
        expect(fold.message).toEqual(foldChunks(chunks));
        for (const [shown, copy] of seen) expect(withoutLiveInputs(shown)).toEqual(copy);
      }),
    );
  });

  function withoutLiveInputs(message: UIMessage): UIMessage {
    const parts = message.parts.map((part) =>
      (part as Loose).rawInput === undefined ? part : { ...part, input: undefined },
    );
    return { ...message, parts } as UIMessage;
  }

  test('gives the same message until something changes, and the same parts where nothing did', () => {
    const fold = createFold();
    for (const chunk of [...start, available, { type: 'text-start', id: '1' } as const])
      fold.push(chunk);
    const first = fold.message;
    fold.push({ type: 'finish-step' });
    fold.push({ type: 'text-delta', id: '?', delta: 'x' });
    expect(fold.message).toBe(first);
    fold.push({ type: 'text-delta', id: '1', delta: 'x' });
    const second = fold.message;
    expect(second).not.toBe(first);
    expect(second.parts.map((part, at) => part === first.parts[at])).toEqual([true, true, false]);
    expect(first.parts[2]).toMatchObject({ text: '' });
  });

  test('shows the states of an approval', () => {
    const fold = createFold();
    const state = () => fold.message.parts.map((part) => (part as AnyToolPart).state)[0];
    fold.push(available);
    fold.push({ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' });
    expect(state()).toBe('approval-requested');
    fold.push({ type: 'tool-approval-response', approvalId: 'a', approved: false });
    expect(state()).toBe('approval-responded');
    fold.push({ type: 'tool-output-denied', toolCallId: 'c' });
    expect(state()).toBe('output-denied');
  });

  test('leaves out a call whose name cannot be written', () => {
    const toolName = { toString: null } as unknown as string;
    const kinds = ['tool-input-start', 'tool-input-available', 'tool-input-error'] as const;
    for (const type of kinds) {
      const chunk = { type, ...call, toolName, input: {}, errorText: 'no' } as Chunk;
      expect(foldChunks([chunk, { type: 'tool-input-start', ...call }]).parts).toHaveLength(1);
    }
  });

  test('goes on with a message whose parts have no type, or an id that cannot be written', () => {
    const id = { toString: null } as unknown as string;
    const data = { type: 'data-a', id, data: 1 } as const;
    const parts = [{ text: 'a' }, { type: id, id: 'x' }, data] as unknown as UIMessage['parts'];
    const message = { id: 'm', role: 'assistant' as const, parts };
    expect(foldChunks([data, { type: 'start-step' }], message).parts).toHaveLength(5);
  });

  test('takes a long turn in linear time, looked at or not', () => {
    const fold = createFold();
    const began = performance.now();
    fold.push({ type: 'text-start', id: '1' });
    fold.push({ type: 'tool-input-start', ...call });
    fold.push({ type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"list":[' });
    for (let at = 0; at < 100_000; at++) {
      fold.push({ type: 'text-delta', id: '1', delta: 'some words ' });
      fold.push({ type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: `"item ${at}",` });
      if (at % 10 === 0) void fold.message;
    }
    const { parts } = fold.message;
    expect(performance.now() - began).toBeLessThan(3000);
    expect((parts[0] as { text: string }).text).toHaveLength(1_100_000);
    expect((parts[1] as unknown as { input: { list: string[] } }).input.list).toHaveLength(100_000);
  });
});
