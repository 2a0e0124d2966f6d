/** Nothing that is pushed makes it throw, and whatever comes out keeps the law. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TurnOutcome } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createOpenCodeTranslator } from './translate.ts';

/** Mostly one of the values, so that events meet; now and then anything at all. */
const some = (...values: unknown[]) =>
  fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(...values) },
    fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
  );

const session = some('s', 's', 's', 'child', 'other');
const messageId = some('m1', 'm2', 'm3');
const partId = some('p1', 'p2', 'p3');
const words = some('', 'a', 'ab', 'abc');
const time = some({}, { start: 1 }, { start: 1, end: 2 }, { completed: 3 });
const error = some(
  undefined,
  { name: 'APIError', data: { message: 'No.' } },
  { name: 'MessageAbortedError' },
);
const state = fc.record(
  {
    status: some('pending', 'running', 'completed', 'error'),
    input: some({}, { a: 1 }),
    output: words,
    error: words,
    metadata: some({ sessionId: 'child' }),
    attachments: some([{ mime: 'image/png', url: 'data:,' }]),
  },
  { requiredKeys: ['status'] },
);
const part = fc.record(
  {
    type: some('text', 'reasoning', 'tool', 'file', 'step-start', 'step-finish', 'patch'),
    id: partId,
    messageID: messageId,
    sessionID: session,
    text: words,
    time,
    state,
    tool: some('bash', 'task'),
    callID: some('c1', 'c2'),
    url: words,
    mime: words,
    tokens: some({ input: 1, output: 2, cache: { read: 1 } }),
    cost: some(0.5),
    synthetic: some(false, true),
  },
  { requiredKeys: ['type', 'id', 'messageID', 'sessionID'] },
);
const info = fc.record(
  {
    id: messageId,
    sessionID: session,
    role: some('assistant', 'user'),
    time,
    error,
    finish: some('stop', 'unknown'),
    summary: some(true, {}),
    parentID: some('s'),
  },
  { requiredKeys: ['id', 'sessionID', 'role'] },
);
const questions = some([{ question: 'Q?', options: [{ label: 'Yes' }] }], [{ question: 'Q?' }]);
const event = fc.record({
  type: some(
    ...['message.updated', 'message.part.updated', 'message.part.delta', 'session.created'],
    ...['permission.asked', 'permission.replied', 'question.asked', 'question.replied'],
    ...['question.rejected', 'session.error', 'session.status', 'session.idle', 'session.diff'],
  ),
  properties: fc.record({
    sessionID: session,
    info,
    part,
    messageID: messageId,
    partID: partId,
    delta: words,
    field: some('text'),
    id: some('r1', 'r2'),
    requestID: some('r1', 'r2'),
    questions,
    error,
    permission: some('bash'),
    patterns: some(['ls']),
    answers: some([['Yes']]),
    reply: some('once', 'reject'),
    tool: some(undefined, { callID: 'c1' }),
    status: some({ type: 'busy' }, { type: 'retry', message: 'Again.' }, { type: 'idle' }),
  }),
});
const outcome = fc.constantFrom<TurnOutcome | undefined>(
  undefined,
  { status: 'finished' },
  { status: 'stopped' },
  { status: 'failed', message: 'It broke.' },
  { status: 'lost' },
);

it('keeps the law whatever OpenCode says', () => {
  const events = fc.array(fc.oneof({ weight: 30, arbitrary: event }, fc.anything()), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(events, outcome, (pushed, ending) => {
      const translator = createOpenCodeTranslator({ messageId: 'm', sessionId: 's' });
      const chunks = pushed.flatMap((one) => translator.push(one));
      chunks.push(...translator.end(ending));
      expect(verifyChunks(JSON.parse(JSON.stringify(chunks)))).toEqual([]);
    }),
    { numRuns: 1_000 },
  );
});
