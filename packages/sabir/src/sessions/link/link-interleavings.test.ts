import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Chunk } from '../../core/chunks.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import type { Socket, SocketListener } from '../../sources/agent-ops/socket.ts';
import type { Agent } from '../../turns/agent.ts';
import type { Answer } from '../../turns/log.ts';
import { readWritten } from '../../turns/read-written.ts';
import type { Prompt, TurnSink, UpstreamTurn } from '../../turns/upstream.ts';
import { memorySessionStore } from '../memory-store.ts';
import type { SocketEvents } from '../options.ts';
import { createSessions } from '../sessions.ts';
import { LinkedSession } from './linked-session.ts';
import { SessionLinks } from './session-links.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 200);
const CHANNEL = { channelType: 'web', channelId: 'default' };
/** A gateway gives up after so many drops in a row, which another test checks. */
const MOST_TROUBLE = 10;

type Doing = 'text' | 'question' | 'end';
type Move =
  | { do: 'prompt' | 'arrive' | 'refuse'; link: number }
  | { do: 'stop' | 'release'; which: number }
  | { do: 'answer' | 'settle' }
  | { do: 'flow' }
  | { do: 'cut'; link: number; arrives: boolean }
  | { do: 'die'; link: number; arrives: boolean; unwritten: number }
  | { do: 'retake'; which: number; unwritten: number }
  | { do: 'up' | 'down'; link: number; most: number }
  | { do: 'pass'; ms: number }
  | { do: 'work'; doing: Doing };

const link = fc.nat({ max: 1 });
const which = fc.nat({ max: 5 });
const unwritten = fc.nat({ max: 4 });
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
    move(6, ['die'], { link, arrives: fc.boolean(), unwritten }),
    move(3, ['retake'], { which, unwritten }),
    move(3, ['refuse'], { link }),
    move(26, ['up', 'down'], { link, most: fc.constantFrom(1, 3, 100) }),
    move(12, ['pass'], { ms: fc.constantFrom(60, 200, 1_000) }),
    move(24, ['work'], {
      doing: fc.constantFrom<Doing>('text', 'text', 'text', 'question', 'end'),
    }),
    move(16, ['settle']),
    move(16, ['flow']),
  ),
  { minLength: 60, maxLength: 160, size: 'max' },
);

/** An agent that does what the test has it do, step by step. */
function createSteppedAgent() {
  type Run = { text: string; steps: Doing[]; wake(): void; questionId?: string };
  const begun: string[] = [];
  let current: Run | undefined;
  const agent: Agent = {
    name: 'stepped',
    async *prompt({ text, signal, ask }) {
      const run: Run = { text, steps: [], wake: () => undefined };
      begun.push(text);
      current = run;
      signal.addEventListener('abort', () => run.wake());
      try {
        for (let n = 1; !signal.aborted; n++) {
          const doing = run.steps.shift();
          if (doing === 'end') return;
          if (doing === 'text') yield { type: 'text-delta', delta: `${text}:${n} ` };
          else if (doing === 'question') {
            // Counted from one in every turn, as some agents do.
            run.questionId = `q${n}`;
            const reply = await ask({ questionId: run.questionId, text: 'Deploy?' });
            delete run.questionId;
            yield { type: 'text-delta', delta: JSON.stringify(reply) };
          } else {
            await new Promise<void>((resolve) => {
              run.wake = resolve;
            });
          }
        }
      } finally {
        if (current === run) current = undefined;
      }
    },
  };
  return {
    agent,
    /** What it was asked, in order. */
    begun,
    get asking() {
      const { questionId, text } = current ?? {};
      return questionId === undefined ? undefined : { questionId, text };
    },
    get text() {
      return current?.text;
    },
    work(doing: Doing): void {
      if (!current || current.questionId !== undefined) return;
      current.steps.push(doing);
      current.wake();
    },
  };
}

/** A connection that delivers step by step, both ways, and loses what is in it when it is cut. */
type Pipe = { up(most: number): void; down(most: number): void; cut(arrives: boolean): void };

