import { describe, expect, it } from 'vitest';
import { createSessionRig, createTestClock, settled } from '../../test/session-rig.ts';
import type { Loose } from '../core/loose.ts';
import {
  type Clock,
  memorySessionStore,
  type SessionStorage,
  type SessionStore,
  type StoredMessage,
} from './index.ts';

/** A storage that throws when it is told to: at its nth call from now on, or at all of a name. */
function createFaults(storage: SessionStorage) {
  const state = { calls: 0, failAt: 0, failed: '', broken: '' };
  const faulty = new Proxy(storage, {
    get:
      (target, name: keyof SessionStorage) =>
      (...given: never[]) => {
        state.calls++;
        if (state.calls !== state.failAt && state.broken !== name) {
          return (target[name] as (...args: never[]) => unknown).apply(target, given);
        }
        state.failed = name;
        throw new Error('The disk is full.');
      },
  });
  return { state, faulty };
}

function createRig(clock: Clock & { pass(ms: number): void } = createTestClock()) {
  const store = memorySessionStore();
  const { state, faulty } = createFaults(store.open('s'));
  const logged: unknown[] = [];
  const logger = { warn: () => undefined, error: (message: string) => void logged.push(message) };
  const rig = createSessionRig({ storage: faulty, clock, logger });
  return { rig, clock, store, state, logged };
}

const ask = (n: number) => ({
  type: 'prompt',
  content: `Hi ${n}`,
  promptId: `p${n}`,
  turnId: `t${n}`,
});
const PROMPTS = [1, 2, 3, 9].map((n) => ({ promptId: `p${n}`, turnId: `t${n}` }));

/** Gives a runner's events their numbers, across its connections. */
function createCounter() {
  let runnerSeq = 0;
  return (event: object) => ({ ...event, runnerSeq: ++runnerSeq });
}

/** Something of everything: two answers, a question that is answered, one that expires, a drop. */
async function playAll({ rig, clock, state }: ReturnType<typeof createRig>, failAt: number) {
  const count = createCounter();
  Object.assign(state, { calls: 0, failAt });
  const ann = rig.client('ann');
  const bob = rig.client('bob');
  ann.say(ask(1));
  ann.say(ask(2));
  bob.say(ask(3));
  const runner = rig.runner('r1');
  const say = async (event: object) => {
    runner.say(count(event));
    await settled();
  };
  const begin = async (turnId: string) => {
    await say({ type: 'message.create', turnId });
    await say({ type: 'message.part.text-delta', turnId, delta: 'one ' });
  };
  await begin('t1');
  await say({ type: 'question', turnId: 't1', questionId: 'q1', text: 'Deploy?' });
  bob.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
  await settled();
  await say({ type: 'question', turnId: 't1', questionId: 'q2', text: 'Sure?' });
  clock.pass(5 * 60_000);
  await settled();
  bob.say({ type: 'withdraw', promptId: 'p3' });
  await say({ type: 'message.part.text-delta', turnId: 't1', delta: 'two' });
  await say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
  await begin('t2');
  runner.drop();
  clock.pass(30_000);
  await settled();
  bob.drop();
  await settled();
  const { calls } = state;
  Object.assign(state, { failAt: 0 });
  const known = runner.of('prompt').map(({ turnId }) => turnId);
  return { ann, bob, calls, known, count };
}

/** From here on the disk works: somebody new asks, and the agent answers whatever it is asked. */
async function goOn({ rig, clock }: ReturnType<typeof createRig>, known: unknown[], count: Count) {
  const runner = rig.runner('r1', { known });
  const cid = rig.client('cid');
  cid.say(ask(9));
  const answered = new Set<unknown>();
  for (let n = 0; n < 12; n++) {
    for (const { turnId } of runner.of('prompt')) {
      if (answered.has(turnId)) continue;
      answered.add(turnId);
      runner.say(count({ type: 'message.create', turnId }));
      runner.say(count({ type: 'message.finalize', turnId, reason: 'end_turn' }));
    }
    await settled();
    clock.pass(61_000);
    await settled();
  }
  return cid;
}

type Count = ReturnType<typeof createCounter>;

/** Whatever anybody was told of a turn is so. */
function checkTurn(storage: SessionStorage, events: Loose[], { promptId, turnId }: Ids): void {
  const turn = storage.turn(turnId);
  const message = storage.messages().find(({ id }) => id === turnId);
  const told = events.filter((event) => event.turnId === turnId && typeof event.seq === 'number');
  const ends = told.filter(({ type }) => type === 'message.finalize').map(({ reason }) => reason);
  const refused = events.some((event) => event.refused === 'prompt' && event.promptId === promptId);
  // What was refused is not asked all the same.
  if (refused) expect(turn).toBeUndefined();
  if (!turn) {
    expect(told).toEqual([]);
    return;
  }
  const text = told
    .filter(({ type }) => type === 'message.part.text-delta')
    .map(({ delta }) => delta)
    .join('');
  const isAnswered = turn.reason !== 'withdrawn';
  expect({
    status: turn.status,
    ends,
    seqs: told.map(({ seq }) => seq),
    text,
    hasMessage: message !== undefined,
  }).toEqual({
    status: 'ended',
    seqs: told.map((_, at) => at + 1),
    text: message?.content ?? '',
    ends: isAnswered ? [turn.reason] : [],
    hasMessage: isAnswered,
  });
  expect(isAnswered ? lastPart(message) : undefined).toEqual(
    isAnswered ? { type: 'finish', reason: turn.reason } : undefined,
  );
}

