import { afterAll, describe, expect, it, vi } from 'vitest';
import {
  ask,
  createWorld,
  FAILING,
  type Failing,
  pass,
  STEP_MS,
  type World,
} from '../../test/session-faults.ts';
import { createModelRunner } from '../../test/session-model-runner.ts';
import { type SessionRig, settled, textOf } from '../../test/session-rig.ts';
import { foldChunks } from '../core/fold.ts';
import type { Loose } from '../core/loose.ts';
import { readWritten } from '../turns/read-written.ts';
import { toUIMessage } from './index.ts';

const TIMERS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;
vi.useFakeTimers({ toFake: [...TIMERS, 'Date', 'performance'] });
afterAll(() => void vi.useRealTimers());

const NUMBERS = [1, 2, 3, 4, 9];

/** Something of everything: answers, a question that is answered, one that expires, a drop, a stop. */
async function playAll({ rig, state }: World, failAt: number) {
  await settled();
  Object.assign(state, { calls: 0, failAt });
  const runner = createModelRunner(rig, 'r1');
  const ann = rig.client('ann');
  const bob = rig.client('bob');
  const work = async (...doing: Parameters<typeof runner.work>[0][]) => {
    for (const one of doing) {
      runner.connect();
      await settled();
      runner.receive();
      runner.work(one);
      await settled();
    }
  };
  ann.say(ask(1));
  ann.say(ask(2));
  bob.say(ask(3));
  await work('text', 'question');
  bob.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
  await work('text', 'text', 'question');
  await pass(5 * 60_000 + STEP_MS);
  bob.say({ type: 'withdraw', promptId: 'p3' });
  await work('text', 'text', 'end');
  await work('text');
  runner.cut();
  await pass(30_000);
  ann.say(ask(4));
  await work('text', 'text');
  ann.say({ type: 'abort', turnId: 't4' });
  await work('text', 'text');
  bob.drop();
  await settled();
  const { calls } = state;
  Object.assign(state, { failAt: 0 });
  return { ann, bob, runner, calls };
}

/** From here on the disk works: another person asks, and the agent answers all that it is asked. */
async function goOn({ rig }: World, runner: ReturnType<typeof createModelRunner>) {
  const cid = rig.client('cid');
  cid.say(ask(9));
  const isAnswered = () => rig.storage.promptInfo('promptId', 'p9')?.status === 'ended';
  for (let n = 0; n < 12 && !(isAnswered() && rig.session.isIdle); n++) {
    runner.connect();
    await settled();
    runner.receive();
    runner.finish();
    await pass(STEP_MS);
  }
  return cid;
}

/** What a client was shown of a turn is so. */
async function checkTurn({ rig, log }: World, events: Loose[], n: number): Promise<void> {
  const { storage } = rig;
  const [promptId, messageId] = [`p${n}`, `t${n}`];
  const prompt = storage.promptInfo('promptId', promptId);
  const messages = storage.messages();
  const shown = events.filter(({ turnId, seq }) => turnId === messageId && seq !== undefined);
  // What was refused is not asked all the same.
  const isRefused = events.some((one) => one.refused === 'prompt' && one.promptId === promptId);
  if (isRefused) expect(prompt).toBeUndefined();
  if (!prompt) {
    expect(shown).toEqual([]);
    expect(messages.filter(({ id }) => id === promptId || id === messageId)).toEqual([]);
    return;
  }
  const stored = messages.find(({ id }) => id === messageId);
  const isAnswered = prompt.outcome !== 'withdrawn';
  const seqs = shown.map(({ seq }) => seq as number);
  expect({
    status: prompt.status,
    hasPrompt: messages.some(({ id }) => id === promptId),
    hasAnswer: stored !== undefined,
    ends: shown.filter(({ type }) => type === 'message.finalize').map(({ reason }) => reason),
    seqs,
    text: shown
      .map(({ type, delta }) => (type === 'message.part.text-delta' ? delta : ''))
      .join(''),
  }).toEqual({
    status: 'ended',
    hasPrompt: isAnswered,
    hasAnswer: isAnswered,
    ends: isAnswered ? [REASONS[prompt.outcome as keyof typeof REASONS]] : [],
    seqs: [...new Set(seqs)].sort((one, other) => one - other),
    text: textOf(stored),
  });
  if (!stored) return;
  const chunks = await readWritten(log, prompt.turnId, 0);
  const { reason: _, ...metadata } = stored.metadata as Loose;
  expect({ ...toUIMessage(stored), metadata }).toEqual(foldChunks(chunks));
  expect((await log.get(prompt.turnId))?.outcome?.status).toBe(prompt.outcome);
}

