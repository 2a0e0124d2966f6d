import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createModelRunner, type Doing } from '../../test/session-model-runner.ts';
import {
  createSessionRig,
  createTestClock,
  settled,
  type TestSocket,
} from '../../test/session-rig.ts';
import type { Loose } from '../core/loose.ts';
import {
  type Clock,
  memorySessionStore,
  type SessionStorage,
  type StoredMessage,
  type StoredTurn,
} from './index.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 150);

type Move =
  | { do: 'prompt' | 'join'; who: number }
  | { do: 'again'; which: number }
  | { do: 'abort' | 'withdraw' | 'answer'; who: number; which: number }
  | { do: 'stop'; who: number }
  | { do: 'cut' | 'connect' | 'replace' | 'kill' | 'settle' }
  | { do: 'slow'; isSlow: boolean }
  | { do: 'pass'; ms: number }
  | { do: 'hear'; most: number }
  | { do: 'work'; doing: Doing };

const PEOPLE = ['ann', 'bob', 'cid'];
const who = fc.nat({ max: PEOPLE.length - 1 });
const which = fc.nat({ max: 9 });
const move = <Kind extends Move['do']>(
  weight: number,
  kinds: Kind[],
  fields: Record<string, fc.Arbitrary<unknown>> = {},
) => ({
  weight,
  arbitrary: fc.record({ do: fc.constantFrom(...kinds), ...fields }) as fc.Arbitrary<Move>,
});
const work = (weight: number, doing: Doing) =>
  move(weight, ['work'], { doing: fc.constant(doing) });

const MOVES = [
  move(14, ['prompt'], { who }),
  move(4, ['join'], { who }),
  move(4, ['again'], { which }),
  move(12, ['abort', 'withdraw', 'answer'], { who, which }),
  move(2, ['stop'], { who }),
  move(12, ['connect']),
  move(4, ['cut']),
  move(2, ['replace']),
  move(4, ['slow'], { isSlow: fc.boolean() }),
  move(3, ['pass'], { ms: fc.constantFrom(1_000, 10_000, 30_000, 60_000, 300_000) }),
  move(14, ['hear'], { most: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY) }),
  ...[work(14, 'text'), work(4, 'question'), work(3, 'event'), work(4, 'end'), work(1, 'fail')],
  move(20, ['settle']),
];
const KILL = move(4, ['kill']);

const scriptOf = (...moves: typeof MOVES) =>
  fc.array(fc.oneof(...moves), { minLength: 30, maxLength: 90, size: 'max' });

/** What somebody was told, from when they came to when they, or the process, went. */
type Watcher = { id: string; socket: TestSocket; events: TestSocket['events']; isThere: boolean };

/** A process that can be killed at any point: nothing it still does after that counts. */
function createProcess(storage: SessionStorage, clock: Clock) {
  const state = { isAlive: true };
  const mortal = new Proxy(storage, {
    get: (target, key: keyof SessionStorage) =>
      state.isAlive
        ? target[key].bind(target)
        : () => {
            throw new Error('The process was killed.');
          },
  });
  const after: Clock['after'] = (ms, run) => clock.after(ms, () => state.isAlive && run());
  return { storage: mortal, clock: { now: clock.now, after }, kill: () => (state.isAlive = false) };
}

