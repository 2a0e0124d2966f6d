import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { readJsonl } from '../../../test/jsonl.ts';
import { CLIENTS, runClient } from '../../../test/real-clients.ts';
import { describeTranslator } from '../../../test/translator-conformance.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { OpenHarnessUIMessage, RuntimeEventType } from './events.ts';
import type { OpenHarnessOptions } from './options.ts';
import { createOpenHarnessTranslator, createTranslator } from './translate.ts';

const FIXTURES = new URL('../../../test/fixtures/open-harness/', import.meta.url);

describeTranslator('Open Harness', FIXTURES, createOpenHarnessTranslator);

const EVENT_TYPES: RuntimeEventType[] = [
  'flow:start',
  'flow:resumed',
  'flow:paused',
  'flow:aborted',
  'flow:complete',
  'node:start',
  'node:complete',
  'node:error',
  'node:skipped',
  'agent:start',
  'agent:text:delta',
  'agent:text',
  'agent:thinking:delta',
  'agent:thinking',
  'agent:tool',
  'agent:error',
  'agent:complete',
  'agent:paused',
  'agent:aborted',
  'edge:fire',
  'loop:iterate',
  'state:patch',
  'command:received',
];

const NODE = { nodeId: 'n', runId: 'r' };
const flow = (...events: Record<string, unknown>[]) => [
  { type: 'flow:start', flowName: 'f' },
  { type: 'node:start', ...NODE },
  ...events.map((event) => ({ ...NODE, ...event })),
  { type: 'node:complete', ...NODE, output: null },
  { type: 'flow:complete', flowName: 'f', status: 'complete' },
];

function translate(events: unknown[], options: OpenHarnessOptions = {}) {
  const translator = createOpenHarnessTranslator({ messageId: 'm', ...options });
  const chunks = events.flatMap((event) => translator.push(event));
  return { translator, chunks };
}

function fold(events: unknown[], options?: OpenHarnessOptions): OpenHarnessUIMessage {
  const { chunks, translator } = translate(events, options);
  return foldChunks([...chunks, ...translator.end()]) as OpenHarnessUIMessage;
}

const recorded = (name: string) =>
  readJsonl(new URL(`recorded-${name}.events.jsonl`, FIXTURES)).filter(
    (event) => !(event as { options?: unknown }).options,
  );
const types = (chunks: Chunk[]) => chunks.map(({ type }) => type);