const REASONS = { finished: 'end_turn', failed: 'error', stopped: 'canceled', lost: 'error' };

/** Another process finds nothing that is broken, and nothing that waits. */
async function checkRestart(rig: SessionRig): Promise<void> {
  rig.restart();
  await settled();
  expect(rig.session.isIdle).toBe(true);
  expect(rig.storage.openPrompts()).toEqual([]);
}

/** Every call of that session, by what fails. */
const CASES: [Failing, number][] = [];
for (const failing of FAILING) {
  const { calls } = await playAll(createWorld(failing), 0);
  for (let failAt = 1; failAt <= calls; failAt++) CASES.push([failing, failAt]);
}

describe('a session', () => {
  it.each(CASES)(
    'whose %s fails once, at call %i, shows nothing untrue and goes on',
    async (...given) => {
      const [failing, failAt] = given;
      const world = createWorld(failing);
      const { rig, state, reported } = world;
      const { ann, bob, runner } = await playAll(world, failAt);
      expect(state.failed).not.toBe('');
      const cid = await goOn(world, runner);
      expect(rig.session.isIdle, `${state.failed}: ${reported}`).toBe(true);
      const here = Object.entries({ ann, cid }).filter(([, { closed }]) => !closed);
      expect(rig.session.people.users().map(({ id }) => id)).toEqual(here.map(([id]) => id));
      expect(rig.storage.promptInfo('promptId', 'p9')).toMatchObject({ outcome: 'finished' });
      // A client that could not be shown the session was shown nothing.
      for (const { closed, events } of [ann, bob]) if (closed) expect(events).toEqual([]);
      const events = ann.closed ? [] : [...ann.events, ...bob.of('error')];
      if (events.length > 0) for (const n of NUMBERS) await checkTurn(world, events, n);
      await checkTurn(world, cid.events, 9);
      await checkRestart(rig);
    },
  );
});

/** A turn that has said something, and a prompt that waits. */
async function begin(world: World) {
  const { rig } = world;
  const runner = rig.runner('r1');
  const ann = rig.client('ann');
  ann.say(ask(1));
  ann.say(ask(2));
  await settled();
  runner.text('t1', 'Half ');
  await settled();
  return { ...world, runner, ann };
}

const stored = ({ storage }: SessionRig, messageId: string) =>
  storage.messages().find(({ id }) => id === messageId);

describe.each([
  ['on its own database', 'storage'],
  ['in memory', 'storage beside a log in memory'],
] as const)('a session with a log %s, whose storage fails at the end of a turn', (_, failing) => {
  async function end() {
    const begun = await begin(createWorld(failing));
    begun.state.broken = 'addMessage';
    begun.runner.text('t1', 'and whole.');
    begun.runner.finish('t1');
    await settled();
    return begun;
  }

  it('stores the end later, before the next turn begins', async () => {
    const { rig, ann, runner, state } = await end();
    await pass(50_000);
    expect(runner.prompts()).toEqual(['t1']);
    expect(rig.storage.promptInfo('promptId', 'p1')).toMatchObject({ status: 'running' });
    expect(stored(rig, 't1')).toBeUndefined();
    state.broken = '';
    await pass(40_000);
    expect(rig.storage.promptInfo('promptId', 'p1')).toMatchObject({
      status: 'ended',
      outcome: 'finished',
    });
    expect(textOf(stored(rig, 't1'))).toBe('Half and whole.');
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'end_turn' }]);
    expect(runner.prompts()).toEqual(['t1', 't2']);
    runner.finish('t2');
    await settled();
    expect(rig.session.isIdle).toBe(true);
    expect(rig.storage.messages().map(({ id }) => id)).toEqual(['p1', 't1', 'p2', 't2']);
  });

  it('lets a client that connects meanwhile follow all of the turn', async () => {
    const { rig } = await end();
    const bob = rig.client('bob');
    await settled();
    expect(bob.events[0]?.type).toBe('init');
    bob.say({ type: 'follow', turnId: 't1', after: 0 });
    await settled();
    expect(bob.of('message.part.text-delta').map(({ delta }) => delta)).toEqual([
      ...['Half ', 'and whole.'],
    ]);
    expect(bob.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'end_turn' }]);
  });
});