function createWorld() {
  const clock = createTestClock();
  const store = memorySessionStore({ now: clock.now });
  const storage = store.open('s');
  let process = createProcess(storage, clock);
  const rig = createSessionRig({
    get storage() {
      return process.storage;
    },
    get clock() {
      return process.clock;
    },
  });
  const watchers: Watcher[] = [];
  const prompts: { promptId: string; turnId: string; by: string }[] = [];
  const runners = [createModelRunner(rig, 'r1')];
  const runner = () => runners.at(-1) as (typeof runners)[number];

  function join(id: string): Watcher {
    const socket = rig.client(id);
    const watcher = { id, socket, events: socket.events, isThere: true };
    watchers.push(watcher);
    return watcher;
  }

  /** Somebody's latest connection. */
  function say(id: string, message: object): void {
    const is = (watcher: Watcher) => watcher.isThere && watcher.id === id;
    (watchers.findLast(is) ?? join(id)).socket.say(message);
  }

  function kill(): void {
    process.kill();
    runner().lose();
    for (const watcher of watchers) {
      watcher.isThere = false;
      watcher.events = [...watcher.events];
    }
    process = createProcess(storage, clock);
    rig.restart();
  }

  function play(given: Move): void {
    const by = 'who' in given ? (PEOPLE[given.who] as string) : '';
    const prompt = 'which' in given ? prompts.at(-1 - given.which) : undefined;
    if (given.do === 'prompt') {
      const n = prompts.length + 1;
      const ids = { promptId: `p${n}`, turnId: `t${n}` };
      prompts.push({ ...ids, by });
      say(by, { type: 'prompt', content: `Hi ${n}`, ...ids });
    } else if (given.do === 'again' && prompt) {
      say(prompt.by, { type: 'prompt', content: 'Again', ...prompt });
    } else if (given.do === 'abort' && prompt) say(by, { type: 'abort', turnId: prompt.turnId });
    else if (given.do === 'stop') say(by, { type: 'abort' });
    else if (given.do === 'withdraw' && prompt) {
      say(by, { type: 'withdraw', promptId: prompt.promptId });
    } else if (given.do === 'answer') {
      const [open] = storage.openQuestions();
      if (open) say(by, { type: 'answer', questionId: open.questionId, answer: 'Yes' });
    } else if (given.do === 'join') join(by);
    else if (given.do === 'connect') runner().connect();
    else if (given.do === 'cut') runner().cut();
    else if (given.do === 'replace') {
      runner().cut();
      runners.push(createModelRunner(rig, `r${runners.length + 1}`));
    } else if (given.do === 'slow') runner().slow(given.isSlow);
    else if (given.do === 'pass') clock.pass(given.ms);
    else if (given.do === 'hear') runner().hear(given.most);
    else if (given.do === 'work') runner().work(given.doing);
    else if (given.do === 'kill') kill();
  }

  /** The network heals, and the agent does what it is asked. */
  async function comeToRest(): Promise<void> {
    runner().slow(false);
    runner().cut();
    await settled();
    for (let n = 0; n < 40 && !(rig.agent.isIdle && runner().isIdle && n > 2); n++) {
      runner().connect();
      runner().hear();
      runner().finish();
      await settled();
      // For whom waits for a runner that was replaced.
      if (n % 3 === 2) clock.pass(31_000);
    }
    await settled();
  }

  return { rig, storage, watchers, prompts, runners, join, play, comeToRest };
}

type World = ReturnType<typeof createWorld>;
type Init = {
  session: { messages: StoredMessage[] };
  data: { turn: { turnId: string; seq: number } | null; queue: object[]; runnerBusy: boolean };
};

const dataOf = (event: Loose | undefined) => Object(event?.data) as Loose;
const initOf = ({ events }: Watcher) => events[0] as unknown as Init;

/** What was told of a turn is what is stored of it, or the beginning of that. */
function checkTold(watcher: Watcher, turn: StoredTurn, stored: StoredMessage | undefined): void {
  const { turnId, promptId, reason } = turn;
  const { events, isThere } = watcher;
  const { session, data } = initOf(watcher);
  const from = data.turn?.turnId === turnId ? data.turn.seq : 0;
  const told = events.filter((event) => event.turnId === turnId && typeof event.seq === 'number');
  const before = session.messages.find(({ id }) => id === turnId)?.content ?? '';
  const textOf = (type: string, field: string) =>
    before +
    events
      .filter((event) => event.type === type && (event.messageId ?? event.turnId) === turnId)
      .map((event) => event[field])
      .join('');
  const text = textOf('message.part.text-delta', 'delta');
  const ends = told.filter(({ type }) => type === 'message.finalize');
  const isOver = ends.length > 0 || (isThere && (told.length > 0 || from > 0));
  const isLast = (event: Loose) => event.type === 'message.updated' && dataOf(event).id === turnId;
  const asked = told.filter(({ type }) => type === 'question').map((event) => event.questionId);
  const content = stored?.content ?? '';
  expect({
    ids: told.map((event) => [event.promptId, event.seq]),
    asked,
    text,
    inTheOldWay: textOf('chunk', 'content'),
    ends: ends.map((event) => event.reason),
    ...(isOver && { last: events.findLast(isLast)?.data }),
  }).toEqual({
    ids: told.map((_, at) => [promptId, from + at + 1]),
    asked: [...new Set(asked)],
    text: isOver ? content : content.slice(0, text.length),
    inTheOldWay: text,
    ends: isOver ? [reason] : [],
    ...(isOver && { last: stored }),
  });
}

