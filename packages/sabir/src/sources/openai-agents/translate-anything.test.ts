/** Nothing that is pushed makes it throw, and whatever comes out keeps the law. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { call, item, translate } from '../../../test/openai-agents/events.ts';
import type { Chunk } from '../../core/chunks.ts';
import { createDowngrade } from '../../core/downgrade.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import { toAgentInput } from './to-agent-input.ts';
import { createOpenAIAgentsTranslator } from './translate.ts';

/** Mostly one of the values, so that events meet; now and then anything at all. */
const some = (...values: unknown[]) =>
  fc.oneof(
    { weight: 15, arbitrary: fc.constantFrom(...values) },
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
  );

const id = some('a', 'b', 'c');
const text = some('x', 'yz', '');
const rawItem = fc.record(
  {
    type: some(
      ...['function_call', 'function_call_result', 'hosted_tool_call', 'message', 'reasoning'],
      ...['web_search_call', 'mcp_call', 'mcp_approval_request', 'image_generation_call'],
      ...['code_interpreter_call', 'computer_call_result', 'shell_call', 'tool_search_call'],
    ),
    name: some('search', 'mcp_call', 'web_search_call', 'mcp_approval_request'),
    id,
    callId: id,
    call_id: id,
    arguments: some('{}', '{"a":1}', '{'),
    output: some('out', { type: 'text', text: 't' }, [{ type: 'image', image: 'aGk=' }], null),
    status: some('completed', 'failed', 'incomplete', 'in_progress'),
    content: fc.oneof(fc.array(fc.record({ text, refusal: text }, { requiredKeys: [] })), text),
    result: text,
    approval_request_id: id,
    providerData: some({}, { type: 'mcp_approval_request' }, { name: 'look', arguments: '{}' }),
  },
  { requiredKeys: ['type'] },
);
const responsesEvent = fc.record(
  {
    type: some(
      ...['response.output_item.added', 'response.output_item.done', 'response.incomplete'],
      ...['response.reasoning_summary_text.delta', 'response.function_call_arguments.delta'],
      ...['response.refusal.delta', 'response.code_interpreter_call_code.delta'],
      'response.output_text.annotation.added',
      'response.image_generation_call.partial_image',
    ),
    item: rawItem,
    item_id: id,
    delta: text,
    annotation: some({ url: 'https://a.example/' }, { file_id: 'f' }),
    response: some({ usage: { input_tokens: 1 } }, {}),
    partial_image_b64: text,
  },
  { requiredKeys: ['type'] },
);
const otherEvent = fc.record(
  {
    type: some('finish', 'source', 'tool-input-start', 'tool-input-delta', 'reasoning-delta'),
    id,
    delta: text,
    toolName: text,
    finishReason: some('length', 'stop'),
    choices: fc.oneof(
      fc.constant(undefined),
      fc.array(
        fc.record({
          index: some(0),
          delta: some({ reasoning: 'r' }, { tool_calls: [{ id: 'a', function: { name: 'n' } }] }),
        }),
      ),
    ),
  },
  { requiredKeys: [] },
);
const event = fc.oneof(
  fc.record({
    type: fc.constant('raw_model_stream_event'),
    data: fc.record(
      {
        type: some('response_started', 'output_text_delta', 'response_done', 'model', 'model'),
        delta: text,
        itemId: id,
        event: fc.oneof(responsesEvent, otherEvent),
        response: some({ usage: { totalTokens: 1 } }, { usage: null }),
      },
      { requiredKeys: ['type'] },
    ),
  }),
  fc.record({
    type: fc.constant('run_item_stream_event'),
    name: some(
      ...['message_output_created', 'reasoning_item_created', 'tool_called', 'tool_output'],
      ...['handoff_requested', 'handoff_occurred', 'tool_approval_requested'],
    ),
    item: fc.record(
      { rawItem, agent: some({ name: 'A' }), output: some('o', undefined) },
      { requiredKeys: ['rawItem'] },
    ),
  }),
  fc.record({
    type: some('run_interrupted', 'approval_answered', 'approval_expired'),
    interruptions: fc.array(fc.record({ rawItem })),
    approvalId: some('approve-a', 'approve-b'),
    approved: some(true, false),
  }),
  fc.record({ type: fc.constant('agent_updated_stream_event'), agent: some('A', { name: 'B' }) }),
  fc.anything(),
  fc.jsonValue(),
);
const outcome: fc.Arbitrary<TurnOutcome | undefined> = fc.constantFrom(
  ...[{ status: 'finished' } as const, { status: 'stopped' } as const, undefined],
  ...[{ status: 'failed' } as const, { status: 'lost' } as const],
);
const broken: object = new Proxy(
  {},
  {
    get() {
      throw new Error('never');
    },
  },
);

