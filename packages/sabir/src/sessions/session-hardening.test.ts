import { describe, expect, it } from 'vitest';
import {
  ask,
  begin,
  createSessionRig,
  type SessionRig,
  settled,
  textOf,
} from '../../test/session-rig.ts';

const DEEP = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;

/** Of deployed runners. */
const create = (turnId: string) => ({ type: 'message.create', turnId });
const text = (turnId: string | null, delta: string) => ({
  type: 'message.part.text-delta',
  turnId,
  delta,
});

async function questionsOf(rig: SessionRig, messageId: string) {
  return (await rig.log.get(rig.turnIdOf(messageId)))?.questions;
}

describe('a turn', () => {
  it('gets nothing of what a runner still says of the turn before', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    runner.drop();
    ann.say({ type: 'abort', turnId: 't1' });
    rig.client('bob').say(ask(2));
    await settled();
    const turnId = rig.turnIdOf('t1');
    const back = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    expect(back.prompts()).toEqual(['t2']);
    back.text('t1', 'for Ann');
    back.finish('t1');
    await settled();
    expect(rig.session.running).toMatchObject({ messageId: 't2' });
    expect(await rig.chunksOf('t2')).toEqual([]);
    back.text('t2', 'for Bob');
    back.finish('t2');
    await settled();
    const answer = rig.storage.messages().at(-1);
    expect([answer?.id, textOf(answer)]).toEqual(['t2', 'for Bob']);
  });

  it('gets nothing of the turn before, also if a deployed runner names turns itself or not at all', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    await settled();
    runner.say(create('x1'));
    runner.say(text(null, 'one'));
    await settled();
    ann.say({ type: 'abort', turnId: 't1' });
    await settled();
    rig.clock.pass(10_000);
    await settled();
    for (const late of [text(null, 'late'), { type: 'aborted' }, { type: 'complete' }]) {
      runner.say(late);
    }
    runner.say(create('x2'));
    runner.say(text(null, 'two'));
    runner.say(text('x1', 'late'));
    runner.say({ type: 'complete', messageId: 'p1' });
    await settled();
    expect(rig.session.running).toMatchObject({ messageId: 't2' });
    runner.say({ type: 'complete', messageId: 'p2' });
    await settled();
    const answers = rig.storage.messages().filter(({ role }) => role === 'assistant');
    expect(answers.map(textOf)).toEqual(['one', 'two']);
  });

  it.each(['ours', 'deployed'])(
    'of a runner (%s) may ask under a question id that an earlier turn has used',
    async (make) => {
      const rig = createSessionRig();
      const isOurs = make === 'ours';
      const runner = isOurs ? rig.runner() : undefined;
      const deployed = isOurs ? undefined : rig.foreignRunner();
      const ann = rig.client('ann');
      const answers: unknown[] = [];
      for (const [n, words, answer] of [
        [1, 'Deploy?', 'Yes'],
        [2, 'And this?', 'No'],
      ] as const) {
        ann.say(ask(n));
        await settled();
        runner?.ask(`t${n}`, 'q1', { text: words });
        deployed?.say(create(`x${n}`));
        deployed?.say({ type: 'question', questionId: 'q1', text: words });
        await settled();
        expect(ann.last('question')).toMatchObject({
          turnId: `t${n}`,
          questionId: 'q1',
          text: words,
        });
        expect(await questionsOf(rig, `t${n}`)).toMatchObject([
          { questionId: 'q1', status: 'open' },
        ]);
        ann.say({ type: 'answer', questionId: 'q1', answer });
        await settled();
        answers.push((runner ?? deployed)?.last('answer')?.answer);
        runner?.finish(`t${n}`);
        deployed?.say({ type: 'complete', messageId: `p${n}` });
        await settled();
      }
      expect(answers).toEqual(['Yes', 'No']);
      expect(ann.of('question')).toHaveLength(2);
      expect(ann.of('error')).toEqual([]);
    },
  );

  it('takes no answer that was given before it asked, to a question of an ended turn with the same id', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    runner.finish('t1');
    ann.say(ask(2));
    await settled();
    // The turn that runs has not asked: the id still means the question that was answered.
    ann.say({ type: 'answer', questionId: 'q1', answer: 'No' });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'question-answered', questionId: 'q1' });
    runner.ask('t2', 'q1');
    await settled();
    expect(await questionsOf(rig, 't2')).toMatchObject([{ questionId: 'q1', status: 'open' }]);
    expect((await questionsOf(rig, 't2'))?.[0]).not.toHaveProperty('isAnswered');
    expect(await questionsOf(rig, 't1')).toMatchObject([{ questionId: 'q1', isAnswered: true }]);
  });
});

