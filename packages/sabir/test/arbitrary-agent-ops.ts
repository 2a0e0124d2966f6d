import fc from 'fast-check';
import type { TurnEventType } from '../src/sources/agent-ops/events.ts';

export const AGENT_OPS_EVENT_TYPES: TurnEventType[] = [
  'message.create',
  'message.part.text-delta',
  'message.part.tool-update',
  'message.part.reasoning-delta',
  'message.part.tool-input-delta',
  'message.part.step',
  'message.part.source',
  'message.part.file',
  'message.part.data',
  'message.finalize',
  'complete',
  'aborted',
  'usage-report',
  'init',
  'message',
  'message.updated',
  'chunk',
  'agentStatus',
  'status',
  'error',
  'question',
  'interactive_prompt',
  'interactive_prompt_resolved',
  'interactive_prompt_expired',
  'queue.state',
  'queue.withdrawn',
];

/** Mostly sound events of few turns, calls and questions, so that they meet; some are broken. */
export function anyEvents() {
  const some = <T>(...values: T[]) =>
    fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...values) }, fc.anything());
  const id = some('t', 'u', null, undefined);
  const anyCall = {
    callId: some('c', 'd'),
    toolName: some('bash', 'question', undefined),
    status: some('pending', 'running', 'completed', 'error', 'thinking', 'idle'),
    args: some({}, { a: 1 }, undefined),
    result: some('r', undefined),
    error: some('e', undefined),
  };
  const anyPart = {
    name: some('chart', 'question'),
    sourceId: some('s'),
    url: some('https://example.test', undefined),
    mediaType: some('text/plain', undefined),
    title: some('T', undefined),
    data: some<unknown>(1, { a: 1 }),
  };
  const part = fc.oneof(
    fc.record({ type: fc.constant('text'), text: some('a', 'ab', 'abc', '') }),
    fc.record({ type: fc.constant('tool-call'), ...anyCall }),
    fc.record({ type: fc.constant('finish'), reason: some('end_turn', 'error', 'canceled') }),
    fc.record({ type: fc.constant('error'), message: some('broken') }),
    fc.record({ type: fc.constant('reasoning'), text: some('a', 'ab') }),
    fc.record({ type: fc.constant('step') }),
    fc.record({ type: some('source', 'file', 'data'), ...anyPart }),
    fc.record({
      type: fc.constant('question'),
      questionId: some('q', 'r'),
      text: some('Deploy?'),
      status: some('open', 'answered', 'expired'),
      callId: some('c', undefined),
    }),
    fc.record({ type: fc.constant('usage'), usage: some({ inputTokens: 1 }) }),
    fc.anything(),
  );
  const data = fc.oneof(
    fc.record(
      {
        id: some('t', 'u', 'p'),
        role: some('assistant', 'assistant', 'user', undefined),
        content: some('', 'abc'),
        promptId: some('p', undefined),
        parts: fc.oneof({ weight: 9, arbitrary: fc.array(part, { maxLength: 5 }) }, fc.anything()),
      },
      { requiredKeys: ['id'] },
    ),
    fc.record(
      {
        runnerBusy: some(true, false),
        aborted: some(true, false),
        promptQueued: some(true, false),
        queuePosition: some(1, 2),
        promptId: some('p', 'o'),
        promptWithdrawn: some('p', 'o', undefined),
        queue: some([{ promptId: 'p', position: 2 }], []),
        promptDequeued: some(true, false),
        remaining: some(0, 1),
        questionAnswered: some('q', 'r'),
        answer: some('Yes', '__expired__'),
        runnerDisconnected: some(true, false),
      },
      { requiredKeys: [] },
    ),
    fc.anything(),
  );
  const event = fc.record(
    {
      type: fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom(...AGENT_OPS_EVENT_TYPES) },
        fc.string(),
      ),
      turnId: id,
      messageId: id,
      promptId: some('q', 'r', 'p', undefined),
      seq: some(1, 2, 3, 4, undefined),
      refused: some(undefined, undefined, 'answer'),
      id: some('1', undefined),
      questionId: some('q', 'r'),
      text: some('Deploy?'),
      delta: some('a', 'b', ''),
      content: some('a', 'b', ''),
      reason: some('end_turn', 'error', 'canceled'),
      finalText: some('ab', undefined),
      channelType: some('web', undefined),
      prompt: some({ id: 'q', type: 'approval', title: 'x', actions: [{ id: 'y', label: 'Y' }] }),
      resolution: some({ actionId: 'y' }, undefined),
      entries: some([{ inputTokens: 1 }]),
      session: some({
        messages: [{ id: 't', role: 'assistant', parts: [{ type: 'finish', reason: 'end_turn' }] }],
      }),
      ...anyPart,
      data,
      ...anyCall,
    },
    {
      requiredKeys: ['type', 'turnId', 'callId', 'status', 'toolName', 'delta', 'content', 'data'],
    },
  );
  return fc.array(event, { maxLength: 40 });
}

export function anyOptions() {
  return fc.record(
    {
      dialect: fc.constantFrom('auto', 'v2', 'snapshot'),
      turnId: fc.constantFrom('t', 'x'),
      promptId: fc.constantFrom('p', 'q'),
      messageId: fc.constant('m'),
      approvals: fc.boolean(),
      channel: fc.constant({ channelType: 'web', channelId: 'default' }),
    },
    { requiredKeys: [] },
  );
}
