import { describe, expect, it, vi } from 'vitest';
import { openSession, play, tick } from '../../../test/play-agent.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { SabirError } from '../../core/errors.ts';
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