function checkTurn({ storage, watchers }: World, turnId: string, messages: StoredMessage[]): void {
  const turn = storage.turn(turnId) as StoredTurn;
  const { promptId, status, reason } = turn;
  const stored = messages.find(({ id }) => id === turnId);
  const words = (stored?.content ?? '').split(' ').filter(Boolean);
  const numbers = words.map((word) => Number(word.replace(`${turnId}:`, '')));
  const isWithdrawn = reason === 'withdrawn';
  const parts = (stored?.parts ?? []) as { type: string; questionId?: string }[];
  expect({
    status,
    hasAnswer: stored !== undefined,
    numbers,
    hasPrompt: messages.some(({ id }) => id === promptId),
    asked: storage.questionsOf(turnId).map(({ questionId }) => questionId),
  }).toEqual({
    asked: parts.flatMap(({ type, questionId }) => (type === 'question' ? [questionId] : [])),
    status: 'ended',
    hasAnswer: !isWithdrawn,
    hasPrompt: !isWithdrawn,
    // Its own, each once, in their order.
    numbers: [...new Set(numbers)].filter((n) => n > 0).sort((a, b) => a - b),
  });
  for (const watcher of watchers) checkTold(watcher, turn, stored);
}

/** Nobody is left with a page that waits for something. */
function checkView(watcher: Watcher): void {
  const { events } = watcher;
  const { data } = initOf(watcher);
  const queue = events.findLast(({ type }) => type === 'queue.state');
  expect(queue ? dataOf(queue).queue : data.queue).toEqual([]);
  expect(events.filter((event) => event.refused === 'prompt')).toEqual([]);
  const isBusy = (event: Loose) => event.type === 'status' && 'runnerBusy' in dataOf(event);
  const ran = data.runnerBusy || events.some(({ type }) => type === 'message.create');
  if (ran) expect(dataOf(events.findLast(isBusy))).toEqual({ runnerBusy: false });
}

async function check(script: Move[]): Promise<void> {
  const world = createWorld();
  const { rig, storage, watchers, prompts, runners } = world;
  for (const id of ['ann', 'bob']) world.join(id);
  for (const given of script) {
    // Only here: what comes in one tick is another case than what comes in two.
    if (given.do === 'settle') await settled();
    else world.play(given);
  }
  await world.comeToRest();
  expect(rig.agent.isIdle).toBe(true);
  expect(storage.openQuestions()).toEqual([]);
  const begun = runners.flatMap((runner) => runner.begun);
  expect(begun).toEqual([...new Set(begun)]);
  const messages = storage.messages();
  for (const { turnId } of prompts) checkTurn(world, turnId, messages);
  for (const watcher of watchers) if (watcher.isThere) checkView(watcher);
  const asked = messages.flatMap(({ role, id }) => (role === 'user' ? [id] : []));
  const inOrder = prompts.map(({ promptId }) => promptId).filter((id) => asked.includes(id));
  expect(asked).toEqual(inOrder);
}

describe('a session, whatever happens in whichever order', () => {
  it('tells everybody the same, once, and comes to rest', async () => {
    await fc.assert(fc.asyncProperty(scriptOf(...MOVES), check), { numRuns: NUM_RUNS });
  });

  it('also when its process is killed in between', async () => {
    await fc.assert(fc.asyncProperty(scriptOf(...MOVES, KILL), check), { numRuns: NUM_RUNS });
  });
});
