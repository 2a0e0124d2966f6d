import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { CHUNK_FIXTURES, encodeAll } from '../../../test/contract-fixtures.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { UIMessage } from '../../core/message.ts';
import type { StreamEvent } from './events.ts';
import { applyEvent, createReducer } from './reduce.ts';

const START = { type: 'message.start', data: { messageId: 'm', role: 'assistant' } };
const of = (type: string, data: object): StreamEvent => ({
  type,
  data: { messageId: 'm', ...data },
});
const delta = (text: string, more = {}) => of('message.delta', { delta: text, ...more });
const apply = (events: StreamEvent[], messages: UIMessage[] = []) =>
  events.reduce<UIMessage[]>((before, event) => applyEvent(before, event), messages);
const partsOf = (...events: StreamEvent[]) => apply([START, ...events])[0]?.parts;
const TOOL = { toolCallId: 't1', toolName: 'search' };

describe('the seed: text', () => {
  it('[CT-TEXT-1] [CT-STEP-2] message.start creates an assistant message with empty parts', () => {
    expect(apply([START])).toEqual([{ id: 'm', role: 'assistant', parts: [] }]);
  });

  it('[CT-TEXT-2] [CT-STEP-3] message.delta appends to the last text part or creates one', () => {
    expect(partsOf(delta('a'), delta('b'))).toMatchObject([{ type: 'text', text: 'ab' }]);
    const call = of('tool.call', { ...TOOL, input: {}, state: 'input-available' });
    expect(partsOf(delta('a'), call, delta('b'), delta('c'))).toMatchObject([
      { type: 'text', text: 'a', state: 'done' },
      { type: 'tool-search' },
      { type: 'text', text: 'bc' },
    ]);
  });

  it('[CT-STEP-7] message.end finalizes it', () => {
    expect(partsOf(delta('a'), of('message.end', {}))).toEqual([
      { type: 'text', text: 'a', state: 'done' },
    ]);
  });
});

describe('servers that name nothing', () => {
  it('have their thoughts and words in the order they came', () => {
    const said = [
      of('reasoning.delta', { delta: 'R1' }),
      of('message.delta', { delta: 'T1' }),
      of('reasoning.delta', { delta: 'R2' }),
      of('message.delta', { delta: 'T2' }),
      of('message.end', {}),
    ];
    expect(partsOf(...said)).toEqual([
      { type: 'reasoning', text: 'R1', state: 'done' },
      { type: 'text', text: 'T1', state: 'done' },
      { type: 'reasoning', text: 'R2', state: 'done' },
      { type: 'text', text: 'T2', state: 'done' },
    ]);
  });

  it.each(['', 0, null])('may do so with %j', (partId) => {
    const said = ['a', 'b', 'c'].map((text) => of('message.delta', { partId, delta: text }));
    expect(partsOf(...said)).toMatchObject([{ type: 'text', text: 'abc' }]);
  });
});

describe('what a server of another version says', () => {
  const call = of('tool.call', { ...TOOL, input: { q: 1 }, state: 'input-available' });
  const shown = {
    type: 'tool-search',
    toolCallId: 't1',
    state: 'input-available',
    input: { q: 1 },
  };

  it.each(['tool.progress', 'tool.end', 'toolbox', 'ping'])('%s does no harm', (type) => {
    expect(partsOf(call, of(type, { ...TOOL, output: 'gone' }))).toEqual([shown]);
  });

  it('in a field that we know elsewhere is kept', () => {
    const approval = { id: 'a' };
    const said = of('tool.call', { ...TOOL, input: { q: 1 }, state: 'input-available', approval });
    expect(partsOf(said)).toEqual([{ ...shown, approval }]);
  });

  it('of nobody in particular changes nothing', () => {
    const said = of('tool.approval', { state: 'approval-responded', approval: { approved: true } });
    expect(partsOf(delta('a'), said)).toMatchObject([{ type: 'text', text: 'a' }]);
  });

  it('of a denial leaves all else as it was', () => {
    const early = { ...TOOL, output: 1, preliminary: true, state: 'output-available' };
    const denied = of('tool.result', { ...TOOL, state: 'output-denied' });
    expect(partsOf(call, of('tool.result', early), denied)).toEqual([
      { ...shown, output: 1, preliminary: true, state: 'output-denied' },
    ]);
  });

  it('of a denial makes a call that nobody has heard of', () => {
    expect(partsOf(of('tool.result', { ...TOOL, state: 'output-denied' }))).toEqual([
      { type: 'tool-search', toolCallId: 't1', state: 'output-denied' },
    ]);
  });

  it('asks for approval again, without what was answered the first time', () => {
    const say = (state: string, approval: object) =>
      of('tool.approval', { toolCallId: 't1', state, approval });
    const parts = partsOf(
      call,
      say('approval-requested', { id: 'a1' }),
      say('approval-responded', { id: 'a1', approved: true, reason: 'Fine.' }),
      say('approval-requested', { id: 'a2' }),
    );
    expect(parts).toEqual([{ ...shown, state: 'approval-requested', approval: { id: 'a2' } }]);
  });

  it('in a question is all of it the question', () => {
    const question = { questionId: 'q', type: 'choice', metadata: { a: 1 } };
    expect(partsOf(of('question', question))).toEqual([
      { type: 'data-question', id: 'q', data: question },
    ]);
  });
});