describe('mapping Open Harness events', () => {
  it('turns text deltas into text-delta chunks of one message [FR-002] [FR-006] [VAL-10]', () => {
    const { chunks } = translate(recorded('one-node-text'));
    const deltas = chunks.filter((chunk) => chunk.type === 'text-delta');
    expect(deltas.map(({ delta }) => delta)).toEqual(['Hello', ', ', 'world', '!']);
    expect(new Set(deltas.map(({ id }) => id)).size).toBe(1);
    expect(chunks.filter(({ type }) => type === 'start')).toEqual([
      { type: 'start', messageId: 'm' },
    ]);
  });

  it('turns thinking deltas into reasoning-delta chunks [FR-003] [US4-AS1]', () => {
    const { chunks } = translate(recorded('three-nodes-tools-thinking'));
    const deltas = chunks.filter((chunk) => chunk.type === 'reasoning-delta');
    expect(deltas.map(({ delta }) => delta).join('|')).toBe(
      'I need |two lookups.|One hit| is enough.|check',
    );
  });

  it('opens text before its first delta and closes it after its last [FR-011] [VAL-06] [VAL-07]', () => {
    const { chunks } = translate(flow({ type: 'agent:text:delta', content: 'a' }));
    expect(types(chunks)).toEqual([
      'start',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
      'finish-step',
      'finish',
    ]);
  });

  it('opens reasoning before its first delta and closes it after its last [FR-012] [VAL-08]', () => {
    const { chunks } = translate(flow({ type: 'agent:thinking:delta', content: 'a' }));
    expect(types(chunks).slice(2, 5)).toEqual([
      'reasoning-start',
      'reasoning-delta',
      'reasoning-end',
    ]);
  });

  it('marks a thought as done when it is, and puts it before the text [US4-AS2] [US4-AS3]', () => {
    const { parts } = fold(recorded('three-nodes-tools-thinking'));
    const reasoning = parts.filter((part) => part.type === 'reasoning');
    expect(reasoning).toHaveLength(3);
    for (const part of reasoning) expect(part.state).toBe('done');
    const first = (type: string) => parts.findIndex((part) => part.type === type);
    expect(first('reasoning')).toBeLessThan(first('text'));
  });

  it('shows a call with its input, then its output [FR-004] [US2-AS1] [US2-AS2]', () => {
    const call = { type: 'agent:tool', toolName: 'search', toolInput: { q: 'a' } };
    const asked = fold(flow(call).slice(0, 3));
    const { chunks } = translate(flow(call, { ...call, toolOutput: { hits: 1 } }));
    expect(asked.parts.at(-1)).toMatchObject({ type: 'tool-search', input: { q: 'a' } });
    const tools = chunks.filter(({ type }) => type.startsWith('tool-'));
    expect(tools).toEqual([
      {
        type: 'tool-input-available',
        toolCallId: 'm-call-1',
        toolName: 'search',
        input: { q: 'a' },
        providerExecuted: true,
      },
      {
        type: 'tool-output-available',
        toolCallId: 'm-call-1',
        output: { hits: 1 },
        providerExecuted: true,
      },
    ]);
  });

  it('keeps several calls apart and in order [US2-AS3] [VAL-11]', () => {
    const { parts } = fold(recorded('three-nodes-tools-thinking'));
    const tools = parts.filter((part) => part.type.startsWith('tool-'));
    expect(tools).toMatchObject([
      { type: 'tool-search', input: { q: 'alpha' }, state: 'output-available' },
      { type: 'tool-search', input: { q: 'beta' }, state: 'output-error' },
      { type: 'tool-write', input: { path: 'x' }, output: 'ok' },
    ]);
    expect(new Set(tools.map((part) => 'toolCallId' in part && part.toolCallId)).size).toBe(3);
  });

  it('shows a failed tool as failed and goes on [FR-019] [US2-AS4] [SC-003]', () => {
    const message = fold(
      flow(
        { type: 'agent:tool', toolName: 'search', toolInput: {}, error: 'rate limited' },
        { type: 'agent:text', content: 'Went on.' },
      ),
    );
    expect(message.parts).toMatchObject([
      { type: 'step-start' },
      { state: 'output-error', errorText: 'rate limited' },
      { type: 'text', text: 'Went on.' },
    ]);
  });

  it('closes a tool that timed out with the reason [EC-5]', () => {
    const { chunks } = translate([
      { type: 'node:start', ...NODE },
      { type: 'agent:tool', ...NODE, toolName: 'slow', toolInput: {} },
      { type: 'node:error', ...NODE, error: 'Node timed out after 5 s' },
    ]);
    expect(chunks).toContainEqual({
      type: 'tool-output-error',
      toolCallId: 'm-call-1',
      errorText: 'Node timed out after 5 s',
      providerExecuted: true,
    });
  });

  it('makes a step of every node, in order [FR-005] [US3-AS1] [US3-AS3]', () => {
    const { chunks } = translate(recorded('three-nodes-tools-thinking'));
    const steps = types(chunks).filter((type) => type.endsWith('-step'));
    expect(steps).toEqual(Array(3).fill(['start-step', 'finish-step']).flat());
    const { parts } = foldChunks(chunks);
    expect(parts.filter((part) => part.type === 'step-start')).toHaveLength(3);
  });

  it('names each step right behind its start, for separators and labels [US3-AS2] [SC-004]', () => {
    const { parts } = fold(recorded('three-nodes-tools-thinking'), { sendFlowMetadata: true });
    const labels = parts.flatMap((part, index) => {
      const next = parts[index + 1];
      return part.type === 'step-start' && next?.type === 'data-node' ? [next.data.nodeId] : [];
    });
    expect(labels).toEqual(['researcher', 'writer', 'reviewer']);
  });

  it('does not end at agent:complete inside a flow, but at the end of the flow [FR-014]', () => {
    const events = recorded('three-nodes-tools-thinking');
    const { translator } = translate(events.slice(0, -1));
    expect(translator.ended).toBe(false);
    const chunks = translator.push(events.at(-1));
    expect(translator.ended).toBe(true);
    expect(types(chunks)).toEqual(['finish']);
  });

  it('ends a bare agent at agent:complete and at agent:paused [FR-014] [US1-AS4]', () => {
    for (const type of ['agent:complete', 'agent:paused']) {
      const { translator, chunks } = translate([
        { type: 'agent:text:delta', ...NODE, content: 'a' },
        { type, ...NODE },
      ]);
      expect(translator.ended, type).toBe(true);
      expect(types(chunks).slice(-2)).toEqual(['text-end', 'finish']);
    }
  });

  it('shows an error of the flow in words for people [FR-013] [SC-006]', () => {
    const { chunks } = translate([
      { type: 'flow:start', flowName: 'f' },
      { type: 'agent:error', ...NODE, errorType: 'api', message: 'Overloaded\n  at x (/a/b.js:1)' },
      { type: 'flow:complete', status: 'failed' },
    ]);
    expect(chunks.slice(-3)).toEqual([
      {
        type: 'message-metadata',
        messageMetadata: { outcome: 'failed', code: 'run-failed', flowName: 'f' },
      },
      { type: 'error', errorText: 'Overloaded' },
      { type: 'finish', finishReason: 'error' },
    ]);
  });

  it('lets the application choose the words, and survives it if it throws [SC-006]', () => {
    const events = [
      { type: 'node:error', ...NODE, error: 'E42' },
      { type: 'flow:complete', status: 'failed' },
    ];
    const text = (errorText: (error: unknown) => string) =>
      translate(events, { errorText }).chunks.find((chunk) => chunk.type === 'error')?.errorText;
    expect(text((error) => `Sorry: ${error}`)).toBe('Sorry: E42');
    expect(
      text(() => {
        throw new Error('no words');
      }),
    ).toBe('E42');
    expect(text(() => '')).toBe('E42');
  });

  it('ends an aborted flow with an error, and quietly if it was asked to stop [EC-1]', () => {
    const events = recorded('abort');
    const { chunks } = translate(events);
    expect(types(chunks).slice(-3)).toEqual(['message-metadata', 'error', 'finish']);
    const { translator } = translate(events.slice(0, 10));
    expect(types(translator.end({ status: 'stopped' }))).not.toContain('error');
    expect(translator.push({ type: 'flow:aborted' })).toEqual([]);
  });

  it('offers flow status and node outputs as data parts [FR-015] [US5-AS1] [US5-AS2]', () => {
    const { parts } = fold(
      [
        { type: 'flow:start', flowName: 'f' },
        { type: 'node:start', ...NODE },
        { type: 'node:complete', ...NODE, output: { answer: 42 } },
        { type: 'flow:paused' },
      ],
      { sendFlowMetadata: true, sendNodeOutputs: true },
    );
    expect(parts).toContainEqual({
      type: 'data-node-output',
      data: { nodeId: 'n', runId: 'r', output: { answer: 42 } },
    });
    expect(parts).toContainEqual({
      type: 'data-flow-status',
      id: 'flow',
      data: { status: 'paused', flowName: 'f' },
    });
  });

  it('lets a UI draw the flow from the data parts: order and status of nodes [US5-AS3]', () => {
    const { parts } = fold(
      [...flow(), { type: 'node:skipped', nodeId: 'optional' }].toSpliced(3, 0, {
        type: 'node:skipped',
        nodeId: 'optional',
        reason: 'edge',
      } as never),
      { sendFlowMetadata: true },
    );
    const nodes = parts.flatMap((part) => (part.type === 'data-node' ? [part.data] : []));
    expect(nodes).toEqual([
      { nodeId: 'n', runId: 'r', status: 'complete' },
      { nodeId: 'optional', status: 'skipped' },
    ]);
  });

  it('sends no data parts unless asked, and leaves out what is switched off [FR-020]', () => {
    const events = recorded('three-nodes-tools-thinking');
    expect(types(translate(events).chunks).some((type) => type.startsWith('data-'))).toBe(false);
    const { chunks } = translate(events, { sendReasoning: false, sendStepMarkers: false });
    expect(types(chunks).filter((type) => /reasoning|step/.test(type))).toEqual([]);
    expect(verifyChunks(chunks)).toEqual([]);
  });

  it('keeps the order of events from nodes that speak at the same time [FR-018] [EC-7]', () => {
    const { parts } = foldChunks(
      readJsonl(new URL('nodes-at-the-same-time.chunks.jsonl', FIXTURES)) as Chunk[],
    );
    const said = parts.flatMap((part) => {
      if (part.type === 'text') return [part.text];
      return 'output' in part ? [part.output] : [];
    });
    expect(said).toEqual(['a1 ', 'b1 ', 'A', 'b2', 'a2']);
  });

  it('gives messages ids that differ unless told otherwise [FR-010] [VAL-09]', () => {
    const ids = Array.from({ length: 100 }, () => {
      const [start] = createOpenHarnessTranslator().end();
      return start?.type === 'start' ? start.messageId : undefined;
    });
    expect(new Set(ids).size).toBe(100);
    const [start] = createOpenHarnessTranslator({ generateMessageId: () => 'mine' }).end();
    expect(start).toEqual({ type: 'start', messageId: 'mine' });
  });

  it('sums usage and cost over nodes', () => {
    const usage = { inputTokens: 10, outputTokens: 5, cacheReadInputTokens: 2 };
    const complete = { type: 'agent:complete', usage, totalCostUsd: 0.25 };
    expect(fold(flow(complete, complete)).metadata).toEqual({
      outcome: 'finished',
      flowName: 'f',
      usage: { inputTokens: 20, outputTokens: 10, cachedInputTokens: 4 },
      totalCostUsd: 0.5,
    });
  });

  it('carries ten and a thousand tool calls in one turn [SC-005]', () => {
    for (const count of [10, 1_000]) {
      const calls = Array.from({ length: count }, (_, n) => ({
        type: 'agent:tool',
        toolName: 'search',
        toolInput: { n },
        toolOutput: n,
      }));
      const { parts } = fold(flow(...calls));
      const outputs = parts.flatMap((part) => ('output' in part ? [part.output] : []));
      expect(outputs).toEqual(Array.from({ length: count }, (_, n) => n));
    }
  });

  it('never leaves a tool without an input, which AI Elements could not render [SC-007]', () => {
    const { chunks } = translate(recorded('three-nodes-tools-thinking'));
    for (let length = 1; length <= chunks.length; length++) {
      for (const part of foldChunks(chunks.slice(0, length)).parts) {
        if (!part.type.startsWith('tool-')) continue;
        expect((part as { input?: unknown }).input).toBeDefined();
      }
    }
  });
});

