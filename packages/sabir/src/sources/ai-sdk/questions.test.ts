import { describe, expect, it, vi } from 'vitest';
import { openSession, play, tick } from '../../../test/play-agent.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { SabirError } from '../../core/errors.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { AgentFunction } from '../../turns/agent.ts';

const QUESTION: Chunk = {
  type: 'data-question',
  id: 'q',
  data: { questionId: 'q', text: 'Sure?', status: 'open' },
};

describe('questions', () => {
  const asking: AgentFunction = async function* ({ answer }) {
    yield QUESTION;
    const answered = await answer('q');
    yield { type: 'data-heard', data: answered };
  };
  const questionWith = (more: object) => ({
    ...QUESTION,
    data: { questionId: 'q', text: 'Sure?', ...more },
  });

  it('are answered by the first answer, and shown as answered', async () => {
    const { turn, chunks, over } = play(await openSession(asking));
    await tick();
    turn.answer({ type: 'answer', questionId: 'other', answer: 'no' });
    turn.answer({ type: 'answer', questionId: 'q', answer: { yes: 1 } });
    turn.answer({ type: 'answer', questionId: 'q', answer: 'late' });
    turn.expire?.('q');
    await over;
    expect(chunks.slice(1, -1)).toEqual([
      QUESTION,
      questionWith({ status: 'answered', answer: { yes: 1 } }),
      { type: 'data-heard', data: { yes: 1 } },
    ]);
  });

  it('may be answered before anybody waits, or asks', async () => {
    const gate = Promise.withResolvers<void>();
    const session = await openSession(async function* (turn) {
      await gate.promise;
      yield* asking(turn) as AsyncIterable<Chunk>;
      yield { type: 'data-heard', data: await turn.answer('q') };
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: 1 });
    gate.resolve();
    await over;
    const heard = { type: 'data-heard', data: 1 };
    const shown = questionWith({ status: 'answered', answer: 1 });
    expect(chunks.slice(1, -1)).toEqual([QUESTION, shown, heard, heard]);
  });

  it('that expire are shown as expired, and whoever waits is told', async () => {
    const session = await openSession(async function* (turn) {
      yield QUESTION;
      for (let round = 0; round < 2; round++) {
        const code = await turn.answer('q').catch((error: SabirError) => error.code);
        yield { type: 'data-heard', data: code };
      }
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.expire?.('q');
    turn.answer({ type: 'answer', questionId: 'q', answer: 'late' });
    await over;
    const heard = { type: 'data-heard', data: 'question-expired' };
    const shown = questionWith({ status: 'expired' });
    expect(chunks.slice(1, -1)).toEqual([QUESTION, shown, heard, heard]);
  });

  it('that the source has closed itself are not closed again', async () => {
    const session = await openSession(async function* (turn) {
      yield QUESTION;
      yield questionWith({ status: 'withdrawn' }) as Chunk;
      await turn.answer('q');
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: 1 });
    await over;
    expect(chunks.slice(1, -1)).toEqual([QUESTION, questionWith({ status: 'withdrawn' })]);
  });

  it('end with the turn, and a wait that nobody looks at ends nothing else', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    let waiting: Promise<unknown> | undefined;
    let late: Promise<unknown> | undefined;
    const session = await openSession(async function* (turn) {
      yield QUESTION;
      waiting = turn.answer('q');
      turn.signal.addEventListener('abort', () => {
        late = turn.answer('another');
      });
      await new Promise(() => undefined);
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.stop();
    await over;
    await tick();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await expect(late).rejects.toMatchObject({ name: 'AbortError' });
    const shown = chunks.filter(({ type }) => type === 'data-question');
    expect(shown).toEqual([
      QUESTION,
      { ...QUESTION, data: expect.objectContaining({ status: 'withdrawn' }) },
    ]);
    expect(unhandled).not.toHaveBeenCalled();
    process.off('unhandledRejection', unhandled);
  });
});

describe('a question about a tool call', () => {
  const call = (toolCallId: string): Chunk => ({
    ...{ type: 'tool-input-available', toolCallId, toolName: 'pay', input: {} },
    providerExecuted: true,
  });
  const output = (toolCallId: string): Chunk => ({
    ...{ type: 'tool-output-available', toolCallId, output: 'paid', providerExecuted: true },
  });
  const typesOf = (chunks: Chunk[]) => chunks.slice(1, -1).map(({ type }) => type);
  const REQUESTED = ['data-question', 'tool-approval-request', 'finish-step'];

  it.each([
    [{ approved: false, reason: 'No.' }, [{ approvalId: 'q', approved: false, reason: 'No.' }]],
    [true, [{ approvalId: 'q', approved: true }]],
    // What a label means is the agent's to say.
    ['Cast off', []],
  ])('is an approval request, and shows what was decided: %j', async (answer, responses) => {
    const session = await openSession(async function* ({ ask }) {
      yield { type: 'text-delta', delta: 'First.' };
      yield call('c');
      await ask({ questionId: 'q', text: 'Sure?', callId: 'c' });
      yield output('c');
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer });
    await over;
    expect(chunks).toContainEqual({
      type: 'tool-approval-request',
      approvalId: 'q',
      toolCallId: 'c',
    });
    const shown = chunks.filter(({ type }) => type === 'tool-approval-response');
    expect(shown).toEqual(responses.map((it) => ({ type: 'tool-approval-response', ...it })));
    expect(verifyChunks(chunks, { aiSdk: 7 })).toEqual([]);
  });

  it('is one step with the questions that are asked beside it', async () => {
    const session = await openSession(async function* ({ ask }) {
      yield call('c');
      yield call('d');
      const asked = ['c', 'd'].map((callId) => ask({ questionId: callId, text: '?', callId }));
      await Promise.all(asked);
      yield output('c');
      yield output('d');
    });
    const { turn, chunks, over } = play(session);
    await tick();
    for (const questionId of ['c', 'd']) turn.answer({ type: 'answer', questionId, answer: 'x' });
    await over;
    const [question, request, finish] = REQUESTED;
    expect(typesOf(chunks)).toEqual([
      ...['tool-input-available', 'tool-input-available', question, request, question, request],
      ...[finish, question, question, 'tool-output-available', 'tool-output-available'],
    ]);
  });

  it('that a tool asks before its call is shown is an approval request with the call', async () => {
    const session = await openSession(async function* ({ ask }) {
      const answer = ask({ questionId: 'q', text: 'Sure?', callId: 'c' });
      await tick();
      yield call('c');
      await answer;
      yield output('c');
    });
    const { turn, chunks, over } = play(session);
    await tick();
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: 'Yes' });
    await over;
    const [question, ...request] = REQUESTED;
    expect(typesOf(chunks)).toEqual([
      ...[question, 'tool-input-available', ...request, question, 'tool-output-available'],
    ]);
  });

  it.each([
    ['is unknown', []],
    ['has its output', [call('c'), output('c')]],
  ])('is no approval request where the call %s', async (_, before) => {
    const session = await openSession(async function* ({ ask }) {
      yield* before;
      await ask({ questionId: 'q', text: 'Sure?', callId: 'c' });
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: true });
    await over;
    expect(typesOf(chunks).slice(before.length)).toEqual(['data-question', 'data-question']);
  });

  it('that the agent requests itself is requested once, and its step ends', async () => {
    const session = await openSession(async function* ({ answer }) {
      yield call('c');
      yield { ...QUESTION, data: { questionId: 'q', toolCallId: 'c' } } as Chunk;
      yield { type: 'tool-approval-request', approvalId: 'q', toolCallId: 'c' };
      await answer('q');
      yield { type: 'tool-output-denied', toolCallId: 'c' };
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: false });
    await over;
    expect(typesOf(chunks)).toEqual([
      ...['tool-input-available', ...REQUESTED, 'data-question', 'tool-output-denied'],
    ]);
  });
});