describe('the seed: tools', () => {
  it('[CT-TOOL-1] [CT-STEP-4] tool.call adds a part with its name, state, id and input', () => {
    const input = { query: 'x' };
    expect(partsOf(of('tool.call', { ...TOOL, input, state: 'input-available' }))).toEqual([
      { type: 'tool-search', toolCallId: 't1', state: 'input-available', input },
    ]);
  });

  it('[CT-TOOL-2] [CT-STEP-4] tool.delta shows the input as far as it goes, also before its call', () => {
    const streaming = (text: string) => of('tool.delta', { ...TOOL, delta: text });
    expect(partsOf(streaming('{"query":"ma'), streaming('sts"'))).toMatchObject([
      { type: 'tool-search', state: 'input-streaming', input: { query: 'masts' } },
    ]);
    const unnamed = of('tool.delta', { toolCallId: 't1', delta: '{"q' });
    expect(partsOf(unnamed)).toEqual([]);
    expect(partsOf(unnamed, of('tool.call', { ...TOOL, input: { q: 1 } }))).toMatchObject([
      { type: 'tool-search', state: 'input-available', input: { q: 1 } },
    ]);
  });

  it.each([
    ['output', { output: { n: 1 }, state: 'output-available' }],
    ['error', { errorText: 'No.', state: 'output-error' }],
  ])(
    '[CT-TOOL-3] [CT-STEP-5] [CT-NOTE-2] tool.result attaches the %s, also to a call that was never seen',
    (_, result) => {
      const call = of('tool.call', { ...TOOL, input: { q: 1 } });
      expect(partsOf(call, of('tool.result', { ...TOOL, ...result }))).toEqual([
        { type: 'tool-search', toolCallId: 't1', input: { q: 1 }, ...result },
      ]);
      expect(partsOf(of('tool.result', { ...TOOL, ...result }))).toMatchObject([
        { type: 'tool-search', toolCallId: 't1', ...result },
      ]);
    },
  );

  it('[CT-NOTE-4] tool events before any message create the message', () => {
    const data = { ...TOOL, input: {}, state: 'input-available' };
    expect(apply([{ type: 'tool.call', data }])).toMatchObject([
      { role: 'assistant', parts: [{ type: 'tool-search' }] },
    ]);
  });
});

describe('the seed: the rest', () => {
  it('[CT-SOURCE-1] [CT-STEP-6] source adds a source-url part to the same message', () => {
    const source = { sourceId: 's', url: 'https://a.test/', title: 'A' };
    expect(partsOf(of('source', { ...source, toolCallId: 't1' }))).toEqual([
      { type: 'source-url', ...source },
    ]);
  });

  it('[CT-STEP-1] [CT-STEP-8] [CT-STEP-9] meta, status, done and error leave the words alone', () => {
    const messages = apply([START, delta('a'), of('message.end', {})]);
    for (const type of ['meta', 'status', 'error', 'done', 'whatever', '']) {
      expect(apply([{ type, data: { state: 'x', message: 'y' } }], messages)[0]?.parts).toEqual(
        messages[0]?.parts,
      );
    }
    expect(apply([{ type: 'done', data: {} }])).toEqual([]);
  });

  it('[CT-ORDER] applies events in order, each to the message it names', () => {
    const messages = apply([
      START,
      delta('a'),
      { type: 'message.start', data: { messageId: 'n' } },
      { type: 'message.delta', data: { messageId: 'n', delta: 'b' } },
      delta('c'),
      { type: 'message.delta', data: { delta: 'd' } },
    ]);
    expect(messages.map(({ id, parts }) => [id, parts])).toMatchObject([
      ['m', [{ text: 'acd' }]],
      ['n', [{ text: 'b' }]],
    ]);
  });

  it('lets words go on behind what is about the run, and takes none of it for a step', () => {
    for (const state of ['start', 'reset', 'thinking']) {
      const parts = partsOf(
        delta('a'),
        { type: 'status', data: { state } },
        { type: 'error', data: { message: 'x', terminal: false } },
        of('data', { name: 'tick', data: 1, transient: true }),
        delta('b'),
      );
      expect(parts).toMatchObject([{ type: 'text', text: 'ab' }]);
      expect(parts).toHaveLength(1);
    }
  });

  it('has an id for every message and a type for every part', () => {
    const messages = apply([
      { type: 'message.start', data: {} },
      { type: 'part', data: { part: {} } },
      { type: 'part', data: { part: null } },
      { type: 'message.delta', data: { delta: 'a' } },
    ]);
    expect(messages).toMatchObject([{ id: expect.any(String), parts: [{ type: 'text' }] }]);
    expect(messages[0]?.parts).toHaveLength(1);
  });

  it('replays a run from its beginning in place', () => {
    const before = apply([START, delta('half')]);
    const after = apply([{ type: 'meta', data: {} }, START, delta('whole')], before);
    expect(after).toMatchObject([{ id: 'm', parts: [{ text: 'whole' }] }]);
  });
});