function createLink(links: SessionLinks, user: string) {
  let pipe: Pipe;
  const wire = { refusals: 0, trouble: 0 };
  /** Connections that are being made. */
  const arriving: (() => void)[] = [];

  function connect(listener: SocketListener): Socket {
    const toGateway: string[] = [];
    const toServer: string[] = [];
    let isOpen = true;
    const hangUp = () => {
      isOpen = false;
      server.close();
    };
    const server: SocketEvents = links.connect(
      { send: (frame) => void toGateway.push(frame), close: () => undefined },
      { user: { id: user }, role: 'collaborator' },
    );
    // As it is on a socket: a connection counts as open when the `init` has come.
    listener.event(JSON.parse(toGateway.shift() as string));
    pipe = {
      up(most) {
        for (let n = 0; n < most && isOpen && toServer.length > 0; n++) {
          server.message(toServer.shift() as string);
        }
      },
      down(most) {
        for (let n = 0; n < most && isOpen && toGateway.length > 0; n++) {
          listener.event(JSON.parse(toGateway.shift() as string));
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
    pingMs: 1e6,
    returnMs: 20_000,
    giveUpMs: 60_000,
    historyMs: 1_000,
    connect: async (listener) => {
      if (wire.refusals-- > 0) throw new Error('The server is away.');
      // Much can happen while it connects.
      await new Promise<void>((resolve) => void arriving.push(resolve));
      return connect(listener);
    },
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
    /** The server cannot be reached the next time. */
    refuse: () =>
      endure(() => {
        wire.refusals = Math.max(0, wire.refusals) + 1;
      }),
    heal() {
      wire.refusals = 0;
    },
  };
}

type Asked = {
  prompt: Prompt;
  link: number;
  turn: UpstreamTurn;
  /** The gateways' log of the turn, and how the sink was closed. */
  written: { chunks: Chunk[]; mark: number; closed: TurnOutcome[] };
  answers: Answer[];
  isStopped: boolean;
  isReleased: boolean;
};

function createWorld() {
  const led = createSteppedAgent();
  const sessions = createSessions({ store: memorySessionStore(), agent: () => led.agent });
  const { session } = sessions.hold('s');
  const server = new SessionLinks(session);
  const users = ['ann', 'bob'];
  const links = users.map((user) => createLink(server, user));
  const asked: Asked[] = [];
  const answered = new Set<string>();
  const dead = new Set<LinkedSession>();

  /** One that had nothing left to do is gone after a drop, and the next prompt opens another. */
  function linkAt(index: number): (typeof links)[number] {
    const known = links[index] as (typeof links)[number];
    if (!known.session.isClosed) return known;
    links[index] = createLink(server, users[index] as string);
    return links[index];
  }

  function ask(at: LinkedSession, index: number): void {
    const n = asked.length + 1;
    const prompt: Prompt = {
      sessionId: 's',
      chatId: 'c',
      chatKey: 'k',
      turnId: `t${n}`,
      messageId: `m${n}`,
      user: { id: 'x' },
      text: `Hi ${n}`,
      attachments: [],
      messages: [],
      body: {},
    };
    const written: Asked['written'] = { chunks: [], mark: 0, closed: [] };
    const turn = listen(written, at, (sink) => at.prompt(prompt, sink));
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

  function listen(
    written: Asked['written'],
    at: LinkedSession,
    begin: (sink: TurnSink) => UpstreamTurn,
  ): UpstreamTurn {
    const turn = begin({
      event(event) {
        written.chunks.push(...turn.translator.push(event));
        written.mark = turn.position ?? 0;
      },
      close: (outcome) => {
        // A process that has ended writes nothing.
        if (!dead.has(at)) written.closed.push(outcome);
      },
    });
    return turn;
  }

  /** Another process goes on with its turns, and repeats the answers and stops that they were given. */
  function succeed(index: number, arrives: boolean, unwritten: number): void {
    const open = asked.filter((one) => one.link === index && !isDone(one));
    const dying = linkAt(index);
    dead.add(dying.session);
    dying.die(arrives);
    const { session: next } = linkAt(index);
    for (const one of open) takeOver(one, next, unwritten);
  }

  /** The log has all but the last chunks that came. */
  function takeOver(one: Asked, next: LinkedSession, unwritten: number): void {
    const { prompt } = one;
    const chunks = one.written.chunks.slice(0, Math.max(0, one.written.chunks.length - unwritten));
    const written: Asked['written'] = { chunks, mark: chunks.length, closed: [] };
    const before = { chunks: [...chunks], mark: chunks.length };
    one.written = written;
    one.turn = listen(written, next, (sink) => next.attach(prompt, sink, before));
    for (const answer of one.answers) one.turn.answer(answer);
    if (one.isStopped) one.turn.stop();
    if (one.isReleased) one.turn.release();
  }

  /** A process that slept past its lease takes its own turn over, on the connection that it has. */
  function retake(one: Asked, unwritten: number): void {
    const { session: at } = links[one.link] as (typeof links)[number];
    if (!at.isClosed && !isOver(one)) takeOver(one, at, unwritten);
  }

  const askedAs = (text: string | undefined) => asked.find(({ prompt }) => prompt.text === text);

  /** Each question is answered once: the link has to see that the answer arrives. */
  function answer(): void {
    const { questionId, text } = led.asking ?? {};
    const one = askedAs(text);
    // The gateway knows a question when it has its chunk.
    const isKnown = one && JSON.stringify(one.written.chunks).includes(`"${questionId}"`);
    const key = `${text} ${questionId}`;
    if (!isKnown || questionId === undefined || answered.has(key)) return;
    answered.add(key);
    const given: Answer = { type: 'answer', questionId, answer: `To ${text}` };
    one.answers.push(given);
    one.turn.answer(given);
  }

  const isDone = ({ turn, written }: Asked) => turn.translator.ended || written.closed.length > 0;
  const isOver = (one: Asked) => isDone(one) || one.isReleased;

  function play(given: Exclude<Move, { do: 'settle' | 'pass' | 'flow' }>): void {
    if (given.do === 'answer') answer();
    else if (given.do === 'work') led.work(given.doing);
    else if ('which' in given) {
      const one = asked.at(-1 - given.which);
      if (!one || isOver(one)) return;
      if (given.do === 'retake') {
        retake(one, given.unwritten);
        return;
      }
      // A gateway stops every turn that it leaves.
      one.isStopped = true;
      one.turn.stop();
      if (given.do === 'release') {
        one.isReleased = true;
        one.turn.release();
      }
    } else if ('link' in given) {
      const at = linkAt(given.link);
      if (given.do === 'prompt') ask(at.session, given.link);
      else if (given.do === 'die') succeed(given.link, given.arrives, given.unwritten);
      else if (given.do === 'arrive') at.arrive();
      else if (given.do === 'refuse') at.refuse();
      else if (given.do === 'cut') at.cut(given.arrives);
      else if ('most' in given) at[given.do](given.most);
    }
  }

  /** The network heals, people answer, and the agent does what it is asked. */
  async function comeToRest(): Promise<void> {
    for (const one of links) one.heal();
    const isBusy = () => links.some((one) => one.session.isBusy);
    for (let n = 0; n < 200 && !(asked.every(isOver) && session.isIdle && !isBusy()); n++) {
      for (const one of links) one.arrive();
      for (const one of links) one.up(100);
      answer();
      // A turn that is to stop goes on until the stop arrives.
      const isWanted = !askedAs(led.text)?.isStopped;
      led.work(n % 3 === 0 && isWanted ? 'end' : 'text');
      await settled();
      if (n % 5 === 0) await vi.advanceTimersByTimeAsync(500);
      for (const one of links) one.down(100);
    }
  }

  /** Everything that is on its way arrives. */
  async function flow(): Promise<void> {
    for (const one of links) one.up(100);
    await settled();
    for (const one of links) one.down(100);
  }

  const close = () => links.forEach((one) => void one.session.close());
  return { sessions, session, led, links, asked, play, flow, comeToRest, close };
}

type World = ReturnType<typeof createWorld>;

/** What a session does in one tick takes several turns of the event loop. */
async function settled(): Promise<void> {
  for (let n = 0; n < 4; n++) await new Promise<void>((resolve) => setImmediate(resolve));
}

async function checkTurn({ session }: World, one: Asked): Promise<void> {
  const { prompt, written, isStopped, isReleased } = one;
  const { turnId } = prompt;
  const known = session.storage.promptInfo('turnId', turnId);
  // A prompt that was stopped before it reached the server is not asked.
  if (isStopped && !known) return;
  expect(known?.status).toBe('ended');
  if (!isStopped) expect(known?.outcome).toBe('finished');
  if (isReleased) return;
  const isWithdrawn = known?.outcome === 'withdrawn';
  expect(written).toEqual({
    chunks: isWithdrawn ? [] : await readWritten(session.log, turnId, 0),
    mark: written.chunks.length,
    closed: isWithdrawn ? [{ status: 'stopped', reason: 'withdrawn' }] : [],
  });
  for (const { answer } of one.answers) {
    expect(JSON.stringify(written.chunks)).not.toMatch(
      new RegExp(`To Hi (?!${prompt.text.slice(3)}\\b)`),
    );
    expect(answer).toBe(`To ${prompt.text}`);
  }
}

async function play(script: Move[]): Promise<World> {
  const world = createWorld();
  for (const given of script) {
    // Only here: what comes in one tick is another case than what comes in two.
    if (given.do === 'settle') await settled();
    else if (given.do === 'flow') await world.flow();
    else if (given.do === 'pass') await vi.advanceTimersByTimeAsync(given.ms);
    else world.play(given);
  }
  return world;
}

describe('a gateway’s link to a session server, however often it is cut', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] });
    // The jitter of the retries would not repeat.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it('replicates the log of every turn chunk for chunk, and asks no prompt twice', async () => {
    await fc.assert(
      fc.asyncProperty(SCRIPT, async (script) => {
        const world = await play(script);
        await world.comeToRest();
        expect(world.session.isIdle).toBe(true);
        expect(world.links.map(({ session }) => session.isBusy)).toEqual([false, false]);
        expect(world.led.begun).toEqual([...new Set(world.led.begun)]);
        for (const one of world.asked) await checkTurn(world, one);
        world.close();
        await world.sessions.log.close();
      }),
      { numRuns: NUM_RUNS },
    );
  });

  it('leaves nothing behind, whenever it is closed', async () => {
    await fc.assert(
      fc.asyncProperty(SCRIPT, async (script) => {
        const world = await play(script);
        world.close();
        // A connection that was on its way is not kept either.
        for (const one of world.links) one.arrive();
        await settled();
        expect(world.session.people.size).toBe(0);
        await Promise.all([world.sessions.close(0), vi.advanceTimersByTimeAsync(1_000)]);
        await world.sessions.log.close();
        await settled();
        expect(vi.getTimerCount()).toBe(0);
      }),
      { numRuns: Math.ceil(NUM_RUNS / 4) },
    );
  });
});