describe('a session whose storage fails', () => {
  it('and whose process ends before the end of a turn is stored, stores that in the next', async () => {
    const { rig, state, runner } = await begin(createWorld());
    state.broken = 'addMessage';
    runner.finish('t1');
    await settled();
    state.broken = '';
    rig.restart();
    await settled();
    expect(textOf(stored(rig, 't1'))).toBe('Half ');
    expect(rig.storage.promptInfo('promptId', 'p1')).toMatchObject({ outcome: 'finished' });
    expect(rig.session.running).toBeUndefined();
  });

  it('when a prompt is taken up leaves it in the queue, for as long as that takes', async () => {
    const { rig, state } = createWorld();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    await settled();
    state.broken = 'addMessage';
    ann.say(ask(1));
    await settled();
    expect(ann.of('error')).toEqual([]);
    expect(ann.last('status')).toMatchObject({ data: { promptQueued: true, promptId: 'p1' } });
    expect(rig.storage.promptInfo('promptId', 'p1')).toMatchObject({ status: 'queued' });
    await pass(60_000);
    expect(runner.prompts()).toEqual([]);
    state.broken = '';
    await pass(1_000);
    expect(runner.prompts()).toEqual(['t1']);
    expect(ann.last('queue.state')).toMatchObject({ data: { queue: [] } });
  });

  it('when no runner has come in time keeps the prompt for a runner that comes later', async () => {
    const { rig, state } = createWorld();
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    state.broken = 'addMessage';
    await pass(60_000);
    expect(ann.of('message.finalize')).toEqual([]);
    state.broken = '';
    const runner = rig.runner('r1');
    await settled();
    expect(runner.prompts()).toEqual(['t1']);
  });

  it('when no runner has come in time ends the prompt once it works again', async () => {
    const { rig, state } = createWorld();
    const ann = rig.client('ann');
    ann.say(ask(1));
    await settled();
    state.broken = 'addMessage';
    await pass(60_000);
    state.broken = '';
    await pass(60_000);
    expect(ann.of('message.finalize')).toMatchObject([{ code: 'runner-absent' }]);
    expect(stored(rig, 't1')).toMatchObject({ metadata: { outcome: 'failed' } });
    expect(rig.session.isIdle).toBe(true);
  });

  it('and has left two turns running: only the latest goes on', async () => {
    const { rig } = await begin(createWorld());
    for (const promptId of ['p1', 'p2']) rig.storage.updatePrompt(promptId, { status: 'running' });
    rig.restart();
    await settled();
    expect(rig.storage.promptInfo('promptId', 'p1')).toMatchObject({
      status: 'ended',
      outcome: 'failed',
    });
    const runner = rig.runner('r1');
    await settled();
    expect(runner.prompts()).toEqual(['t2']);
    runner.finish('t2');
    await settled();
    expect(rig.storage.openPrompts()).toEqual([]);
    expect(rig.session.isIdle).toBe(true);
  });

  it('closes the socket of a client that connects, and lets the others go on', async () => {
    const { rig, state } = createWorld();
    const ann = rig.client('ann');
    const bob = rig.client('bob');
    await settled();
    state.broken = 'messages';
    const cid = rig.client('cid');
    await settled();
    expect(cid).toMatchObject({ closed: { code: 1011 }, events: [] });
    state.broken = 'bytes';
    bob.drop();
    await settled();
    expect(rig.session.people.users()).toEqual([{ id: 'ann', name: 'ann' }]);
    expect(rig.sockets.size).toBe(1);
    expect(ann.last('user.left')).toMatchObject({ userId: 'bob' });
    ann.say({ type: 'ping' });
    await settled();
    expect(ann.last('pong')).toEqual({ type: 'pong' });
  });
});

