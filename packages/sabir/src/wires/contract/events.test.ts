import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { CHUNK_FIXTURES, encodeAll } from '../../../test/contract-fixtures.ts';
import { encodeContract } from './encode.ts';
import { isContractEvent } from './events.ts';

/** The examples of the contract's first version, word for word. */
const FIRST_EXAMPLES: [type: string, json: string][] = [
  [
    'meta',
    `{
  "requestId": "req_...",
  "runId": "run_...",
  "sessionId": "session_...",
  "conversationId": "conv_...",
  "model": "gpt-5.1",
  "endpoint": "/api/chat",
  "createdAt": "2026-01-11T18:22:00.000Z"
}`,
  ],
  [
    'message.start',
    `{
  "messageId": "msg_...",
  "role": "assistant",
  "createdAt": "2026-01-11T18:22:01.000Z"
}`,
  ],
  [
    'message.delta',
    `{
  "messageId": "msg_...",
  "delta": "Here is what I found..."
}`,
  ],
  [
    'message.end',
    `{
  "messageId": "msg_..."
}`,
  ],
  [
    'tool.call',
    `{
  "toolCallId": "tool_...",
  "toolName": "extractProjectData",
  "input": { "project_type": "chimney-repair" },
  "state": "input-available",
  "messageId": "msg_..."
}`,
  ],
  [
    'tool.delta',
    `{
  "toolCallId": "tool_...",
  "delta": "{ \\"project_type\\": \\"chimney-",
  "state": "input-streaming",
  "messageId": "msg_..."
}`,
  ],
  [
    'tool.result',
    `{
  "toolCallId": "tool_...",
  "toolName": "extractProjectData",
  "output": { "project_type": "chimney-repair", "city": "Denver" },
  "state": "output-available",
  "messageId": "msg_..."
}`,
  ],
  [
    'tool.result',
    `{
  "toolCallId": "tool_...",
  "toolName": "extractProjectData",
  "errorText": "Tool failed to execute.",
  "state": "output-error",
  "messageId": "msg_..."
}`,
  ],
  [
    'source',
    `{
  "sourceId": "src_1",
  "url": "https://example.com",
  "title": "Example result",
  "toolCallId": "tool_...",
  "messageId": "msg_..."
}`,
  ],
  [
    'status',
    `{
  "state": "streaming",
  "message": "Model is responding"
}`,
  ],
  [
    'error',
    `{
  "message": "Failed to process request",
  "code": "server_error",
  "retryable": true
}`,
  ],
  [
    'done',
    `{
  "runId": "run_...",
  "finishReason": "stop",
  "usage": { "inputTokens": 1234, "outputTokens": 456 }
}`,
  ],
];

/** Its example stream; the three dots in the output, which are no JSON, are read as nothing. */
const FIRST_STREAM = `event: meta
data: {"runId":"run_1","model":"gpt-5.1"}

event: message.start
data: {"messageId":"msg_1","role":"assistant"}

event: message.delta
data: {"messageId":"msg_1","delta":"Got it. Let me check that."}

event: tool.call
data: {"toolCallId":"tool_1","toolName":"webSearchBusiness","input":{"query":"Smith Masonry Denver"},"state":"input-available","messageId":"msg_1"}

event: tool.result
data: {"toolCallId":"tool_1","toolName":"webSearchBusiness","output":{"results":[...]},"state":"output-available","messageId":"msg_1"}

event: source
data: {"sourceId":"src_1","url":"https://example.com","title":"Example","toolCallId":"tool_1","messageId":"msg_1"}

event: message.end
data: {"messageId":"msg_1"}

event: done
data: {"runId":"run_1","finishReason":"stop"}
`;
const streamed = FIRST_STREAM.trim()
  .split('\n\n')
  .map((frame) => {
    const [, type, json] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? [];
    return { type, data: JSON.parse(json?.replace('[...]', '[]') ?? '') };
  });

const messageId = 'm';
const call = { messageId, toolCallId: 'c' };

