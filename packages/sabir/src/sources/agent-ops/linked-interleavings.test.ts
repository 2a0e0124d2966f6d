import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createModelRunner, type Doing } from '../../../test/session-model-runner.ts';
import { createSessionRig, settled } from '../../../test/session-rig.ts';
import { takeOver } from '../../../test/upstream-turn.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { SocketEvents } from '../../sessions/index.ts';
import type { Answer } from '../../turns/log.ts';
import type { Prompt, TurnSink, UpstreamTurn } from '../../turns/upstream.ts';
import { LinkedSession } from './linked-session.ts';
import type { Socket, SocketListener } from './socket.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 200);
const CHANNEL = { channelType: 'web', channelId: 'default' };
/** A link gives up after so many in a row, which is another test's business. */
const MOST_TROUBLE = 10;

type Move =
  | { do: 'prompt'; link: number }
  | { do: 'arrive'; link: number }
  | { do: 'refuse'; link: number }
  | { do: 'stop' | 'release'; which: number }
  | { do: 'answer' }
  | { do: 'settle' }
  | { do: 'cut'; link: number; arrives: boolean }
  | { do: 'die'; link: number; arrives: boolean }
  | { do: 'up' | 'down'; link: number; most: number }
  | { do: 'pass'; ms: number }
  | { do: 'work'; doing: Doing };

const link = fc.nat({ max: 1 });
const which = fc.nat({ max: 5 });
const move = <Kind extends Move['do']>(
  weight: number,
  kinds: Kind[],
  fields: Record<string, fc.Arbitrary<unknown>> = {},
) => ({
  weight,
  arbitrary: fc.record({ do: fc.constantFrom(...kinds), ...fields }) as fc.Arbitrary<Move>,
});

const SCRIPT = fc.array(
  fc.oneof(
    move(12, ['prompt'], { link }),
    move(10, ['arrive'], { link }),
    move(5, ['stop'], { which }),
    move(2, ['release'], { which }),
    move(8, ['answer']),
    move(8, ['cut'], { link, arrives: fc.boolean() }),
    move(6, ['die'], { link, arrives: fc.boolean() }),
    move(3, ['refuse'], { link }),
    move(26, ['up', 'down'], { link, most: fc.constantFrom(1, 3, 100) }),
    move(12, ['pass'], { ms: fc.constantFrom(60, 200, 1_000) }),
    move(20, ['work'], {
      doing: fc.constantFrom<Doing>('text', 'text', 'text', 'question', 'end'),
    }),
    move(20, ['settle']),
  ),
  { minLength: 40, maxLength: 110, size: 'max' },
);

/** A connection that delivers step by step, both ways, and loses what is in it when it is cut. */
type Pipe = {
  up(most: number): void;
  down(most: number): void;
  cut(arrives: boolean): void;
};

function createLink(rig: ReturnType<typeof createSessionRig>, user: string) {
  let pipe: Pipe;
  const wire = { refusals: 0, trouble: 0 };
  /** Connections that are being made. */
  const arriving: (() => void)[] = [];

  function connect(listener: SocketListener): Socket {
    const toClient: string[] = [];
    const toServer: string[] = [];
    let isOpen = true;
    const hangUp = () => {
      isOpen = false;
      server.close();
    };
    const server: SocketEvents = rig.agent.connectClient(
      { send: (frame) => void toClient.push(frame), close: () => undefined },
      { user: { id: user }, role: 'collaborator', hasSnapshots: false, messages: 0 },
    );
    // As it is on a socket: whoever connects has heard the `init`.
    listener.event(JSON.parse(toClient.shift() as string));
    pipe = {
      up(most) {
        for (let n = 0; n < most && isOpen && toServer.length > 0; n++) {
          server.message(toServer.shift() as string);
        }
      },
      down(most) {
        for (let n = 0; n < most && isOpen && toClient.length > 0; n++) {
          listener.event(JSON.parse(toClient.shift() as string));
        }
      },
      cut(arrives) {
        if (!isOpen) return;
        if (arrives) pipe.up(Number.POSITIVE_INFINITY);
        hangUp();
        listener.drop('The connection was cut.');
      },
    };
    return {
      get isOpen() {
        return isOpen;
      },
      send: (message) => {
        if (isOpen) toServer.push(typeof message === 'string' ? message : JSON.stringify(message));
      },
      close: () => {
        if (isOpen) hangUp();
      },
    };
  }

  const session = new LinkedSession({
    channel: CHANNEL,
    approvals: false,
    pingMs: 1e6,
    returnMs: 20_000,
    connect: async (listener) => {
      if (wire.refusals-- > 0) throw new Error('The server is away.');
      // It takes a while, and much can happen in it.
      await new Promise<void>((resolve) => void arriving.push(resolve));
      return connect(listener);
    },
    history: async () => [],
  });
  session.connected(connect(session));

  const endure = (run: () => void) => {
    if (wire.trouble++ < MOST_TROUBLE) run();
  };
  return {
    session,
    arrive() {
      for (const open of arriving.splice(0)) open();
    },
    up: (most: number) => pipe.up(most),
    down: (most: number) => pipe.down(most),
    cut: (arrives: boolean) => endure(() => pipe.cut(arrives)),
    /** Its process ends. */
    die(arrives: boolean): void {
      if (arrives) pipe.up(Number.POSITIVE_INFINITY);
      session.close();
    },
    /** It cannot be reached the next time. */
    refuse: () =>
      endure(() => {
        wire.refusals = Math.max(0, wire.refusals) + 1;
      }),
    heal() {
      wire.refusals = 0;
    },
  };
}

