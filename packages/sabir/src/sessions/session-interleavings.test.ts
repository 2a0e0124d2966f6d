import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createModelRunner, type Doing } from '../../test/session-model-runner.ts';
import {
  createSessionRig,
  settled,
  type TestClock,
  type TestSocket,
  textOf,
} from '../../test/session-rig.ts';
import type { Chunk } from '../core/chunks.ts';
import { foldChunks } from '../core/fold.ts';
import type { Loose } from '../core/loose.ts';
import { verifyChunks } from '../core/verify.ts';
import { createV2Encoder } from '../wires/agent-ops/encode.ts';
import { type PromptInfo, systemClock, toUIMessage } from './index.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 200);

type Move =
  | { do: 'prompt' | 'join'; who: number }
  | { do: 'again'; which: number }
  | { do: 'abort' | 'withdraw' | 'answer'; who: number; which: number }
  | { do: 'stop'; who: number }
  | { do: 'cut' | 'connect' | 'replace' | 'kill' | 'settle' | 'break' | 'mend' }
  | { do: 'slow'; isSlow: boolean }
  /** A client joins so many microtasks after another has got such an event. */
  | { do: 'lurk'; who: number; type: string; after: number }
  | { do: 'pass'; ms: number }
  | { do: 'receive'; most: number }
  | { do: 'work'; doing: Doing };

/** Longer than a lease, as for a process that was suspended; or shorter, so that the log ends no turn as lost. */
const LONG_STEP_MS = 60_000;
const SHORT_STEP_MS = 10_000;
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
  move(4, ['lurk'], {
    who,
    type: fc.constantFrom('message.create', 'message.part.text-delta', 'message.finalize'),
    after: fc.nat({ max: 20 }),
  }),
  move(4, ['again'], { which }),
  move(12, ['abort', 'withdraw', 'answer'], { who, which }),
  move(2, ['stop'], { who }),
  move(12, ['connect']),
  move(4, ['cut']),
  move(2, ['replace']),
  move(4, ['slow'], { isSlow: fc.boolean() }),
  move(3, ['pass'], { ms: fc.constantFrom(1_000, 10_000, 30_000, 60_000, 300_000) }),
  move(14, ['receive'], { most: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY) }),
  ...[work(14, 'text'), work(4, 'question'), work(3, 'event'), work(4, 'end'), work(1, 'fail')],
  move(20, ['settle']),
];
const KILL = move(4, ['kill']);
const BREAK = [move(3, ['break']), move(3, ['mend'])];

const scriptOf = (...moves: typeof MOVES) =>
  fc.array(fc.oneof(...moves), { minLength: 30, maxLength: 90, size: 'max' });

/** The time of all timers, which stands still but for the test. */
const clock: TestClock = { ...systemClock, pass: (ms) => void vi.advanceTimersByTime(ms) };

beforeAll(() => {
  const timers = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const;
  vi.useFakeTimers({ toFake: [...timers, 'Date', 'performance'] });
});
afterAll(() => void vi.useRealTimers());

/** A client, from when it came to when it, or the process, went. */
type Watcher = { id: string; socket: TestSocket; events: TestSocket['events']; isThere: boolean };

type Lurker = { by: string; type: string; after: number };

/** A prompt, and the client that sent it, unless others have sent it again. */
type Asked = { promptId: string; messageId: string; by: string; on?: Watcher };