function isJson(chunks: Chunk[]): boolean {
  return JSON.stringify(JSON.parse(JSON.stringify(chunks))) === JSON.stringify(chunks);
}

describe('anything that may be pushed', () => {
  it('never throws, and gives chunks that keep the law', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 25 }),
        fc.boolean(),
        outcome,
        fc.option(fc.anything(), { nil: undefined }),
        (events, approvals, end, error) => {
          const translator = createOpenAIAgentsTranslator({ messageId: 'm', approvals });
          const chunks = events.flatMap((one) => translator.push(one));
          chunks.push(...translator.end(end, error));
          expect(isJson(chunks)).toBe(true);
          for (const aiSdk of [5, 6, 7] as const) {
            const sent = chunks.flatMap(createDowngrade(aiSdk));
            expect(verifyChunks(sent, { aiSdk })).toEqual([]);
          }
          if (!approvals) expect(verifyChunks(chunks)).toEqual([]);
          expect(translator.ended).toBe(true);
          expect(translator.push(events[0])).toEqual([]);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('survives objects that throw when they are looked at', () => {
    const { translator, chunks } = translate([
      ...[broken, { type: 'raw_model_stream_event', data: broken }],
      ...[item('tool_called', broken), item('message_output_created', { content: [broken] })],
      { type: 'raw_model_stream_event', data: { type: 'model', event: broken } },
      item('tool_output', { callId: 'c' }, { output: broken }),
      { type: 'run_interrupted', interruptions: [broken] },
    ]);
    expect(Object.values(translator.stats.malformed).length).toBeGreaterThan(3);
    chunks.push(...translator.end({ status: 'finished' }));
    expect(verifyChunks(chunks)).toEqual([]);
  });

  it('shows what it can of an output that throws', () => {
    const given = {
      get size() {
        throw new Error('never');
      },
    };
    const { chunks } = translate([
      item('tool_called', call('c')),
      item('tool_output', { callId: 'c' }, { output: given }),
    ]);
    expect(chunks.at(-1)).toMatchObject({ type: 'tool-output-available', output: '[unreadable]' });
  });

  it('goes on with any message, and makes an input of it', () => {
    const part = fc.record(
      {
        type: some(
          'text',
          'tool-x',
          'dynamic-tool',
          'data-question',
          'data-agent',
          'source-url',
          'file',
        ),
        toolCallId: id,
        state: some('input-available', 'approval-requested', 'output-available', 'output-error'),
        data: some({ questionId: 'approve-a', toolCallId: 'a', status: 'open' }, {}),
        approval: some({ id: 'approve-a', approved: false }, undefined),
        text,
        url: text,
        input: some({}),
        output: some(1),
      },
      { requiredKeys: ['type'] },
    );
    fc.assert(
      fc.property(fc.array(part), fc.array(event, { maxLength: 8 }), (parts, events) => {
        const message = { id: 'm', role: 'assistant', parts } as unknown as UIMessage;
        expect(JSON.parse(JSON.stringify(toAgentInput([message])))).toBeInstanceOf(Array);
        const translator = createOpenAIAgentsTranslator({ message, approvals: true });
        for (const one of events) translator.push(one);
        expect(translator.end({ status: 'finished' }).at(-1)?.type).toBe('finish');
      }),
      { numRuns: 1_000 },
    );
  });
});
