import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import { available, end, SEQUENCES, start, streamed } from '../../test/chunk-sequences.ts';
import { CLIENTS, runClient } from '../../test/real-clients.ts';
import type { Chunk } from './chunks.ts';
import { createDowngrade } from './downgrade.ts';
import { foldChunks } from './fold.ts';
import { verifyChunks } from './verify.ts';

type Target = 5 | 6 | 7 | 'portable';
const TARGETS: Target[] = [5, 6, 7, 'portable'];

const clientsOf = (target: Target) =>
  CLIENTS.filter(({ major }) => target === 'portable' || target === major).map(({ name }) => name);

function downgradeAll(chunks: Iterable<Chunk>, target: Target): Chunk[] {
  const downgrade = createDowngrade(target);
  return Array.from(chunks, downgrade).flat();
}

async function expectToLive(chunks: Chunk[], target: Target): Promise<void> {
  const failure = chunks.find((chunk) => chunk.type === 'error');
  for (const name of clientsOf(target)) {
    const { error, status } = await runClient(name, chunks);
    expect(error?.message, name).toBe(failure?.errorText);
    expect(status, name).toBe(failure ? 'error' : 'ready');
  }
}

const NULLS = {
  messageId: null,
  messageMetadata: null,
  finishReason: null,
  providerMetadata: null,
  providerExecuted: null,
  dynamic: null,
  preliminary: null,
  transient: null,
  title: null,
  filename: null,
  reason: null,
  toolMetadata: null,
  inputEncoding: null,
  citations: null,
};
const JUNK = { extra: { deep: [null] }, usage: 1, constructor: 'x' };

/** What somebody's server might send: fields nobody knows, optional ones set to null. */
function withJunk(chunk: Chunk): Chunk {
  const id = chunk.type.startsWith('data-') ? { id: null } : {};
  return { ...JUNK, ...NULLS, ...id, ...chunk } as unknown as Chunk;
}