function createWorld() {
  const faults = { isBroken: false };
  const breakable = <Kept extends object>(kept: Kept): Kept =>
    new Proxy(kept, {
      get(target, name) {
        if (faults.isBroken) throw new Error('The disk is full.');
        return Reflect.get(target, name);
      },
    });
  const rig = createSessionRig({
    clock,
    turns: { retentionMs: 1e12, retainedBytes: Infinity },
    storage: breakable,
    database: breakable,
  });
  const watchers: Watcher[] = [];
  const lurkers: Lurker[] = [];
  const prompts: Asked[] = [];
  const runners = [createModelRunner(rig, 'r1')];
  const runner = () => runners.at(-1) as (typeof runners)[number];

  function join(id: string): Watcher {
    const socket = rig.client(id);
    const watcher = { id, socket, events: socket.events, isThere: true };
    watchers.push(watcher);
    socket.onEvent = ({ type }) => {
      const due = lurkers.find((one) => one.type === type);
      if (due) void joinLater(lurkers.splice(lurkers.indexOf(due), 1)[0] as Lurker);
    };
    return watcher;
  }

  async function joinLater({ by, after }: Lurker): Promise<void> {
    const { session } = rig;
    for (let n = 0; n < after; n++) await undefined;
    // Not if the process was killed meanwhile.
    if (rig.session === session) join(by);
  }

  /** On the latest connection of this user. */
  function say(id: string, message: object): Watcher {
    const is = ({ isThere, socket, ...watcher }: Watcher) =>
      isThere && !socket.closed && watcher.id === id;
    const watcher = watchers.findLast(is) ?? join(id);
    watcher.socket.say(message);
    return watcher;
  }

  function kill(): void {
    runner().lose();
    for (const watcher of watchers) watcher.isThere = false;
    faults.isBroken = false;
    rig.restart();
  }

  function play(given: Move): void {
    const by = 'who' in given ? (PEOPLE[given.who] as string) : '';
    const prompt = 'which' in given ? prompts.at(-1 - given.which) : undefined;
    if (given.do === 'prompt') {
      const n = prompts.length + 1;
      const [promptId, messageId] = [`p${n}`, `t${n}`];
      const on = say(by, { type: 'prompt', content: `Hi ${n}`, promptId, turnId: messageId });
      prompts.push({ promptId, messageId, by, on });
    } else if (given.do === 'again' && prompt) {
      const { promptId, messageId: turnId } = prompt;
      delete prompt.on;
      say(prompt.by, { type: 'prompt', content: 'Again', promptId, turnId });
    } else if (given.do === 'abort' && prompt) say(by, { type: 'abort', turnId: prompt.messageId });
    else if (given.do === 'stop') say(by, { type: 'abort' });
    else if (given.do === 'withdraw' && prompt) {
      say(by, { type: 'withdraw', promptId: prompt.promptId });
    } else if (given.do === 'answer') {
      say(by, { type: 'answer', questionId: `q${(given.which % 3) + 1}`, answer: 'Yes' });
    } else if (given.do === 'join') join(by);
    else if (given.do === 'lurk') lurkers.push({ ...given, by });
    else if (given.do === 'connect') runner().connect();
    else if (given.do === 'cut') runner().cut();
    else if (given.do === 'replace') {
      runner().cut();
      runners.push(createModelRunner(rig, `r${runners.length + 1}`));
    } else if (given.do === 'slow') runner().slow(given.isSlow);
    else if (given.do === 'receive') runner().receive(given.most);
    else if (given.do === 'work') runner().work(given.doing);
    else if (given.do === 'kill') kill();
    else if (given.do === 'break') faults.isBroken = true;
    else if (given.do === 'mend') faults.isBroken = false;
  }

  async function pass(ms: number, stepMs: number): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      clock.pass(Math.min(left, stepMs));
      if (ms > stepMs) await settled();
    }
  }

  /** The network and the disk heal, and the agent does what it is asked. */
  async function comeToRest(): Promise<void> {
    faults.isBroken = false;
    runner().slow(false);
    runner().cut();
    await settled();
    for (let n = 0; n < 60 && !(rig.session.isIdle && runner().isIdle && n > 2); n++) {
      runner().connect();
      runner().receive();
      runner().finish();
      await settled();
      // For a turn that waits for a runner which was replaced, or for the end of a lease.
      if (n % 3 === 2) clock.pass(31_000);
    }
    await settled();
  }

  return { rig, watchers, prompts, runners, join, play, pass, comeToRest };
}

type World = ReturnType<typeof createWorld>;
type Init = {
  session: { messages: { id: string; content: string }[] };
  data: { turn: { turnId: string; seq: number } | null; queue: object[]; runnerBusy: boolean };
};

const dataOf = (event: Loose | undefined) => Object(event?.data) as Loose;
const isWhole = ({ isThere, socket }: Watcher) => isThere && !socket.closed;
const initOf = ({ events }: Watcher) => events[0] as unknown as Init | undefined;

/** All V2 events of a turn that have a number, as every client has to get them. */
function encodeAll({ messageId, promptId, ...place }: PromptInfo, chunks: Chunk[]): object[] {
  const { channelType, channelId } = place;
  const channel = { channelType, channelId };
  const encoder = createV2Encoder({ turnId: messageId, promptId, channel });
  return chunks.flatMap((chunk, at) =>
    encoder
      .push(chunk)
      .filter(({ type }) => type !== 'agentStatus' && type !== 'complete')
      .map((event) => ({ ...event, seq: at + 1 })),
  );
}

/** A client gets all of a turn from where it came in, each event once; if its process was killed, the beginning of that. */
function checkWatched(watcher: Watcher, { messageId }: PromptInfo, all: object[], text: string) {
  const init = initOf(watcher);
  if (!init) return;
  const { session, data } = init;
  const ids = session.messages.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
  const { events } = watcher;
  const isThere = isWhole(watcher);
  const isJoinedInMid = data.turn?.turnId === messageId;
  const shown = session.messages.find(({ id }) => id === messageId);
  const from = isJoinedInMid ? (data.turn?.seq ?? 0) : shown ? Infinity : 0;
  const seen = events.filter((event) => event.turnId === messageId && event.seq !== undefined);
  const expected = all.filter((event) => ((event as Loose).seq as number) > from);
  expect(seen).toEqual(isThere ? expected : expected.slice(0, seen.length));
  const textIn = (type: string, field: string) =>
    (shown?.content ?? '') +
    events
      .filter((event) => event.type === type && (event.messageId ?? event.turnId) === messageId)
      .map((event) => event[field])
      .join('');
  const seenText = textIn('message.part.text-delta', 'delta');
  expect(seenText).toBe(isThere ? text : text.slice(0, seenText.length));
  expect(textIn('chunk', 'content')).toBe(seenText);
  const isEnded = seen.some((event) => event.type === 'message.finalize');
  const isLast = (event: Loose) =>
    event.type === 'message.updated' && dataOf(event).id === messageId;
  if (isEnded) expect(events.findLast(isLast)).toMatchObject({ data: { content: text } });
}

