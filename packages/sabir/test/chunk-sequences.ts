/** Hand-written chunk sequences: every chunk type, and what can be said with it. */
import type { Chunk } from '../src/core/chunks.ts';

/** How the error texts of refused inputs begin: the majors fold these differently. */
export const REFUSED = 'refused: ';

const metadata = (said: string) => ({ providerMetadata: { test: { said } } });
export const start: Chunk[] = [{ type: 'start', messageId: 'm' }, { type: 'start-step' }];
export const end: Chunk[] = [{ type: 'finish-step' }, { type: 'finish', finishReason: 'stop' }];

export const call = { toolCallId: 'c', toolName: 'search' };
export const streamed: Chunk[] = [
  { type: 'tool-input-start', ...call },
  { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q":["a' },
];
const more: Chunk = { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: 'b",1' };
export const available: Chunk = { type: 'tool-input-available', ...call, input: { q: 1 } };

/** By the first major whose client folds it without harm. */
export const SEQUENCES: Array<[name: string, major: 5 | 6 | 7, chunks: Chunk[]]> = [
  ['nothing but a start', 5, [{ type: 'start', messageId: 'm' }]],
  ['an empty turn', 5, []],
  [
    'texts, interleaved',
    5,
    [
      { type: 'text-start', id: '1', ...metadata('a') },
      { type: 'text-delta', id: '1', delta: 'one' },
      { type: 'text-start', id: '2' },
      { type: 'text-delta', id: '2', delta: 'two', ...metadata('b') },
      { type: 'text-delta', id: '1', delta: '', ...metadata('c') },
      { type: 'text-end', id: '1' },
      { type: 'text-delta', id: '2', delta: '!' },
      { type: 'text-end', id: '2', ...metadata('d') },
    ],
  ],
  [
    'a text id used again',
    5,
    [
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'one' },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'two' },
      { type: 'text-end', id: '1' },
    ],
  ],
  [
    'reasoning with the id of a text',
    5,
    [
      { type: 'reasoning-start', id: '1', ...metadata('a') },
      { type: 'text-start', id: '1' },
      { type: 'reasoning-delta', id: '1', delta: 'hm', ...metadata('b') },
      { type: 'text-delta', id: '1', delta: 'so' },
      { type: 'reasoning-end', id: '1', ...metadata('c') },
      { type: 'text-end', id: '1' },
    ],
  ],
  ['an input that streams', 5, streamed],
  ['an input that has begun', 5, streamed.slice(0, 1)],
  ['an input that streamed', 5, [...streamed, available]],
  ['an input at once', 5, [{ ...available, ...metadata('a') } as Chunk]],
  ['an input twice', 5, [available, { ...available, input: null, ...metadata('a') } as Chunk]],
  ['an input that streams again', 5, [...streamed, available, ...streamed]],
  ['a delta behind its input', 5, [...streamed, available, more]],
  [
    'an output',
    5,
    [available, { type: 'tool-output-available', toolCallId: 'c', output: { r: [1] } }],
  ],
  [
    'outputs on the way',
    5,
    [
      available,
      { type: 'tool-output-available', toolCallId: 'c', output: 1, preliminary: true },
      { type: 'tool-output-available', toolCallId: 'c', output: 2, preliminary: true },
      { type: 'tool-output-available', toolCallId: 'c', output: null },
    ],
  ],
  [
    'an output of a call whose input still streams',
    5,
    [...streamed, { type: 'tool-output-available', toolCallId: 'c', output: 1 }],
  ],
  ['an error', 5, [available, { type: 'tool-output-error', toolCallId: 'c', errorText: 'no' }]],
  [
    'an error of a call whose input still streams',
    5,
    [...streamed, { type: 'tool-output-error', toolCallId: 'c', errorText: 'no' }],
  ],
  [
    'an output after an error',
    5,
    [
      available,
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'no' },
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
    ],
  ],
  ['a refused input', 5, [{ type: 'tool-input-error', ...call, input: 'x', errorText: REFUSED }]],
  [
    'a refused input that streamed',
    5,
    [...streamed, { type: 'tool-input-error', ...call, input: { q: 2 }, errorText: REFUSED }],
  ],
  [
    'a dynamic tool',
    5,
    [
      { type: 'tool-input-start', ...call, dynamic: true, providerExecuted: true },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q":t' },
      { ...available, dynamic: true } as Chunk,
      { type: 'tool-output-available', toolCallId: 'c', output: 1, dynamic: true },
    ],
  ],
  [
    'a dynamic tool that fails while its input streams',
    5,
    [
      { type: 'tool-input-start', ...call, dynamic: true },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"q":t' },
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'no', dynamic: true },
    ],
  ],
  [
    'a refused input of a dynamic tool',
    5,
    [{ type: 'tool-input-error', ...call, dynamic: true, input: 'x', errorText: REFUSED }],
  ],
  [
    'providerExecuted, which stays and can be taken back',
    5,
    [
      { type: 'tool-input-start', ...call, providerExecuted: true },
      available,
      {
        type: 'tool-input-available',
        toolCallId: 'd',
        toolName: 'x',
        input: 1,
        providerExecuted: true,
      },
      {
        type: 'tool-input-available',
        toolCallId: 'd',
        toolName: 'x',
        input: 1,
        providerExecuted: false,
      },
    ],
  ],
  [
    'an output in a later step',
    5,
    [
      available,
      { type: 'finish-step' },
      { type: 'start-step' },
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
    ],
  ],
  [
    'data, replaced in place by type and id',
    5,
    [
      { type: 'data-a', id: '1', data: 1 },
      { type: 'data-b', id: '1', data: 2 },
      { type: 'data-a', data: 3 },
      { type: 'data-a', data: 4 },
      { type: 'data-a', id: '1', data: { five: 5 } },
      { type: 'data-a', id: '', data: 6, transient: false },
      { type: 'data-a', id: '', data: null },
      { type: 'data-a', id: '1', data: 'only heard', transient: true },
    ],
  ],
  [
    'sources and files',
    5,
    [
      { type: 'source-url', sourceId: 's', url: 'https://a.example', title: 'A', ...metadata('a') },
      { type: 'source-url', sourceId: 's', url: 'https://a.example' },
      {
        type: 'source-document',
        sourceId: 'd',
        mediaType: 'text/plain',
        title: 'D',
        filename: 'd.txt',
        ...metadata('b'),
      },
      { type: 'file', url: 'https://a.example/f', mediaType: 'image/png', ...metadata('c') },
    ],
  ],
  [
    'metadata, merged deeply',
    5,
    [
      { type: 'message-metadata', messageMetadata: { a: { b: 1, list: [1, 2] }, c: null } },
      {
        type: 'message-metadata',
        messageMetadata: { a: { d: 2, list: [3] }, c: { e: 1 }, toString: 1 },
      },
      { type: 'message-metadata', messageMetadata: null },
      { type: 'finish', finishReason: 'stop', messageMetadata: { a: { b: null } } },
    ],
  ],
  [
    'metadata of the start',
    5,
    [{ type: 'start', messageId: 'm', messageMetadata: { x: 1 } }, ...streamed],
  ],
  [
    'an error chunk, behind which nothing counts',
    5,
    [
      { type: 'text-start', id: '1' },
      { type: 'error', errorText: 'bad' },
      { type: 'text-delta', id: '1', delta: 'late' },
      { type: 'data-a', data: 1 },
    ],
  ],
  ['an abort, which does nothing', 5, [{ type: 'abort' }, { type: 'text-start', id: '1' }]],
  [
    'chunks behind finish',
    5,
    [...end, { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'late' }],
  ],
  [
    'an approval',
    6,
    [
      available,
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
    ],
  ],
  [
    'an approval asked for while the input streams',
    6,
    [...streamed, { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' }],
  ],
  [
    'a denial',
    6,
    [
      available,
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
      { type: 'tool-output-denied', toolCallId: 'c' },
    ],
  ],
  [
    'an answered approval',
    7,
    [
      available,
      {
        type: 'tool-approval-request',
        approvalId: 'a',
        toolCallId: 'c',
        reason: 'why',
        isAutomatic: true,
        signature: 's',
        approvalDescriptor: { d: 1 },
        inputSchemaInput: null,
      } as Chunk,
      {
        type: 'tool-approval-response',
        approvalId: 'a',
        approved: false,
        reason: 'no',
        providerExecuted: true,
        ...metadata('a'),
      },
      { type: 'tool-output-denied', toolCallId: 'c' },
    ],
  ],
  [
    'what only 7 has',
    7,
    [
      { type: 'custom', kind: 'a.b', ...metadata('a') },
      {
        type: 'reasoning-file',
        url: 'https://a.example/f',
        mediaType: 'image/png',
        ...metadata('b'),
      },
      { type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'more' }] },
      { type: 'finish', finishReason: 'interrupted' },
    ],
  ],
  [
    'a text across steps',
    7,
    [
      { type: 'text-start', id: '1' },
      { type: 'finish-step' },
      { type: 'start-step' },
      { type: 'text-delta', id: '1', delta: 'on' },
      {
        type: 'text-end',
        id: '1',
        citations: [{ source: { type: 'source', sourceType: 'url', id: 'u', url: 'x' } }],
      } as Chunk,
    ],
  ],
  [
    'a step taken back',
    7,
    [
      available,
      { type: 'data-a', id: '1', data: 1 },
      { type: 'finish-step' },
      { type: 'start-step' },
      { type: 'text-start', id: '1' },
      { type: 'data-a', id: '2', data: 2 },
      { type: 'data-a', id: '1', data: 3 },
      ...streamed,
      { type: 'reset-step' },
      { type: 'text-start', id: '1' },
      { type: 'text-delta', id: '1', delta: 'again' },
      { type: 'text-end', id: '1' },
      { type: 'data-a', id: '2', data: 4 },
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      { type: 'reset-step' },
      { type: 'reset-step' },
    ],
  ],
  [
    'a call id used again in another step',
    7,
    [
      available,
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      { type: 'finish-step' },
      { type: 'start-step' },
      ...streamed,
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'no' },
    ],
  ],
  [
    'an input that streams on in another step',
    7,
    [...streamed, { type: 'finish-step' }, { type: 'start-step' }, more],
  ],
  [
    'a call that changes its name',
    7,
    [...streamed, { type: 'tool-input-available', toolCallId: 'c', toolName: 'find', input: 1 }],
  ],
  [
    'a call id of a static and of a dynamic tool',
    7,
    [
      ...streamed,
      { ...available, dynamic: true } as Chunk,
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
      { type: 'tool-input-error', ...call, dynamic: true, input: 2, errorText: 'no' },
    ],
  ],
  [
    'all that 7 says about a call',
    7,
    [
      {
        type: 'tool-input-start',
        ...call,
        title: 'T',
        toolMetadata: { a: 1 },
        inputEncoding: 'text',
        ...metadata('a'),
      } as Chunk,
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: 'not {json' },
      { ...available, title: 'T2', ...metadata('b') } as Chunk,
      {
        type: 'tool-output-available',
        toolCallId: 'c',
        output: 1,
        toolMetadata: { b: 2 },
        title: 'ignored',
        ...metadata('c'),
      } as Chunk,
      { type: 'tool-input-start', toolCallId: 'e', toolName: 'x', inputEncoding: 'text' } as Chunk,
      { type: 'tool-input-delta', toolCallId: 'e', inputTextDelta: 'not {json' },
      {
        type: 'tool-input-error',
        toolCallId: 'f',
        toolName: 'x',
        input: 1,
        errorText: 'no',
        ...metadata('d'),
      },
    ],
  ],
];