describe('messages', () => {
  it('have an id each, whatever ids people give', async () => {
    const rig = createSessionRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    for (const n of [1, 2]) {
      ann.say(ask(n, { turnId: 'p1' }));
      await settled();
      const messageId = runner.prompts().at(-1) as string;
      runner.text(messageId, 'Answer.');
      runner.finish(messageId);
      await settled();
    }
    const ids = rig.storage.messages().map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
    expect(rig.storage.messages().map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'user', 'assistant'],
    ]);
    ann.say({ type: 'prompt', content: 'Forged', promptId: ids[1] });
    await settled();
    expect(ann.last('error')).toMatchObject({ refused: 'prompt', code: 'prompt-taken' });
  });
});

describe('a session', () => {
  it.each([
    ['that only an expired question has', '__expired__'],
    ['that is too long', 'x'.repeat(64_001)],
  ])('refuses an answer %s', async (_, answer) => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer });
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'bad-request', questionId: 'q1' });
    expect(runner.of('answer')).toEqual([]);
    ann.say({ type: 'answer', questionId: 'q1', answer: 'x'.repeat(64_000) });
    await settled();
    expect(runner.of('answer')).toHaveLength(1);
  });

  it('skips JSON of a runner that nests too deep to be written again', async () => {
    const rig = createSessionRig();
    const { runner, ann, turnId } = await begin(rig);
    const seen = ann.events.length;
    const call = `{"type":"tool-input-available","toolCallId":"c","toolName":"x","input":${DEEP}}`;
    runner.say(`{"type":"chunks","turnId":"${turnId}","seq":2,"chunks":[${call}]}`);
    runner.say(`{"type":"event","event":{"type":"git-state","branch":${DEEP}}}`);
    await settled();
    expect(ann.events).toHaveLength(seen);
    runner.finish('t1');
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'end_turn' });
    expect(rig.storage.messages()[1]).toMatchObject({ id: 't1', parts: [] });
  });

  it('skips JSON of a deployed runner that nests too deep to be written again', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    runner.say(create('x1'));
    await settled();
    const seen = ann.events.length;
    const call = '"turnId":"x1","callId":"c","toolName":"x","status":"running"';
    runner.say(`{"type":"message.part.tool-update",${call},"args":${DEEP}}`);
    runner.say(`{"type":"git-state","branch":${DEEP}}`);
    await settled();
    expect(ann.events).toHaveLength(seen);
    runner.say({ type: 'message.finalize', turnId: 'x1', reason: 'end_turn' });
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ reason: 'end_turn' });
    expect(rig.storage.messages()[1]).toMatchObject({ id: 't1', parts: [{ type: 'step-start' }] });
  });

  it('refuses files that nest too deep to be written', async () => {
    const rig = createSessionRig();
    const ann = rig.client('ann');
    const files = `[{"mime":"a/b","url":"data:,","more":${DEEP}}]`;
    ann.say(`{"type":"prompt","content":"Hi","promptId":"p1","attachments":${files}}`);
    await settled();
    expect(ann.last('error')).toMatchObject({ code: 'bad-request' });
    expect(rig.session.isIdle).toBe(true);
  });

  it('counts questions towards the size of a turn as it counts text', async () => {
    const rig = createSessionRig({ limits: { turnBytes: 1_000 } });
    const { runner, ann, turnId } = await begin(rig);
    for (let n = 1; n <= 200; n++) {
      runner.ask('t1', `q${n}`, { text: 'x'.repeat(100) });
      if (n < 5) await settled();
    }
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ reason: 'error', code: 'turn-too-large' }]);
    expect(ann.of('question').length).toBeGreaterThan(0);
    expect(ann.of('question').length).toBeLessThan(10);
    expect(await rig.session.openQuestions()).toEqual([]);
    expect(runner.of('stop')).toEqual([{ type: 'stop', turnId }]);
  });

  it('fails the turn of an event that is too large, and goes on with the next', async () => {
    const rig = createSessionRig({ limits: { eventBytes: 500 } });
    const { runner, ann, turnId } = await begin(rig);
    ann.say(ask(2));
    await settled();
    runner.text('t1', 'x'.repeat(600));
    await settled();
    expect(ann.last('message.finalize')).toMatchObject({ turnId: 't1', code: 'turn-too-large' });
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(runner.last('stop')).toMatchObject({ turnId });
    // Sent again, it still fails no other turn.
    runner.text('t1', 'x'.repeat(600));
    runner.finish('t2');
    await settled();
    expect(rig.storage.promptInfo('messageId', 't2')).toMatchObject({ outcome: 'finished' });
    // It belongs to no turn, so there is none to fail: no client gets it.
    runner.say({ type: 'event', event: { type: 'git-state', branch: 'x'.repeat(600) } });
    runner.say({ type: 'event', event: { type: 'git-state', branch: 'main' } });
    await settled();
    expect(ann.of('git-state')).toEqual([{ type: 'git-state', branch: 'main' }]);
  });

  it('gives clients and runners the latest of a long history that fits', async () => {
    const rig = createSessionRig({ limits: { initBytes: 700, historyBytes: 700 } });
    const runner = rig.runner('r1', { needsHistory: true });
    const ann = rig.client('ann');
    for (const n of [1, 2, 3]) {
      ann.say(ask(n, { content: 'x'.repeat(200) }));
      await settled();
      runner.text(`t${n}`, 'Short.');
      runner.finish(`t${n}`);
      await settled();
    }
    const bob = rig.client('bob');
    await settled();
    const { session } = bob.events[0] as unknown as { session: { messages: { id: string }[] } };
    expect(session.messages.map(({ id }) => id)).toEqual(['p3', 't3']);
    ann.say(ask(4));
    await settled();
    expect(runner.last('prompt')).toMatchObject({
      prompt: { messages: [{ id: 'p3' }, { id: 't3' }, { id: 'p4' }] },
    });
  });

  it('shows old clients each change as it was then, also when several come at once', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    const call = { toolCallId: 'c', toolName: 'x', input: {} };
    runner.chunks('t1', { type: 'tool-input-available', ...call });
    runner.text('t1', 'Later.');
    runner.chunks('t1', { type: 'tool-output-available', toolCallId: 'c', output: 1 });
    await settled();
    const statuses = ann.of('message.updated').map(({ data }) => {
      const { content, parts } = data as { content: string; parts: { status?: string }[] };
      return [content, parts[0]?.status];
    });
    expect(statuses).toEqual([
      ['', 'running'],
      ['Later.', 'completed'],
    ]);
  });

  it('takes nothing more from a client whose socket it has closed', async () => {
    const rig = createSessionRig({ limits: { clientBufferBytes: 1_000 } });
    const { runner, ann } = await begin(rig);
    // So far behind that the session does not wait for it.
    ann.buffered = 8_001;
    runner.text('t1', 'A');
    await settled();
    expect(ann.closed).toMatchObject({ code: 4008 });
    ann.say(ask(2));
    ann.say({ type: 'abort' });
    await settled();
    expect(rig.storage.promptInfo('promptId', 'p2')).toBeUndefined();
    expect(runner.of('stop')).toEqual([]);
  });

  it('waits no longer for a lost runner because another runner speaks of something else', async () => {
    const rig = createSessionRig();
    const runner = rig.foreignRunner();
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    runner.say(create('x1'));
    await settled();
    runner.drop();
    const another = rig.foreignRunner();
    another.say({ type: 'complete', messageId: 'another' });
    another.say({ type: 'agentStatus', status: 'idle' });
    await settled();
    rig.clock.pass(30_000);
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', code: 'runner-lost' }]);
  });

  it('shows a newcomer the open questions of the turn, with their place in it', async () => {
    const rig = createSessionRig();
    const { runner, ann } = await begin(rig);
    runner.ask('t1', 'q1');
    await settled();
    const { seq } = ann.last('question') as { seq?: unknown };
    expect(seq).toBe((await rig.chunksOf('t1')).length);
    const bob = rig.client('bob');
    await settled();
    const place = { turnId: 't1', promptId: 'p1', seq, channelType: 'web' };
    expect(bob.events[0]).toMatchObject({ data: { questions: [{ questionId: 'q1', ...place }] } });
  });
});