type Ids = (typeof PROMPTS)[number];

function lastPart(message: StoredMessage | undefined): unknown {
  return (message?.parts as unknown[] | undefined)?.at(-1);
}

/** Another process finds nothing that is broken, and nothing that waits. */
function checkRestart(store: SessionStore): void {
  const rig = createSessionRig({ storage: store.open('s') });
  expect(rig.agent.isIdle).toBe(true);
  expect(store.open('s').openTurns()).toEqual([]);
  expect(store.open('s').openQuestions()).toEqual([]);
}

const { calls: CALLS } = await playAll(createRig(), 0);

describe('a storage that fails', () => {
  it.each(Array.from({ length: CALLS }, (_, at) => at + 1))(
    'once, at call %i: nothing untrue is told, and the session goes on',
    async (failAt) => {
      const given = createRig();
      const { rig, store, state, logged } = given;
      const { ann, bob, known, count } = await playAll(given, failAt);
      expect(state.failed).not.toBe('');
      expect(logged).not.toEqual([]);
      const cid = await goOn(given, known, count);
      expect(rig.agent.isIdle).toBe(true);
      const storage = store.open('s');
      expect(storage.turn('t9')).toMatchObject({ reason: 'end_turn' });
      // Somebody whose welcome failed was told nothing, and is not there.
      if (ann.closed) expect(ann.events).toEqual([]);
      const events = ann.closed ? [] : [...ann.events, ...bob.of('error')];
      if (events.length > 0) for (const ids of PROMPTS) checkTurn(storage, events, ids);
      checkTurn(storage, cid.events, { promptId: 'p9', turnId: 't9' });
      checkRestart(store);
    },
  );

  it('at a turn’s end says so, and stores that later', async () => {
    const { rig, clock, store, state } = createRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half' });
    await settled();
    state.broken = 'updateTurn';
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'error', code: 'log-failed', seq: 3 },
    ]);
    // Nobody begins something else before it can be kept that this has ended.
    clock.pass(5_000);
    expect(runner.of('prompt')).toHaveLength(1);
    expect(store.open('s').turn('t1')).toMatchObject({ status: 'running' });
    state.broken = '';
    clock.pass(1_000);
    expect(store.open('s').turn('t1')).toMatchObject({ status: 'ended', reason: 'error' });
    expect(store.open('s').messages().at(1)).toMatchObject({
      id: 't1',
      content: 'Half',
      parts: [{ type: 'text' }, { type: 'error' }, { type: 'finish', reason: 'error' }],
    });
    expect(store.open('s').events('t1', 2).join()).toContain('log-failed');
    expect(runner.last('prompt')).toMatchObject({ turnId: 't2' });
  });

  it('at a turn’s end is no reason for whoever comes then to wait for it', async () => {
    const { rig, clock, state, store } = createRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half' });
    await settled();
    state.broken = 'updateTurn';
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    const told = () => ann.events.filter(({ turnId, seq }) => turnId === 't1' && seq !== undefined);
    const numbered = told();
    const again = rig.client('ann');
    again.say(ask(1));
    expect(again.last('status')).toMatchObject({ data: { promptKnown: 'p1', turnId: 't1' } });
    again.say({ type: 'follow', turnId: 't1', after: 1 });
    again.say({ type: 'follow', turnId: 't1', after: 3 });
    expect(again.events.filter(({ seq }) => seq !== undefined)).toEqual(numbered.slice(1));
    state.broken = '';
    clock.pass(1_000);
    expect([told(), store.open('s').turn('t1')?.status]).toEqual([numbered, 'ended']);
    // From now on it is told as it is stored.
    const late = rig.client('ann');
    late.say({ type: 'follow', turnId: 't1', after: 0 });
    expect(late.events.filter(({ seq }) => seq !== undefined)).toEqual(numbered);
  });

  it('at a turn’s end, and whose process ends then, leaves no turn running', async () => {
    const { rig, store, state } = createRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    runner.say({ type: 'message.create', turnId: 't1' });
    await settled();
    state.broken = 'updateTurn';
    runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
    const next = createSessionRig({ storage: store.open('s') });
    next.clock.pass(30_000);
    expect(store.open('s').turn('t1')).toMatchObject({ status: 'ended', reason: 'error' });
    expect(next.agent.isIdle).toBe(true);
  });

  it('when a prompt is taken up leaves it in the queue, for as long as it takes', async () => {
    const { rig, clock, store, state } = createRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    state.broken = 'addMessage';
    ann.say(ask(1));
    expect(ann.of('error')).toEqual([]);
    expect(ann.last('status')).toMatchObject({ data: { promptQueued: true, promptId: 'p1' } });
    expect(store.open('s').turn('t1')).toMatchObject({ status: 'queued' });
    clock.pass(60_000);
    expect(runner.of('prompt')).toEqual([]);
    state.broken = '';
    clock.pass(1_000);
    expect(runner.of('prompt')).toMatchObject([{ turnId: 't1' }]);
    expect(ann.last('queue.state')).toMatchObject({ data: { queue: [] } });
  });

  it('when no runner has come ends no process, and the prompt is answered by the next', () => {
    const { rig, clock, state } = createRig();
    const ann = rig.client('ann');
    ann.say(ask(1));
    state.broken = 'addMessage';
    clock.pass(60_000);
    expect(ann.of('message.finalize')).toEqual([]);
    state.broken = '';
    expect(rig.runner('r1').of('prompt')).toMatchObject([{ turnId: 't1' }]);
  });

  it('when no runner has come answers the prompt once it works again, though nobody else asks', () => {
    const { rig, clock, store, state } = createRig();
    rig.client('ann').say(ask(1));
    state.broken = 'addMessage';
    clock.pass(60_000);
    state.broken = '';
    clock.pass(3_600_000);
    expect(store.open('s').turn('t1')).toMatchObject({ status: 'ended', reason: 'error' });
  });

  it('again and again keeps no word that nobody was told', async () => {
    const { rig, clock, store, state } = createRig();
    const ann = rig.client('ann');
    const runner = rig.runner('r1');
    ann.say(ask(1));
    runner.say({ type: 'message.create', turnId: 't1', runnerSeq: 1 });
    await settled();
    state.broken = 'appendEvents';
    runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Half', runnerSeq: 2 });
    await settled();
    state.broken = '';
    clock.pass(1_000);
    const [, answer] = store.open('s').messages();
    expect([answer?.content, ann.of('message.part.text-delta')]).toEqual(['', []]);
    expect(ann.of('message.updated').at(-1)).toMatchObject({ data: { id: 't1', content: '' } });
  });

  it('when a question’s time is over tells it as soon as it can', async () => {
    const { rig, clock, store, state } = createRig();
    rig.client('ann').say(ask(1));
    const runner = rig.runner('r1');
    runner.say({ type: 'question', turnId: 't1', questionId: 'q1', text: 'Ok?', runnerSeq: 1 });
    await settled();
    state.broken = 'saveQuestion';
    clock.pass(300_000);
    state.broken = '';
    clock.pass(1_000);
    expect(store.open('s').question('q1')).toMatchObject({ status: 'expired' });
    expect(runner.last('answer')).toMatchObject({ questionId: 'q1', answer: '__expired__' });
  });

  it('and left two turns running: only the latest may go on', () => {
    const { store, rig } = createRig();
    const storage = store.open('s');
    const ann = rig.client('ann');
    ann.say(ask(1));
    ann.say(ask(2));
    for (const turnId of ['t1', 't2']) storage.updateTurn(turnId, { status: 'running' });
    const next = createSessionRig({ storage });
    expect(storage.turn('t1')).toMatchObject({ status: 'ended', reason: 'error' });
    expect(storage.messages().map(({ id }) => id)).toEqual(['t1']);
    next.runner('r1', { turnId: 't2', known: ['t1', 't2'] }).say({
      type: 'message.finalize',
      turnId: 't2',
      reason: 'end_turn',
    });
    expect(storage.turn('t2')).toMatchObject({ status: 'ended' });
    expect(next.agent.isIdle).toBe(true);
  });

  it('while a question is asked has neither the question nor its event', async () => {
    const { rig, store, state } = createRig();
    const runner = rig.runner('r1');
    const ann = rig.client('ann');
    ann.say(ask(1));
    runner.say({ type: 'message.create', turnId: 't1' });
    await settled();
    state.broken = 'saveQuestion';
    runner.say({ type: 'question', turnId: 't1', questionId: 'q1', text: 'Deploy?' });
    await settled();
    state.broken = '';
    expect(ann.of('question')).toEqual([]);
    expect(store.open('s').question('q1')).toBeUndefined();
    expect(store.open('s').events('t1', 1).join()).not.toContain('question');
    expect(ann.of('message.finalize')).toMatchObject([{ code: 'log-failed', seq: 2 }]);
    expect(runner.last('abort')).toMatchObject({ turnId: 't1' });
  });

  it('when somebody comes in or leaves hurts nobody else', () => {
    const { rig, state } = createRig();
    const ann = rig.client('ann');
    const bob = rig.client('bob');
    state.broken = 'bytes';
    const cid = rig.client('cid');
    expect(cid.closed).toMatchObject({ code: 1011 });
    bob.drop();
    expect(rig.agent.clientCount).toBe(1);
    expect(ann.last('user.left')).toMatchObject({ userId: 'bob' });
    ann.say({ type: 'ping' });
    expect(ann.last('pong')).toEqual({ type: 'pong' });
  });
});