describe('what happens in a run', () => {
  const text = (run: string, content: string) => ({
    type: 'agent:text:delta',
    nodeId: run,
    runId: run,
    content,
  });
  const at = (run: string, type: string, more = {}) => ({ type, nodeId: run, runId: run, ...more });
  const texts = (events: unknown[]) =>
    fold(events).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));

  it('says start at once, with whichever known event comes first [VAL-05]', () => {
    for (const event of [{ type: 'flow:start', flowName: 'f' }, { type: 'state:patch' }]) {
      expect(translate([event]).chunks[0]).toEqual({ type: 'start', messageId: 'm' });
    }
  });

  it('counts nothing where nothing is wrong, silent events included', () => {
    const silent = ['edge:fire', 'loop:iterate', 'state:patch', 'command:received'];
    const { translator, chunks } = translate([
      ...flow({ type: 'agent:text', content: 'x' }).slice(0, -1),
      ...silent.map((type) => ({ type })),
    ]);
    expect({ ...translator.stats.malformed, ...translator.stats.unknown }).toEqual({});
    expect(types(chunks).at(-1)).toBe('finish-step');
  });

  it('is in a flow as soon as a flow or a node spoke, not because a command came', () => {
    const complete = at('a', 'agent:complete');
    const endedAfter = (first: object) => translate([first, complete]).translator.ended;
    expect(endedAfter({ type: 'flow:start' })).toBe(false);
    expect(endedAfter(at('a', 'node:start'))).toBe(false);
    expect(endedAfter({ type: 'command:received' })).toBe(true);
  });

  it('takes the name of the flow from its start, if that is a name', () => {
    const end = { type: 'flow:complete', status: 'complete' };
    const nameOf = (flowName: unknown) =>
      fold([{ type: 'flow:start', flowName }, end], { flowName: 'given' }).metadata?.flowName;
    expect([nameOf('told'), nameOf(5)]).toEqual(['told', 'given']);
  });

  it('begins a new part when an agent tries again, and gives up the tools of the first try', () => {
    const { chunks } = translate([
      text('a', 'half'),
      at('a', 'agent:tool', { toolName: 't', toolInput: 1 }),
      text('a', 'more'),
      at('a', 'agent:start'),
      text('a', 'again'),
    ]);
    expect(types(chunks).slice(-5)).toEqual([
      'text-delta',
      'text-end',
      'tool-output-error',
      'text-start',
      'text-delta',
    ]);
  });

  it('does not say a block twice that is repeated after another node began', () => {
    const whole = at('a', 'agent:text', { content: 'one' });
    expect(texts([at('a', 'node:start'), text('a', 'one'), at('b', 'node:start'), whole])).toEqual([
      'one',
    ]);
  });

  it('does not close what another run has open', () => {
    const others = [
      at('b', 'agent:complete'),
      at('b', 'node:complete'),
      at('b', 'agent:text', { content: '' }),
      at('b', 'agent:start'),
    ];
    for (const other of others) {
      expect(texts([at('b', 'node:start'), text('a', 'one '), other, text('a', 'two')])).toEqual(
        other.type === 'node:complete' ? ['one ', 'two'] : ['one two'],
      );
    }
  });

  it('ends only its own step', () => {
    const { chunks } = translate([
      at('a', 'node:start'),
      at('b', 'node:start'),
      at('a', 'node:complete'),
      text('b', 'still in the step of b'),
    ]);
    expect(types(chunks).filter((type) => type.endsWith('-step'))).toEqual([
      'start-step',
      'finish-step',
      'start-step',
    ]);
  });

  it('lets a thought go on when a block of text is repeated late', () => {
    const thought = (content: string) => at('a', 'agent:thinking:delta', { content });
    const { parts } = fold([
      text('a', 'text'),
      thought('one '),
      at('a', 'agent:text', { content: 'text' }),
      thought('two'),
    ]);
    expect(parts).toMatchObject([
      { type: 'text', text: 'text' },
      { type: 'reasoning', text: 'one two' },
    ]);
  });

  it('passes a tool’s error on, whatever it is', () => {
    const errors = ['two\nlines', new Error('of /a/b/c.js\nwhole'), { code: 7 }, 0, false];
    const { parts } = fold(
      flow(...errors.map((error) => ({ type: 'agent:tool', toolName: 't', error }))),
    );
    expect(parts.flatMap((part) => ('errorText' in part ? [part.errorText] : []))).toEqual([
      'two\nlines',
      'of /a/b/c.js\nwhole',
      '{"code":7}',
      '0',
      'false',
    ]);
  });

  it('ignores usage that is no number', () => {
    const usage = { inputTokens: 'many', outputTokens: 3, cacheReadInputTokens: 'x' };
    const { metadata } = fold(flow({ type: 'agent:complete', usage, totalCostUsd: 'cheap' }));
    expect(metadata?.usage).toEqual({ outputTokens: 3 });
    expect(metadata).not.toHaveProperty('totalCostUsd');
  });

  it('knows in the next message what was seen of the run in the last', () => {
    const first = createTranslator({ messageId: 'one' });
    first.push({ type: 'flow:start', flowName: 'f' });
    first.push(text('a', 'said'));
    const second = first.continueAs('two');
    const chunks = [
      ...second.push(at('a', 'agent:text', { content: 'said' })),
      ...second.push(at('a', 'agent:complete')),
      ...second.push(text('a', 'more')),
      ...second.end({ status: 'finished' }),
    ];
    expect(foldChunks(chunks)).toMatchObject({
      id: 'two',
      metadata: { flowName: 'f' },
      parts: [{ type: 'text', text: 'more' }],
    });
  });
});