async function checkTurn(world: World, messageId: string): Promise<void> {
  const { rig, watchers, runners } = world;
  const { storage } = rig;
  const prompt = storage.promptInfo('messageId', messageId);
  if (!prompt) {
    // It was lost with the process, or refused: no client was shown anything of it.
    const isOf = (event: Loose) => event.turnId === messageId && event.type !== 'error';
    expect(watchers.flatMap(({ events }) => events.filter(isOf))).toEqual([]);
    return;
  }
  const messages = storage.messages();
  const stored = messages.find(({ id }) => id === messageId);
  const isWithdrawn = prompt.outcome === 'withdrawn';
  expect({
    status: prompt.status,
    hasAnswer: stored !== undefined,
    hasPrompt: messages.some(({ id }) => id === prompt.promptId),
  }).toEqual({ status: 'ended', hasAnswer: !isWithdrawn, hasPrompt: !isWithdrawn });
  const chunks = await rig.chunksOf(messageId);
  const text = textOf(stored);
  const turn = await rig.log.get(prompt.turnId);
  for (const watcher of watchers) {
    checkWatched(watcher, prompt, encodeAll(prompt, chunks), text);
  }
  if (!stored) return;
  expect(turn?.outcome?.status).toBe(prompt.outcome);
  expect(verifyChunks(chunks)).toEqual([]);
  // A stored message also tells why the turn failed.
  const { reason: _, ...metadata } = stored.metadata as Loose;
  expect({ ...toUIMessage(stored), metadata }).toEqual(foldChunks(chunks));
  const said = runners.map(({ words }) => words.get(messageId) ?? '').join('');
  // Its own words, each once and in order; all of them if the agent has ended it.
  expect(text).toBe(prompt.outcome === 'finished' ? said : said.slice(0, text.length));
}

/** No client is left with a page that waits for something. */
function checkView(watcher: Watcher): void {
  const { events } = watcher;
  const init = initOf(watcher);
  expect(init).toBeDefined();
  if (!init) return;
  const queue = events.findLast(({ type }) => type === 'queue.state');
  expect(queue ? dataOf(queue).queue : init.data.queue).toEqual([]);
  const isBusy = (event: Loose) => event.type === 'status' && 'runnerBusy' in dataOf(event);
  const ran = init.data.runnerBusy || events.some(({ type }) => type === 'message.create');
  if (ran) expect(dataOf(events.findLast(isBusy))).toEqual({ runnerBusy: false });
}

async function check(script: Move[]): Promise<void> {
  const world = createWorld();
  const { rig, watchers, prompts, runners } = world;
  const { storage } = rig;
  for (const id of ['ann', 'bob']) world.join(id);
  const isSafe = !script.some((given) => given.do === 'kill' || given.do === 'break');
  const stepMs = isSafe ? LONG_STEP_MS : SHORT_STEP_MS;
  for (const given of script) {
    // Only here: what comes in one tick is another case than what comes in two.
    if (given.do === 'settle') await settled();
    else if (given.do === 'pass') await world.pass(given.ms, stepMs);
    else world.play(given);
  }
  await world.comeToRest();
  expect(rig.session.isIdle).toBe(true);
  expect(runners.at(-1)?.isIdle).toBe(true);
  expect(storage.openPrompts()).toEqual([]);
  expect(await rig.session.openQuestions()).toEqual([]);
  const begun = runners.flatMap((runner) => runner.begun);
  expect(begun).toEqual([...new Set(begun)]);
  for (const { messageId } of prompts) await checkTurn(world, messageId);
  for (const watcher of watchers) if (isWhole(watcher)) checkView(watcher);
  if (isSafe) {
    const refused = watchers.flatMap(({ events }) => events.filter((one) => one.refused));
    expect(refused.filter((one) => one.refused === 'prompt')).toEqual([]);
    // What one client asks is answered in order.
    const asked = storage.messages().map(({ id }) => id);
    for (const watcher of watchers) {
      const own = prompts.filter(({ on }) => on === watcher).map(({ promptId }) => promptId);
      expect(asked.filter((id) => own.includes(id))).toEqual(
        own.filter((id) => asked.includes(id)),
      );
    }
  }
  await rig.close();
}

describe('a session, whatever happens in whichever order', () => {
  it('shows all clients the same, once, and comes to rest', async () => {
    await fc.assert(fc.asyncProperty(scriptOf(...MOVES), check), { numRuns: NUM_RUNS });
  });

  it('also when its process is killed in between', async () => {
    await fc.assert(fc.asyncProperty(scriptOf(...MOVES, KILL), check), { numRuns: NUM_RUNS });
  });

  it('also when its disk fails in between', async () => {
    const script = scriptOf(...MOVES, KILL, ...BREAK);
    await fc.assert(fc.asyncProperty(script, check), { numRuns: NUM_RUNS });
  });
});