/** What the fold makes of chunks that a client would read no further than. */
function folded(chunks: Chunk[]): UIMessage {
  return foldChunks(chunks);
}

describe('one reducer', () => {
  it.each(CHUNK_FIXTURES)(
    '[CT-NOTE-1] makes of $name what the fold makes of its chunks',
    ({ chunks }) => {
      const messages = apply(encodeAll(chunks));
      expect(messages).toEqual([folded(chunks)]);
    },
  );

  it('makes of any turn what the fold makes of its chunks', () => {
    fc.assert(
      fc.property(chunkSequences(7, 'whole'), (chunks) => {
        const [message] = apply(encodeAll(chunks));
        expect(message).toEqual(folded(chunks));
      }),
      { numRuns: 1_000 },
    );
  });

  it('[CT-REDUCER] is pure, shares what did not change, and goes on from any list', () => {
    fc.assert(
      fc.property(chunkSequences(7, 'whole'), (chunks) => {
        const first: UIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] };
        let messages = [first];
        const seen: [UIMessage[], string][] = [];
        for (const event of encodeAll(chunks)) {
          seen.push([messages, JSON.stringify(messages)]);
          const next = applyEvent(messages, event);
          expect(next[0]).toBe(first);
          const before = messages[1]?.parts ?? [];
          const changed = next[1]?.parts.filter((part, i) => part !== before[i]) ?? [];
          // What one event says is about one part, or ends several.
          if (event.type.endsWith('.delta')) expect(changed.length).toBeLessThanOrEqual(2);
          messages = next;
        }
        for (const [list, text] of seen) {
          // The input of a tool that still streams is live until it is whole.
          if (!text.includes('"input-streaming"')) expect(JSON.stringify(list)).toBe(text);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('takes up a message that it did not begin', () => {
    const messages = apply([START, delta('one ')]);
    const copy = structuredClone(messages);
    expect(applyEvent(copy, delta('two'))).toMatchObject([{ parts: [{ text: 'one two' }] }]);
    // From the same list in two ways.
    expect(applyEvent(messages, delta('a'))).toMatchObject([{ parts: [{ text: 'one a' }] }]);
    expect(applyEvent(messages, delta('b'))).toMatchObject([{ parts: [{ text: 'one b' }] }]);
  });

  it('never throws, whatever comes', () => {
    const type = fc.constantFrom(
      ...['meta', 'message.start', 'message.delta', 'message.end', 'text.start', 'text.end'],
      ...['reasoning.delta', 'reasoning.end', 'tool.call', 'tool.delta', 'tool.result'],
      ...['tool.approval', 'source', 'step', 'data', 'question', 'part', 'metadata', 'status'],
      ...['error', 'done', 'x', ''],
    );
    const key = fc.constantFrom(
      ...['messageId', 'partId', 'delta', 'toolCallId', 'toolName', 'input', 'output', 'state'],
      ...['errorText', 'name', 'data', 'part', 'metadata', 'questionId', 'approvalId', 'usage'],
      '__proto__',
    );
    const value = fc.oneof(fc.constantFrom('a', 'b', ''), fc.anything());
    const data = fc.oneof(fc.anything(), fc.dictionary(key, value));
    fc.assert(
      fc.property(fc.array(fc.record({ type, data }), { maxLength: 20 }), (events) => {
        expect(Array.isArray(apply(events))).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it('reads a long input in time that grows with its length', () => {
    const time = (count: number) => {
      const reducer = createReducer([]);
      const piece = (n: number) => (n === 0 ? '{"text":"' : 'twelve chars');
      const begin = performance.now();
      for (let n = 0; n < count; n++) {
        reducer.apply(of('tool.delta', { ...TOOL, delta: piece(n) }));
        void reducer.messages;
      }
      return performance.now() - begin;
    };
    time(2_000);
    const short = Math.min(...Array.from({ length: 5 }, () => time(4_000)));
    const long = Math.min(...Array.from({ length: 5 }, () => time(32_000)));
    expect(long / short).toBeLessThan(8 * 3);
  });
});