describe.each(['log', 'log in memory'] as const)('a session whose %s fails', (failing) => {
  /** A log with a database fails where that does. */
  const breaking = (call: string) => {
    if (failing !== 'log') return call;
    return call === 'close' ? 'end' : 'database';
  };

  it('begins a turn as soon as the log works again', async () => {
    const { rig, state } = createWorld(failing);
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    await settled();
    state.broken = breaking('begin');
    ann.say(ask(1));
    await pass(20_000);
    expect(runner.prompts()).toEqual([]);
    expect([ann.of('message.finalize'), ann.of('error')]).toEqual([[], []]);
    state.broken = '';
    await pass(1_000);
    expect(runner.prompts()).toEqual(['t1']);
    runner.finish('t1');
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'end_turn' }]);
    expect(rig.session.isIdle).toBe(true);
  });

  it('once at what the agent says ends the turn for its viewers, without that', async () => {
    const { rig, ann, runner, state } = await begin(createWorld(failing));
    Object.assign(state, { calls: 0, failAt: 1 });
    runner.text('t1', 'lost');
    await settled();
    expect(state.failed).toBe('append');
    expect(ann.of('message.part.text-delta')).toMatchObject([{ delta: 'Half ' }]);
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'error', code: 'log-failed' },
    ]);
    expect(textOf(stored(rig, 't1'))).toBe('Half ');
    expect(runner.of('stop')).toMatchObject([{ turnId: rig.turnIdOf('t1') }]);
    expect(runner.prompts()).toEqual(['t1', 't2']);
  });

  it('at everything that is written ends the turn when the log works again, with what was shown', async () => {
    const { rig, log, ann, runner, state } = await begin(createWorld(failing));
    state.broken = breaking('append');
    runner.text('t1', 'lost');
    await pass(20_000);
    expect(ann.of('message.part.text-delta')).toMatchObject([{ delta: 'Half ' }]);
    state.broken = '';
    await pass(60_000);
    expect(textOf(stored(rig, 't1'))).toBe('Half ');
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'error' }]);
    expect((await log.get(rig.turnIdOf('t1')))?.outcome).toBeDefined();
    // The session may have closed the connection, to be sent again what the log did not take.
    const again = runner.closed ? rig.runner('r1') : runner;
    await settled();
    expect(again.prompts()).toContain('t2');
  });

  it('at the end of a turn closes the turn later', async () => {
    const { rig, log, ann, runner, state } = await begin(createWorld(failing));
    state.broken = breaking('close');
    runner.finish('t1');
    await pass(20_000);
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'end_turn' }]);
    state.broken = '';
    await pass(60_000);
    expect(rig.storage.promptInfo('promptId', 'p1')).toMatchObject({ outcome: 'finished' });
    expect(textOf(stored(rig, 't1'))).toBe('Half ');
    expect((await log.get(rig.turnIdOf('t1')))?.outcome).toBeDefined();
    expect(ann.of('message.finalize')).toHaveLength(1);
    expect(runner.prompts()).toEqual(['t1', 't2']);
  });

  it('at an answer refuses it, and takes it when it is given again', async () => {
    const { ann, runner, state } = await begin(createWorld(failing));
    runner.ask('t1', 'q1');
    await settled();
    const answer = { type: 'answer', questionId: 'q1', answer: 'Yes' };
    state.broken = breaking('command');
    ann.say(answer);
    await settled();
    expect(ann.of('error')).toMatchObject([{ refused: 'answer', code: 'log-failed' }]);
    expect(runner.of('answer')).toEqual([]);
    state.broken = '';
    ann.say(answer);
    await settled();
    expect(runner.of('answer')).toMatchObject([{ questionId: 'q1', answer: 'Yes' }]);
  });
});