describe('createDowngrade', () => {
  describe.each(TARGETS)('to %s', (target) => {
    test.each(SEQUENCES)('lets no client die of %s', async (_name, _major, chunks) => {
      for (const rest of [[], end]) {
        const source = [...start, ...chunks, ...rest];
        await expectToLive(downgradeAll(source, target), target);
        await expectToLive(downgradeAll(source.map(withJunk), target), target);
      }
    });

    test('leaves nothing to object to in any sequence', async () => {
      await fc.assert(
        fc.asyncProperty(chunkSequences(7, 'whole'), fc.boolean(), async (chunks, isJunk) => {
          const source = isJunk ? chunks.map(withJunk) : chunks;
          const sent = downgradeAll(source, target);
          const options = target === 'portable' ? {} : { aiSdk: target };
          expect(verifyChunks(sent, options)).toEqual([]);
          await expectToLive(sent, target);
        }),
        { numRuns: 40 },
      );
    });

    test('passes on what fits, as it is, but for calls that wait for an approval of 6', () => {
      const major = target === 'portable' ? 5 : target;
      fc.assert(
        fc.property(chunkSequences(major, 'whole'), (chunks) => {
          const downgrade = createDowngrade(target);
          const requested = new Set<string>();
          for (const chunk of chunks) {
            const sent = downgrade(Object.freeze(chunk));
            if (target === 6 && chunk.type === 'tool-approval-request') {
              requested.add(chunk.toolCallId);
              expect(sent.at(-1)).toBe(chunk);
            } else if ('toolCallId' in chunk && requested.has(chunk.toolCallId)) {
              expect(sent).toEqual([expect.objectContaining(chunk)]);
            } else {
              expect(sent).toHaveLength(1);
              expect(sent[0]).toBe(chunk);
            }
          }
        }),
      );
    });

    test('changes no message where only fields were too many', () => {
      const major = target === 'portable' ? 5 : target;
      fc.assert(
        fc.property(chunkSequences(major), (chunks) => {
          const said = chunks.map((chunk): Chunk => Object.assign({}, chunk, { junk: 1 }));
          const sent = downgradeAll(said, target);
          // A client of 6 is shown a call again that asks to be approved, extra fields or none.
          const plain = target === 6 ? downgradeAll(chunks, target) : chunks;
          expect(foldChunks(sent)).toEqual(foldChunks(target === 7 ? said : plain));
        }),
      );
    });
  });

  const as = (chunk: object) => chunk as Chunk;
  const meta = { providerMetadata: { test: { a: 1 } } };

  test.each<[why: string, targets: Target[], given: object, sent: object[]]>([
    [
      'removes unknown fields',
      [5, 6, 'portable'],
      { type: 'start-step', junk: 1 },
      [{ type: 'start-step' }],
    ],
    [
      'leaves unknown fields to 7',
      [7],
      { type: 'start-step', junk: 1 },
      [{ type: 'start-step', junk: 1 }],
    ],
    [
      'leaves nested data alone',
      TARGETS,
      { type: 'data-x', data: { a: null, b: { junk: [] } } },
      [{ type: 'data-x', data: { a: null, b: { junk: [] } } }],
    ],
    [
      'removes null',
      TARGETS,
      { type: 'text-start', id: 't', providerMetadata: null },
      [{ type: 'text-start', id: 't' }],
    ],
    [
      'removes what has the wrong type',
      TARGETS,
      { type: 'file', url: 'u', mediaType: 'm', providerMetadata: { a: 1 } },
      [{ type: 'file', url: 'u', mediaType: 'm' }],
    ],
    [
      'removes citations that are none',
      TARGETS,
      { type: 'text-end', id: 't', citations: [{ source: { type: 'source', id: 'u' } }] },
      [{ type: 'text-end', id: 't' }],
    ],
    [
      'drops a steering message with a part that is none',
      TARGETS,
      { type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'x' }, { type: 'text' }] },
      [],
    ],
    [
      'says null for a missing input',
      TARGETS,
      { type: 'tool-input-available', toolCallId: 'c', toolName: 'x' },
      [{ type: 'tool-input-available', toolCallId: 'c', toolName: 'x', input: null }],
    ],
    [
      'says null for a missing output',
      TARGETS,
      { type: 'tool-output-available', toolCallId: 'c', output: undefined },
      [{ type: 'tool-output-available', toolCallId: 'c', output: null }],
    ],
    ['says null for missing data', TARGETS, { type: 'data-x' }, [{ type: 'data-x', data: null }]],
    [
      'keeps an error without a text an error',
      TARGETS,
      { type: 'error' },
      [{ type: 'error', errorText: 'Something went wrong.' }],
    ],
    ['drops metadata that is none', TARGETS, { type: 'message-metadata' }, []],
    ['drops a chunk that lacks its id', TARGETS, { type: 'text-delta', delta: 'x' }, []],
    ['drops an unknown type', TARGETS, { type: 'step-start' }, []],
    ["drops a type like an object's own", TARGETS, { type: 'constructor' }, []],
    ['drops what is no chunk', TARGETS, {}, []],
    [
      'says other for an unknown reason',
      TARGETS,
      { type: 'finish', finishReason: 'end_turn' },
      [{ type: 'finish', finishReason: 'other' }],
    ],
    [
      'leaves interrupted to 7',
      [5, 6, 'portable'],
      { type: 'finish', finishReason: 'interrupted' },
      [{ type: 'finish', finishReason: 'other' }],
    ],
    [
      'lets 7 have interrupted',
      [7],
      { type: 'finish', finishReason: 'interrupted' },
      [{ type: 'finish', finishReason: 'interrupted' }],
    ],
    [
      'lets 5 have unknown',
      [5],
      { type: 'finish', finishReason: 'unknown' },
      [{ type: 'finish', finishReason: 'unknown' }],
    ],
    [
      'takes the reason from abort',
      [5, 6, 'portable'],
      { type: 'abort', reason: 'x' },
      [{ type: 'abort' }],
    ],
    [
      'leaves the reason of abort to 7',
      [7],
      { type: 'abort', reason: 'x' },
      [{ type: 'abort', reason: 'x' }],
    ],
    [
      'drops an approval request',
      [5, 'portable'],
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
      [],
    ],
    [
      'strips an approval request',
      [6],
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c', reason: 'x' },
      [{ type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }],
    ],
    [
      'makes a denial an error',
      [5, 'portable'],
      { type: 'tool-output-denied', toolCallId: 'c' },
      [{ type: 'tool-output-error', toolCallId: 'c', errorText: 'The tool call was denied.' }],
    ],
    [
      'leaves a denial to 6',
      [6, 7],
      { type: 'tool-output-denied', toolCallId: 'c' },
      [{ type: 'tool-output-denied', toolCallId: 'c' }],
    ],
    [
      'drops an answered approval',
      [5, 6, 'portable'],
      { type: 'tool-approval-response', approvalId: 'a', approved: true },
      [],
    ],
    [
      'drops a steering message',
      [5, 6, 'portable'],
      { type: 'steering-message', id: 's', parts: [] },
      [],
    ],
    ['drops custom parts', [5, 6, 'portable'], { type: 'custom', kind: 'a.b' }, []],
    ['drops reset-step', [5, 6, 'portable'], { type: 'reset-step' }, []],
    [
      'makes a reasoning file a file',
      [5, 6, 'portable'],
      { type: 'reasoning-file', url: 'u', mediaType: 'm', ...meta },
      [{ type: 'file', url: 'u', mediaType: 'm', ...meta }],
    ],
  ])('%s (%j)', (_why, targets, given, sent) => {
    for (const target of targets) {
      expect(createDowngrade(target)(as(given)), String(target)).toStrictEqual(sent);
    }
  });

  const url = { type: 'source', sourceType: 'url', id: 'u', url: 'x' };
  const document = { type: 'source', sourceType: 'document', id: 'd', mediaType: 'm', title: 't' };
  const text = { type: 'text', text: 'x' };
  const file = { type: 'file', mediaType: 'm', url: 'x' };
  const cite = (...citations: unknown[]) => as({ type: 'text-end', id: 't', citations });
  const steer = (...parts: unknown[]) => as({ type: 'steering-message', id: 's', parts });
  const around = (chunk: Chunk): Chunk[] => [
    ...start,
    { type: 'text-start', id: 't' },
    ...(chunk.type === 'text-end' ? [] : [as({ type: 'text-end', id: 't' })]),
    chunk,
    ...end,
  ];

  test.each([
    cite(),
    cite({ source: url }, { source: { ...document, ...meta }, startIndex: 0, endIndex: 2 }),
    cite({ source: { ...url, title: 't' }, citedText: '', startIndex: undefined }),
    steer(),
    steer({ ...text, ...meta }, { ...file, filename: 'f', providerReference: { p: 'r' } }),
  ])('leaves what lists rightly to 7: %j', async (chunk) => {
    expect(createDowngrade(7)(chunk)[0]).toBe(chunk);
    await expectToLive(around(chunk), 7);
  });

  test.each([
    cite(null),
    cite(undefined),
    as({ type: 'text-end', id: 't', citations: new Array(1) }),
    cite({ source: url }, {}),
    cite({ source: { ...url, url: 1 } }),
    cite({ source: { ...document, title: undefined } }),
    cite({ source: { ...url, sourceType: 'other' } }),
    cite({ source: url, startIndex: -1 }),
    cite({ source: url, endIndex: 0.5 }),
    cite({ source: url, citedText: null }),
    as({ type: 'steering-message', id: 's', parts: new Array(1) }),
    steer('x'),
    steer(text, { type: 'text' }),
    steer({ ...file, url: undefined }),
    steer({ ...file, filename: null }),
    steer({ ...file, providerReference: { p: 1 } }),
    steer({ ...text, providerMetadata: { test: 1 } }),
    steer({ type: 'reasoning', text: 'x' }),
  ])('keeps from 7 a list of which it dies: %j', async (chunk) => {
    const source = around(chunk);
    expect((await runClient('ai@7', source)).status).toBe('error');
    await expectToLive(downgradeAll(source, 7), 7);
  });

  test.each<Target>([5, 'portable'])(
    'gives the flag of a dynamic tool to its answers, for %s',
    (target) => {
      const call = { toolCallId: 'c', toolName: 'x', dynamic: true };
      const chunks: Chunk[] = [
        { type: 'tool-input-available', ...call, input: 1 },
        { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
        { type: 'tool-output-denied', toolCallId: 'c' },
      ];
      expect(downgradeAll(chunks, target)).toEqual([
        chunks[0],
        {
          type: 'tool-output-error',
          toolCallId: 'c',
          errorText: 'The tool call was denied.',
          dynamic: true,
        },
      ]);
    },
  );

  test.each<Target>([5, 6, 'portable'])(
    'ends a text with its step and goes on with a new one, for %s',
    (target) => {
      const chunks: Chunk[] = [
        { type: 'text-start', id: 't', ...meta },
        { type: 'reasoning-start', id: 't' },
        { type: 'finish-step' },
        { type: 'reasoning-end', id: 't' },
        { type: 'text-delta', id: 't', delta: 'x' },
        { type: 'text-end', id: 't' },
      ];
      expect(downgradeAll(chunks, target)).toEqual([
        chunks[0],
        chunks[1],
        { type: 'text-end', id: 't' },
        { type: 'reasoning-end', id: 't' },
        chunks[2],
        { type: 'text-start', id: 't' },
        chunks[4],
        chunks[5],
      ]);
    },
  );

  test.each<Target>([5, 6, 'portable'])(
    'closes what a step that was taken back left open, for %s',
    (target) => {
      const chunks: Chunk[] = [
        { type: 'text-start', id: 't' },
        ...streamed,
        { type: 'tool-input-start', toolCallId: 'again', toolName: 'x' },
        { type: 'reset-step' },
        { type: 'text-start', id: 't' },
        { type: 'text-end', id: 't' },
        { type: 'tool-input-available', toolCallId: 'again', toolName: 'x', input: 1 },
        { type: 'tool-output-available', toolCallId: 'again', output: 1 },
      ];
      const sent = downgradeAll([...start, ...chunks, ...end], target);
      const options = target === 'portable' ? {} : { aiSdk: target };
      expect(verifyChunks(sent, options)).toEqual([]);
      expect(foldChunks(sent).parts).toMatchObject([
        { type: 'step-start' },
        { type: 'text', state: 'done' },
        { type: 'tool-search', state: 'output-error' },
        { type: 'tool-x', state: 'output-available' },
        { type: 'text', state: 'done' },
      ]);
    },
  );

  test('invents nothing for a viewer that joins in the middle', () => {
    const chunks: Chunk[] = [
      { type: 'text-delta', id: 't', delta: 'x' },
      { type: 'tool-output-available', toolCallId: 'c', output: 1, dynamic: true },
      { type: 'text-end', id: 't' },
      ...end,
    ];
    for (const target of TARGETS) expect(downgradeAll(chunks, target)).toEqual(chunks);
  });

  test('lets an unanswered approval be answered later', async () => {
    const asked: Chunk[] = [
      ...start,
      available,
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
    ];
    const answered: Chunk[] = [
      ...asked,
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      ...end,
    ];
    for (const target of TARGETS) {
      const sent = downgradeAll(answered, target);
      await expectToLive(sent, target);
      expect(foldChunks(sent).parts[1]).toMatchObject({ state: 'output-available', output: 1 });
    }
  });
});

describe('an approval for 6', () => {
  const call = { toolCallId: 'c', toolName: 'pay', input: {}, providerExecuted: true };
  const input = { type: 'tool-input-available', ...call } as const;
  const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' } as const;
  const output = { type: 'tool-output-available', toolCallId: 'c', output: 1 } as const;

  test('shows a call of the server as the client’s own until its output', () => {
    const chunks: Chunk[] = [...start, input, request, { type: 'finish-step' }, output, ...end];
    const own = { ...input, providerExecuted: false };
    const ended = { ...output, providerExecuted: true };
    const sent = downgradeAll(chunks, 6);
    expect(sent.slice(2, 7)).toEqual([input, own, request, { type: 'finish-step' }, ended]);
    expect(verifyChunks(sent, { aiSdk: 6 })).toEqual([]);
    expect(downgradeAll(chunks, 7)).toEqual(chunks);
    expect(downgradeAll(chunks, 5)).toEqual(chunks.filter((chunk) => chunk !== request));
  });

  test('shows a call of an earlier step as it was, which would else become a second part', () => {
    const chunks: Chunk[] = [...start, input, { type: 'start-step' }, request, output, ...end];
    expect(downgradeAll(chunks, 6)).toEqual(chunks);
  });
});