describe('time that does not run away', () => {
  it('pairs thousands of calls with answers that come in reverse', () => {
    const input = (n: number) => ({ n, text: 'x'.repeat(500) });
    const call = (n: number) => ({ type: 'agent:tool', toolName: 't', toolInput: input(n) });
    const numbers = Array.from({ length: 3_000 }, (_, n) => n);
    const start = performance.now();
    const { chunks } = translate(
      flow(
        ...numbers.map(call),
        ...numbers.toReversed().map((n) => ({ ...call(n), toolOutput: n })),
      ),
    );
    expect(chunks.filter(({ type }) => type === 'tool-output-available')).toHaveLength(3_000);
    expect(performance.now() - start).toBeLessThan(3_000);
  });

  it('finds a cycle in a wide value soon', () => {
    const wide: unknown[] = Array.from({ length: 20_000 }, (_, n) => n);
    wide.push(wide);
    const start = performance.now();
    translate(flow({ type: 'agent:tool', toolName: 't', toolOutput: wide }));
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});

describe('events that are not what they should be', () => {
  const cyclic: Record<string, unknown> = { a: 1 };
  cyclic.self = cyclic;

  it('skips and counts what it cannot read, and reports each type once [VAL-01] [VAL-02] [VAL-03] [VAL-04]', () => {
    const warn = vi.fn();
    const bad = [
      null,
      undefined,
      'a string',
      42,
      Symbol('x'),
      [],
      {},
      { type: 7 },
      { type: 'agent:text:delta', nodeId: 'n', content: 'no runId' },
      { type: 'agent:text:delta', runId: 'r', content: 'no nodeId' },
      { type: 'agent:text:delta', ...NODE, content: 5 },
      { type: 'agent:tool', ...NODE },
      { type: 'constructor' },
      { type: '__proto__' },
      { type: 'agent:dreaming', ...NODE },
      { type: 'agent:dreaming', ...NODE },
    ];
    const { translator, chunks } = translate(bad, { logger: { warn } });
    expect(chunks).toEqual([]);
    expect(translator.stats.malformed).toStrictEqual({
      '(no type)': 8,
      'agent:text:delta': 3,
      'agent:tool': 1,
    });
    expect(translator.stats.unknown).toStrictEqual({ constructor: 1, 'agent:dreaming': 2 });
    expect(warn).toHaveBeenCalledTimes(5);
  });

  it.each([
    ['a cyclic output', cyclic, { a: 1, self: '[circular]' }],
    ['a BigInt', { n: 10n }, { n: '10' }],
    ['a function', () => 1, null],
  ])('makes %s safe, counts it, and the stream goes on', async (_, toolOutput, safe) => {
    const { translator, chunks } = translate(
      flow({ type: 'agent:tool', toolName: 't', toolOutput }, { type: 'agent:text', content: 'x' }),
    );
    expect(translator.stats.malformed['agent:tool']).toBe(1);
    expect(verifyChunks(chunks)).toEqual([]);
    const { message, status } = await runClient('ai@7', chunks);
    expect(status).toBe('ready');
    expect(message?.parts[1]).toMatchObject({ output: safe });
  });

  it('carries an output of 10 MB whole to every client', async () => {
    const toolOutput = 'x'.repeat(10_000_000);
    const { chunks } = translate(flow({ type: 'agent:tool', toolName: 't', toolOutput }));
    for (const { name } of CLIENTS) {
      const { message, status } = await runClient(name, chunks);
      expect(status).toBe('ready');
      const output = (message?.parts[1] as { output?: string } | undefined)?.output;
      expect(output?.length).toBe(10_000_000);
    }
  });

  it('survives events whose properties throw', () => {
    const trap = new Proxy(
      { type: 'agent:tool' },
      {
        get(target, key) {
          if (key === 'type') return target.type;
          throw new Error('trap');
        },
      },
    );
    const { translator } = translate([
      trap,
      Object.defineProperty({}, 'type', {
        get() {
          throw new Error('trap');
        },
      }),
    ]);
    expect({ ...translator.stats.malformed }).toEqual({ 'agent:tool': 1, '(no type)': 1 });
  });

  it('survives a logger that throws', () => {
    const warn = () => {
      throw new Error('disk full');
    };
    expect(translate([{ type: 'x' }], { logger: { warn } }).chunks).toEqual([]);
  });

  it('does not let invented event types fill the memory', () => {
    const invented = Array.from({ length: 10_000 }, (_, n) => ({ type: `x:${n}` }));
    const { translator } = translate(invented);
    expect(Object.keys(translator.stats.unknown)).toHaveLength(101);
    expect(translator.stats.unknown['(others)']).toBe(9_900);
  });

  it('keeps the ordering law for any events in any order', () => {
    const anyEvent = fc.record(
      {
        type: fc.oneof({ weight: 20, arbitrary: fc.constantFrom(...EVENT_TYPES) }, fc.string()),
        nodeId: fc.oneof({ weight: 9, arbitrary: fc.constantFrom('a', 'b') }, fc.anything()),
        runId: fc.oneof({ weight: 9, arbitrary: fc.constantFrom('1', '2') }, fc.anything()),
        content: fc.oneof({ weight: 9, arbitrary: fc.string() }, fc.anything()),
        toolName: fc.oneof({ weight: 9, arbitrary: fc.constantFrom('t', 'u') }, fc.anything()),
        toolInput: fc.oneof(fc.constantFrom({ a: 1 }, {}), fc.anything()),
        toolOutput: fc.anything({ withBigInt: true, withDate: true, withMap: true }),
        error: fc.anything(),
        message: fc.anything(),
        usage: fc.anything(),
        totalCostUsd: fc.anything(),
        status: fc.constantFrom('complete', 'failed'),
        output: fc.anything(),
        flowName: fc.anything(),
      },
      { requiredKeys: ['type', 'nodeId', 'runId', 'content'] },
    );
    const options = fc.record({
      sendReasoning: fc.boolean(),
      sendStepMarkers: fc.boolean(),
      sendFlowMetadata: fc.boolean(),
      sendNodeOutputs: fc.boolean(),
      bare: fc.constantFrom(true, false, undefined),
    });
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), options, (events, chosen) => {
        const { translator, chunks } = translate(events, chosen);
        const all = [...chunks, ...translator.end()];
        expect(verifyChunks(all)).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });
});