/** The log of a turn: what was written, up to and with the event at `mark`. */
type Written = { chunks: Chunk[]; mark: number; closed: TurnOutcome[] };
type Asked = {
  prompt: Prompt;
  link: number;
  turn: UpstreamTurn;
  written: Written;
  answers: Answer[];
  isStopped: boolean;
  isReleased: boolean;
};

function createWorld() {
  const rig = createSessionRig();
  const runner = createModelRunner(rig, 'r1');
  runner.connect();
  const users = ['ann', 'bob'];
  const links = users.map((user) => createLink(rig, user));
  const asked: Asked[] = [];
  const answered = new Set<string>();
  const dead = new Set<LinkedSession>();

  /** One that had nothing left to do is gone after a drop, and the next prompt opens another. */
  function linkAt(index: number): (typeof links)[number] {
    const known = links[index] as (typeof links)[number];
    if (!known.session.isClosed) return known;
    links[index] = createLink(rig, users[index] as string);
    return links[index];
  }

  function ask({ session }: (typeof links)[number], index: number): void {
    const n = asked.length + 1;
    const prompt: Prompt = {
      sessionId: 's',
      chatId: 'c',
      chatKey: 'k',
      turnId: `p${n}`,
      messageId: `t${n}`,
      user: { id: 'x' },
      text: `Hi ${n}`,
      attachments: [],
      messages: [],
      body: {},
    };
    const written: Written = { chunks: [], mark: 0, closed: [] };
    const turn = listen(written, session, (sink) => session.prompt(prompt, sink));
    asked.push({
      prompt,
      link: index,
      turn,
      written,
      answers: [],
      isStopped: false,
      isReleased: false,
    });
  }

  /** Writes what is told, but for what was written before. */
  function listen(
    written: Written,
    session: LinkedSession,
    begin: (sink: TurnSink) => UpstreamTurn,
  ): UpstreamTurn {
    const { mark } = written;
    let before = 0;
    const turn = begin({
      event(event) {
        const { position = 0, translator } = turn;
        const hasPlace = position > before;
        before = position;
        const told = { event, position, hasPlace, chunks: translator.push(event) };
        written.chunks = takeOver(written.chunks, mark, [told]);
        written.mark = Math.max(position, mark);
      },
      close: (outcome) => {
        // A process that has ended writes nothing.
        if (!dead.has(session)) written.closed.push(outcome);
      },
    });
    return turn;
  }

  /** Another process goes on with its turns, and says again what their people have said. */
  function succeed(index: number, arrives: boolean): void {
    const open = asked.filter((one) => one.link === index && !isDone(one));
    const dying = linkAt(index);
    dead.add(dying.session);
    dying.die(arrives);
    const { session } = linkAt(index);
    for (const one of open) {
      one.turn = listen(one.written, session, (sink) => session.attach(one.prompt, sink));
      for (const answer of one.answers) one.turn.answer(answer);
      if (one.isStopped) one.turn.stop();
      if (one.isReleased) one.turn.release();
    }
  }

  function askedIn(turnId: string | undefined): Asked | undefined {
    const turn = turnId === undefined ? undefined : rig.storage.turn(turnId);
    return asked.find(({ prompt }) => prompt.turnId === turn?.promptId);
  }

  /** People answer once: it is for the link to see that it arrives. */
  function answer(): void {
    for (const { turnId, questionId } of rig.storage.openQuestions()) {
      if (answered.has(questionId)) continue;
      answered.add(questionId);
      const one = askedIn(turnId);
      const given: Answer = { type: 'answer', questionId, answer: 'Yes' };
      one?.answers.push(given);
      one?.turn.answer(given);
    }
  }

  const isDone = ({ turn, written }: Asked) => turn.translator.ended || written.closed.length > 0;
  const isOver = (one: Asked) => isDone(one) || one.isReleased;

  function play(given: Exclude<Move, { do: 'settle' | 'pass' }>): void {
    if (given.do === 'answer') answer();
    else if (given.do === 'work') {
      runner.hear();
      runner.work(given.doing);
    } else if ('which' in given) {
      const one = asked.at(-1 - given.which);
      if (!one || isOver(one)) return;
      // Nobody leaves a turn that goes on: a gateway stops what it lets go of.
      one.isStopped = true;
      one.turn.stop();
      if (given.do === 'release') {
        one.isReleased = true;
        one.turn.release();
      }
    } else {
      const at = linkAt(given.link);
      if (given.do === 'prompt') ask(at, given.link);
      else if (given.do === 'die') succeed(given.link, given.arrives);
      else if (given.do === 'arrive') at.arrive();
      else if (given.do === 'refuse') at.refuse();
      else if (given.do === 'cut') at.cut(given.arrives);
      else at[given.do](given.most);
    }
  }

  /** The network heals, people answer, and the agent does what it is asked. */
  async function comeToRest(): Promise<void> {
    for (const one of links) one.heal();
    const isBusy = () => links.some(({ session }) => session.isBusy);
    for (let n = 0; n < 200 && !(asked.every(isOver) && rig.agent.isIdle && !isBusy()); n++) {
      for (const one of links) one.arrive();
      for (const one of links) one.up(100);
      runner.hear();
      answer();
      // What somebody wants to stop goes on until its agent hears of it.
      const isWanted = !askedIn(runner.turnId)?.isStopped;
      runner.work(n % 3 === 0 && isWanted ? 'end' : 'text');
      await settled();
      if (n % 5 === 0) await vi.advanceTimersByTimeAsync(500);
      for (const one of links) one.down(100);
    }
  }

  const close = () => links.forEach(({ session }) => void session.close());
  return { rig, runner, links, asked, play, comeToRest, close };
}