describe('isContractEvent', () => {
  it.each(FIRST_EXAMPLES)('[CT-EVENTS] accepts %s as the first version shows it', (type, json) => {
    expect(isContractEvent({ type, data: JSON.parse(json) })).toBe(true);
  });

  it('[CT-EXAMPLE] accepts the stream that the first version shows', () => {
    expect(streamed).toHaveLength(8);
    for (const event of streamed) expect(isContractEvent(event)).toBe(true);
  });

  it('accepts fields that it does not know', () => {
    const data = { messageId, delta: 'a', somethingNew: [1] };
    expect(isContractEvent({ type: 'message.delta', data, id: 1 })).toBe(true);
  });

  it.each(CHUNK_FIXTURES)('accepts what we say of fixture $name', ({ chunks }) => {
    const events = encodeAll(chunks);
    expect(events.filter((event) => !isContractEvent(event))).toEqual([]);
  });

  it('accepts whatever we say', () => {
    fc.assert(
      fc.property(chunkSequences(7), (chunks) => {
        const encode = encodeContract({ meta: { runId: 'r' }, createdAt: 'now' });
        const events = [...encodeAll(chunks, encode), ...encode.end()];
        const read: unknown[] = JSON.parse(JSON.stringify(events));
        expect(read.filter((event) => !isContractEvent(event))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it.each<[string, unknown]>([
    ['meta', { runId: 1 }],
    ['message.start', { role: 'assistant' }],
    ['message.start', { messageId, role: 'user' }],
    ['message.delta', { messageId }],
    ['message.delta', { delta: 'a' }],
    ['message.delta', { messageId, delta: 1 }],
    ['message.delta', { messageId, delta: 'a', partId: null }],
    ['message.delta', { messageId, delta: 'a', providerMetadata: { a: 1 } }],
    ['message.end', {}],
    ['text.start', { messageId }],
    ['text.end', { messageId, citations: {} }],
    ['reasoning.delta', { messageId, partId: 'p' }],
    ['tool.call', { ...call, state: 'input-available' }],
    ['tool.call', { ...call, toolName: 'a', state: 'called' }],
    ['tool.call', { messageId, toolName: 'a', state: 'input-available' }],
    ['tool.call', { ...call, toolName: 'a', state: 'input-available', dynamic: 1 }],
    ['tool.delta', { ...call, state: 'input-streaming' }],
    ['tool.delta', { ...call, delta: 'a', state: 'input-streaming', inputEncoding: 'xml' }],
    ['tool.result', { ...call, state: 'output-error' }],
    ['tool.result', { ...call, output: 1 }],
    ['tool.result', { ...call, output: 1, state: 'output-available', preliminary: 'yes' }],
    ['tool.approval', { messageId, approvalId: 'a', state: 'approval-requested' }],
    ['tool.approval', { messageId, approvalId: 'a', state: 'approval-responded' }],
    ['tool.approval', { ...call, state: 'approval-requested' }],
    ['source', { messageId, url: 'u' }],
    ['source', { messageId, sourceId: 's', url: 'u', title: 1 }],
    ['step', { messageId, state: 'begin' }],
    ['question', { messageId }],
    ['data', { messageId, name: 'a' }],
    ['data', { messageId, data: 1 }],
    ['metadata', { messageId }],
    ['part', { messageId, part: { url: 'u' } }],
    ['part', { messageId, part: 'file' }],
    ['status', { message: 'a' }],
    ['error', { code: 'a' }],
    ['error', { message: 'a', terminal: 'yes' }],
    ['done', { usage: 1 }],
    ['unknown', {}],
    ['constructor', {}],
    ['done', null],
    ['done', []],
    ['done', undefined],
  ])('refuses %s with %j', (type, data) => {
    expect(isContractEvent({ type, data })).toBe(false);
  });

  it.each([null, undefined, 1, 'done', [], { data: {} }, { type: 1, data: {} }])(
    'refuses what is no event: %j',
    (value) => {
      expect(isContractEvent(value)).toBe(false);
    },
  );
});
