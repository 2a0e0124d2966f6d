/** An `Agent` behind `asUpstream`: what it is asked when, and what `ask` and `emit` do there. */
import { describe, expect, it, vi } from 'vitest';
import { openSession, play, tick } from '../../../test/play-agent.ts';
import type { Agent, AgentAnswer, AgentPrompt, AgentQuestion } from '../../turns/agent.ts';
import { asUpstream } from './upstream.ts';

const { signal } = new AbortController();
const ann = { sessionId: 's', user: { id: 'ann' }, role: 'owner', signal } as const;

function held(more: Partial<Agent> = {}) {
  const prompts: AgentPrompt[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const agent: Agent = {
    name: 'held',
    async *prompt(prompt) {
      prompts.push(prompt);
      const gate = Promise.withResolvers<void>();
      gates.set(prompt.text, gate);
      yield { type: 'text-delta', delta: prompt.text };
      await gate.promise;
    },
    ...more,
  };
  const texts = () => prompts.map(({ text }) => text);
  return { agent, prompts, texts, end: (text: string) => gates.get(text)?.resolve() };
}

describe('an agent that is not concurrent', () => {
  it('gets one prompt of a session at a time, also where two people ask', async () => {
    const { agent, texts, end } = held();
    const upstream = asUpstream(agent);
    const hers = await upstream.open(ann);
    const his = await upstream.open({ ...ann, user: { id: 'bob' } });
    const first = play(hers, { text: 'first' });
    const second = play(his, { text: 'second' });
    const third = play(hers, { text: 'third' });
    await tick();
    expect(texts()).toEqual(['first']);
    const queued = () => [first, second, third].map(({ turn }) => turn.isQueued);
    expect(queued()).toEqual([false, true, true]);
    end('first');
    await first.over;
    await tick();
    expect(texts()).toEqual(['first', 'second']);
    expect(queued()).toEqual([false, false, true]);
    end('second');
    await second.over;
    await tick();
    end('third');
    await third.over;
    expect(texts()).toEqual(['first', 'second', 'third']);
  });

  it('gets prompts of different sessions side by side', async () => {
    const { agent, texts } = held();
    const upstream = asUpstream(agent);
    for (const sessionId of ['a', 'b']) {
      play(await upstream.open({ ...ann, sessionId }), { text: sessionId });
    }
    await tick();
    expect(texts()).toEqual(['a', 'b']);
  });

  it('never gets a prompt that was stopped while it waited, and the next one waits on', async () => {
    const { agent, texts, end } = held();
    const session = await openSession(agent);
    const first = play(session, { text: 'first' });
    const second = play(session, { text: 'second' });
    const third = play(session, { text: 'third' });
    await tick();
    second.turn.stop();
    await second.over;
    await tick();
    expect(second.outcomes).toEqual([{ status: 'stopped' }]);
    expect(third.turn.isQueued).toBe(true);
    end('first');
    await first.over;
    await tick();
    expect(texts()).toEqual(['first', 'third']);
  });

  it('gets the next prompt when it has stopped, not when its turn has', async () => {
    const { agent, texts, end } = held();
    const session = await openSession(agent);
    const first = play(session, { text: 'first' });
    await tick();
    first.turn.stop();
    await first.over;
    const second = play(session, { text: 'second' });
    await tick();
    expect(texts()).toEqual(['first']);
    // Its silence counts: the agent, not another turn, keeps it waiting.
    expect(second.turn.isQueued).toBe(false);
    end('first');
    await tick();
    expect(texts()).toEqual(['first', 'second']);
  });

  it('gets prompts at once if it says that it is concurrent', async () => {
    const { agent, texts } = held({ concurrent: true });
    const session = await openSession(agent);
    for (const text of ['first', 'second']) play(session, { text });
    await tick();
    expect(texts()).toEqual(['first', 'second']);
  });
});

describe('the start of an agent', () => {
  it('comes before its first prompt, once', async () => {
    const order: string[] = [];
    const ready = Promise.withResolvers<void>();
    const agent: Agent = {
      name: 'slow to start',
      concurrent: true,
      async start({ sessionId }) {
        order.push(`start for ${sessionId}`);
        await ready.promise;
      },
      async *prompt({ text }) {
        order.push(text);
        yield { type: 'text-delta', delta: text };
      },
    };
    const session = await openSession(agent);
    const turns = ['first', 'second'].map((text) => play(session, { text }));
    await tick();
    expect(order).toEqual(['start for s']);
    ready.resolve();
    await Promise.all(turns.map(({ over }) => over));
    expect(order).toEqual(['start for s', 'first', 'second']);
  });

  it('that fails fails the turn with its error, and is tried again for the next prompt', async () => {
    const start = vi.fn().mockRejectedValueOnce(new Error('There is no model key.'));
    const session = await openSession({ ...held().agent, concurrent: true, start });
    const first = play(session);
    await first.over;
    expect(first.outcomes).toEqual([{ status: 'failed', message: 'There is no model key.' }]);
    const second = play(session);
    await vi.waitFor(() => expect(second.chunks.length).toBeGreaterThan(1));
    expect(start).toHaveBeenCalledTimes(2);
  });
});

describe('ask', () => {
  async function asking(question: AgentQuestion | AgentQuestion[]) {
    const answers: (AgentAnswer | string)[] = [];
    const session = await openSession(async function* ({ ask }) {
      for (const one of [question].flat()) {
        answers.push(await ask(one).catch((error: Error) => error.name));
      }
      yield { type: 'data-done', data: null };
    });
    const played = play(session);
    await tick();
    const questions = () => played.chunks.filter(({ type }) => type === 'data-question');
    const answer = (given: unknown, questionId = 'q') =>
      played.turn.answer({ type: 'answer', questionId, answer: given });
    return { ...played, answers, questions, answer };
  }

  it('shows the question with all that pages know of it, then its answer in the same part', async () => {
    const { over, questions, answer, answers } = await asking({
      questionId: 'q',
      text: 'Sail?',
      options: ['Yes', 'No'],
      callId: 'c',
      answerBy: { role: 'owner' },
      expiresInMs: 60_000,
    });
    const data = {
      questionId: 'q',
      text: 'Sail?',
      options: ['Yes', 'No'],
      toolCallId: 'c',
      answerBy: { role: 'owner' },
      expiresAt: expect.any(Number),
    };
    expect(questions()).toEqual([
      { type: 'data-question', id: 'q', data: { ...data, status: 'open' } },
    ]);
    const { expiresAt } = (questions()[0] as { data: { expiresAt: number } }).data;
    expect(Math.abs(expiresAt - Date.now() - 60_000)).toBeLessThan(5_000);
    answer('Yes');
    await over;
    expect(answers).toEqual([{ status: 'answered', answer: 'Yes', optionId: 'Yes' }]);
    expect(questions().at(-1)).toEqual({
      type: 'data-question',
      id: 'q',
      data: { ...data, status: 'answered', answer: 'Yes' },
    });
  });

  it('makes an id for a question without one, and needs no options', async () => {
    const { questions } = await asking({ text: 'Where to?' });
    const [question] = questions() as { id: string; data: object }[];
    expect(question?.id).toMatch(/./);
    expect(question?.data).toEqual({ questionId: question?.id, text: 'Where to?', status: 'open' });
  });

  it.each([
    ['2', '2'],
    ['Berth', '1'],
    ['elsewhere', undefined],
    [true, undefined],
  ])('tells which option was chosen with %j: by its id, else by its label', async (given, id) => {
    const options = [
      { id: '1', label: 'Berth' },
      { id: '2', label: 'Berth' },
    ];
    const { over, questions, answer, answers } = await asking({
      questionId: 'q',
      text: '',
      options,
    });
    expect(questions()).toMatchObject([
      { data: { options: ['Berth', 'Berth'], optionIds: ['1', '2'] } },
    ]);
    answer(given);
    await over;
    const chosen = id === undefined ? {} : { optionId: id };
    expect(answers).toEqual([{ status: 'answered', answer: given, ...chosen }]);
  });

  it('resolves as expired when no answer comes in time', async () => {
    const { over, questions, turn, answers } = await asking({ questionId: 'q', text: '' });
    turn.expire?.('q');
    await over;
    expect(answers).toEqual([{ status: 'expired' }]);
    expect(questions().at(-1)).toMatchObject({ data: { status: 'expired' } });
  });

  it('shows a question once, also where it is asked again after its answer', async () => {
    const question = { questionId: 'q', text: '' };
    const { over, questions, answer, answers } = await asking([question, question]);
    answer('Yes');
    await over;
    expect(answers).toEqual([
      { status: 'answered', answer: 'Yes' },
      { status: 'answered', answer: 'Yes' },
    ]);
    expect(questions()).toHaveLength(2);
  });

  it('does not show a question that the agent has shown itself', async () => {
    const session = await openSession(async function* ({ ask }) {
      yield { type: 'data-question', id: 'q', data: { questionId: 'q', text: 'Own words?' } };
      const answer = await ask({ questionId: 'q', text: 'Other words?' });
      yield { type: 'data-heard', data: answer };
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: 1 });
    await over;
    const shown = chunks.filter(({ type }) => type === 'data-question');
    expect(shown).toMatchObject([
      { data: { text: 'Own words?' } },
      { data: { status: 'answered' } },
    ]);
    expect(chunks).toContainEqual({ type: 'data-heard', data: { status: 'answered', answer: 1 } });
  });

  it('rejects with the reason of the signal when the turn ends', async () => {
    const { over, turn, answers } = await asking({ questionId: 'q', text: '' });
    turn.stop();
    await over;
    await tick();
    expect(answers).toEqual(['AbortError']);
  });

  it('begins a new text for the words behind a question', async () => {
    const session = await openSession(async function* ({ ask }) {
      yield { type: 'text-delta', delta: 'Before.' };
      await ask({ questionId: 'q', text: '' });
      yield { type: 'text-delta', delta: 'Behind.' };
    });
    const { turn, chunks, over } = play(session);
    await tick();
    turn.answer({ type: 'answer', questionId: 'q', answer: 1 });
    await over;
    expect(chunks.filter(({ type }) => type === 'text-start')).toHaveLength(2);
  });
});

it('emit has no receiver behind a gateway, and fails nothing', async () => {
  const session = await openSession(async function* ({ emit }) {
    emit({ type: 'title', title: 'Hello' });
    yield { type: 'data-done', data: null };
  });
  const { over, outcomes } = play(session);
  await over;
  expect(outcomes).toEqual([{ status: 'finished' }]);
});