const OUTCOMES: Record<string, string> = {
  end_turn: 'finished',
  canceled: 'stopped',
  withdrawn: 'stopped',
};

function checkTurn({ rig }: ReturnType<typeof createWorld>, one: Asked): void {
  const { prompt, written, isStopped, isReleased } = one;
  const { chunks, closed } = written;
  const turn = rig.storage.turnOfPrompt(prompt.turnId);
  // A prompt that was let go before it reached the server was never asked.
  if (isReleased && !turn) return;
  expect(turn?.status).toBe('ended');
  if (!isStopped) expect(turn?.reason).toBe('end_turn');
  if (isReleased) return;
  const { parts, metadata } = foldChunks(chunks);
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  expect({
    text,
    closed,
    violations: verifyChunks(chunks),
    outcome: Object(metadata).outcome,
  }).toEqual({
    text: rig.storage.messages().find(({ id }) => id === turn?.turnId)?.content ?? '',
    closed: [],
    violations: [],
    outcome: OUTCOMES[turn?.reason as string],
  });
}

async function play(script: Move[]) {
  const world = createWorld();
  for (const given of script) {
    // Only here: what comes in one tick is another case than what comes in two.
    if (given.do === 'settle') await settled();
    else if (given.do === 'pass') await vi.advanceTimersByTimeAsync(given.ms);
    else world.play(given);
  }
  return world;
}

describe('a link to a session server, however often it is cut', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] });
    // How long it waits before it connects again is a matter of chance, and would not repeat.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it('loses nothing, doubles nothing, and asks nothing twice', async () => {
    await fc.assert(
      fc.asyncProperty(SCRIPT, async (script) => {
        const world = await play(script);
        await world.comeToRest();
        expect(world.rig.agent.isIdle).toBe(true);
        expect(world.links.map(({ session }) => session.isBusy)).toEqual([false, false]);
        expect(world.runner.begun).toEqual([...new Set(world.runner.begun)]);
        for (const one of world.asked) checkTurn(world, one);
        world.close();
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('leaves nothing behind, whenever it is closed', async () => {
    await fc.assert(
      fc.asyncProperty(SCRIPT, async (script) => {
        const world = await play(script);
        world.close();
        expect(vi.getTimerCount()).toBe(0);
        // A connection that was on its way is not kept either.
        for (const one of world.links) one.arrive();
        await settled();
        expect([vi.getTimerCount(), world.rig.agent.clientCount]).toEqual([0, 0]);
      }),
      { numRuns: Math.ceil(NUM_RUNS / 4) },
    );
  });
});
