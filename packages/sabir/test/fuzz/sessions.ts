/** Both sides of a session: what people, runners and gateways send to it, and what it sends to runners. */
import type { Chunk } from '../../src/core/chunks.ts';
import type { Loose } from '../../src/core/loose.ts';
import {
  type AgentPrompt,
  createSessions,
  memorySessionStore,
  Runner,
  type Session,
  SessionLinks,
} from '../../src/sessions/index.ts';
import { readLinkRequest } from '../../src/sessions/link/protocol.ts';
import { parseFrame } from '../../src/sessions/parse-frame.ts';
import { readRunnerFrame } from '../../src/sessions/runner-protocol.ts';
import { createAgentOpsTranslator } from '../../src/sources/agent-ops/translate.ts';
import { approveCalls } from '../../src/sources/ai-sdk/approve-calls.ts';
import { readWritten } from '../../src/turns/read-written.ts';
import { readClientMessage } from '../../src/wires/agent-ops/read-client-message.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { createSessionRig, settled, type TestSocket } from '../session-rig.ts';
import { chunkTurns, clientMessages, linkRequests, runnerEvents, runnerFrames } from './corpus.ts';
import { toFrameBytes } from './mutate-bytes.ts';
import { mutateSequence, mutateValue } from './mutate-json.ts';
import type { Random } from './random.ts';
import { checkSame, checkTurn, InvalidOutput, type Target, withinTime } from './target.ts';

const decoder = new TextDecoder();
const toText = (value: unknown, random: Random) =>
  decoder.decode(toFrameBytes(value, random).bytes);

/** Something that reads one frame at a time: true where it is taken. */
function readerTarget(
  name: string,
  corpus: () => { sequences: unknown[][]; words: string[] },
  isTaken: (frame: string) => boolean,
): Target {
  return {
    name,
    play(random) {
      const { sequences, words } = corpus();
      const given = random.pick(sequences);
      const mutation = { random, words };
      const { frames, malformed } = mutateSequence(given, random.pick(sequences), mutation);
      const out = frames.filter((frame) => isTaken(toText(frame, random))).length;
      const refused = frames.length - out;
      return { malformed, sound: Math.max(0, frames.length - malformed), refused, out };
    },
  };
}

/** As a session reads it: what is no JSON is refused. */
function parsed(frame: string): unknown {
  try {
    return parseFrame(frame);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const fromClients = readerTarget('client messages', clientMessages, (frame) => {
  const read = readClientMessage(frame);
  if (!read.problem && typeof read.message.type !== 'string') throw new InvalidOutput('no type');
  return !read.problem;
});
const fromRunners = readerTarget(
  'runner frames',
  runnerFrames,
  (frame) => readRunnerFrame(parsed(frame)) !== undefined,
);
const fromGateways = readerTarget(
  'gateway requests',
  linkRequests,
  (frame) => readLinkRequest(parsed(frame)) !== undefined,
);

/** Mostly of the turn that runs, so that it is more than skipped. */
function aimed(frame: unknown, turnId: unknown, random: Random): unknown {
  const isNamed = typeof frame === 'object' && frame !== null && 'turnId' in frame;
  return isNamed && turnId !== undefined && random.chance(0.85) ? { ...frame, turnId } : frame;
}

/** Every turn that a V2 client was sent, as a gateway of V2 would translate it. */
function translateAll(client: TestSocket, random: Random): number {
  const turns = new Set(client.events.map(({ turnId }) => turnId));
  let out = 0;
  for (const turnId of turns) {
    if (typeof turnId !== 'string') continue;
    const translator = createAgentOpsTranslator({
      turnId,
      messageId: 'm',
      approvals: random.chance(0.5),
    });
    const chunks: Chunk[] = client.events.flatMap((event) => translator.push(event));
    chunks.push(...translator.end());
    checkTurn(chunks, random);
    out += chunks.length;
  }
  return out;
}

/** What the log has of each turn that has ended. */
async function checkLogs(session: Session, turnIds: Iterable<string>, random: Random) {
  let out = 0;
  for (const turnId of turnIds) {
    const turn = await session.log.get(turnId);
    if (!turn?.outcome) continue;
    const chunks = await readWritten(session.log, turnId, turn.lastSeq);
    checkTurn(chunks, random);
    out += chunks.length;
  }
  return out;
}

/** A turn that was refused for its size is logged as an error of the operator's. */
const isExpected = (problem: string) =>
  /^the turn ended: (turn-too-large|session-full)/.test(problem);

const session: Target = {
  name: 'session',
  weight: 2,
  async play(random) {
    const problems: string[] = [];
    const rig = createSessionRig({
      limits: random.chance(0.2) ? { turnBytes: 2_000, eventBytes: 1_000, queuedPrompts: 2 } : {},
      logger: {
        warn: () => undefined,
        error: (message, details) => void problems.push(`${message} ${JSON.stringify(details)}`),
      },
    });
    const clients = [
      rig.client('ann'),
      rig.client('ben', { hasSnapshots: false }),
      rig.client('vic', { role: 'viewer', channel: { channelType: 'web', channelId: 'default' } }),
    ];
    const isOurs = random.chance(0.7);
    const connectRunner = (): TestSocket => (isOurs ? rig.runner() : rig.foreignRunner());
    let runner = connectRunner();
    const said = clientMessages();
    const done = isOurs ? runnerFrames() : runnerEvents();
    const mutate = ({ sequences, words }: typeof said) =>
      mutateSequence(random.pick(sequences), random.pick(sequences), { random, words });
    const [fromPeople, fromAgent] = [mutate(said), mutate(done)];
    clients[0]?.say({ type: 'prompt', content: 'Hello', promptId: 'p0' });
    await settled();
    const total = fromPeople.frames.length + fromAgent.frames.length;
    while (fromPeople.frames.length + fromAgent.frames.length > 0) {
      if (random.chance(fromPeople.frames.length / (total + 1))) {
        random.pick(clients).say(toText(fromPeople.frames.shift(), random));
      } else if (fromAgent.frames.length > 0) {
        const { turnId, prompt } = (runner.last('prompt') ?? {}) as Loose;
        const running = turnId ?? (prompt as Loose | undefined)?.turnId;
        runner.say(toText(aimed(fromAgent.frames.shift(), running, random), random));
      }
      if (random.chance(0.02)) rig.clock.pass(random.pick([1, 1_000, 60_000]));
      if (random.chance(0.02)) {
        runner.drop();
        runner = connectRunner();
      }
      if (random.chance(0.05)) await settled();
    }
    await settled();
    rig.clock.pass(10 * 60_000);
    await settled();
    // A client that comes afterwards is sent a history that can be read.
    clients.push(rig.client('late'));
    await settled();
    const turnIds = rig.storage.messages().flatMap(({ promptId }) => {
      const prompt = promptId && rig.storage.promptInfo('promptId', promptId);
      return prompt ? [prompt.turnId] : [];
    });
    let out = await checkLogs(rig.session, turnIds, random);
    await withinTime(rig.close(), 'the session');
    const unexpected = problems.filter((problem) => !isExpected(problem));
    if (unexpected.length > 0) throw new InvalidOutput(unexpected.join('\n'));
    out += clients.reduce((sum, client) => sum + translateAll(client, random), 0);
    const malformed = fromPeople.malformed + fromAgent.malformed;
    const refused = clients.flatMap((client) => client.of('error')).length;
    return { malformed, sound: Math.max(0, total - malformed), refused, out };
  },
};

const links: Target = {
  name: 'session links',
  async play(random) {
    const sessions = createSessions({
      store: memorySessionStore(),
      agent: () => scriptedAgent(),
      timing: { stopMs: 50 },
      ...(random.chance(0.2) && { limits: { queuedPrompts: 2, promptBytes: 2_000 } }),
    });
    const { session: linked } = sessions.hold('s');
    const doors = new SessionLinks(linked);
    const sent: Loose[] = [];
    const send = (frame: string) => void sent.push(JSON.parse(frame));
    const socket = { send, close: () => undefined };
    const user = { id: 'ann' };
    let link = doors.connect(socket, { user, role: 'collaborator' });
    const { sequences, words } = linkRequests();
    const mutation = { random, words };
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), mutation);
    for (const frame of frames) {
      link.message(toText(frame, random));
      if (random.chance(0.2)) await settled();
      if (random.chance(0.02)) {
        link.close();
        link = doors.connect(socket, { user, role: random.pick(['viewer', 'collaborator']) });
      }
    }
    await settled();
    doors.close();
    await withinTime(sessions.close(0), 'the sessions');
    const turnIds = new Set(
      sent.flatMap(({ turnId }) => (typeof turnId === 'string' ? turnId : [])),
    );
    for (const { type, turnId, seq, chunks } of sent) {
      if (type !== 'chunks') continue;
      const log = await readWritten(linked.log, turnId as string, 0);
      const from = (seq as number) - (chunks as Chunk[]).length;
      const logged: unknown = JSON.parse(JSON.stringify(log.slice(from, seq as number)));
      checkSame(chunks, logged, 'chunks that are not the log’s');
    }
    const out = (await checkLogs(linked, turnIds, random)) + sent.length;
    await linked.log.close();
    const refused = sent.filter(({ type }) => type === 'refused').length;
    return { malformed, sound: Math.max(0, frames.length - malformed), refused, out };
  },
};

const promptOf = (turnId: string, text: string) => ({
  sessionId: 's',
  chatId: 'c',
  chatKey: 'k',
  turnId,
  messageId: `m-${turnId}`,
  promptId: `p-${turnId}`,
  user: { id: 'ann', name: 'Ann' },
  text,
  attachments: [{ url: 'data:,x', mediaType: 'text/plain', filename: 'x.txt' }],
  messages: [{ id: 'u0', role: 'user', parts: [{ type: 'text', text: 'Before' }] }],
  body: { model: 'm' },
  channel: { channelType: 'web', channelId: 'default' },
});

const COMMANDS: readonly unknown[] = [
  { type: 'init', session: { id: 's' }, protocol: { name: 'sabir-runner', version: 1 } },
  { type: 'prompt', prompt: promptOf('t1', 'question now'), questionMs: 1_000 },
  { type: 'ack', turnId: 't1', seq: 1 },
  { type: 'steer', turnId: 't1', message: { id: 'm1', text: 'More', attachments: [] } },
  { type: 'answer', turnId: 't1', questionId: 'q1', answer: 'Yes' },
  { type: 'prompt', prompt: promptOf('t2', 'everything'), questionMs: 1_000 },
  { type: 'stop', turnId: 't2' },
  { type: 'prompt', prompt: promptOf('t3', 'tool'), questionMs: 1_000 },
  { type: 'expire', turnId: 't3', questionId: 'q1' },
  { type: 'pong' },
];
const COMMAND_WORDS = [
  'init',
  'prompt',
  'ack',
  'stop',
  'answer',
  'steer',
  't1',
  't2',
  'q1',
  'fail',
];

const runner: Target = {
  name: 'runner',
  async play(random) {
    const given = new Runner({
      sessionId: 's',
      url: 'ws://nowhere.test',
      agent: scriptedAgent(),
      stopMs: 50,
      maxOutboxBytes: 100_000,
    });
    const { frames, malformed } = mutateSequence(COMMANDS, COMMANDS, {
      random,
      words: COMMAND_WORDS,
    });
    for (const frame of frames) {
      given.event(frame);
      if (random.chance(0.3)) await settled();
    }
    await withinTime(given.close(), 'the runner');
    const sound = Math.max(0, frames.length - malformed);
    return { malformed, sound, refused: 0, out: 0 };
  },
};

/** A generator waits for what has a `then`, for ever if it is not a promise. */
const isSettled = (value: unknown) => typeof Object(value).then !== 'function';

const agent: Target = {
  name: 'agent in a session',
  async play(random) {
    const { sequences, words } = chunkTurns();
    const mutation = { random, words, isLive: true };
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), mutation);
    let asked = 0;
    async function* answer(): AsyncGenerator<Chunk> {
      yield* frames.filter(isSettled) as Chunk[];
    }
    const approving = (prompt: AgentPrompt) =>
      approveCalls(prompt, async function* ({ approvals, outputs }) {
        const settled = [...approvals, ...outputs];
        if (settled.length === 0) yield* answer();
        else if (asked++ < 3) {
          yield* [mutateValue(settled, mutation)].flat().filter(isSettled) as Chunk[];
        }
      });
    const prompt = random.chance(0.5) ? approving : answer;
    const sessions = createSessions({
      store: memorySessionStore(),
      agent: () => ({ name: 'fuzzed', prompt }),
      timing: { stopMs: 50 },
    });
    const { session: asking } = sessions.hold('s');
    const member = { user: { id: 'ann' }, role: 'owner' } as const;
    const { prompt: taken } = asking.prompt({ text: 'x', bytes: 1 }, member);
    await withinTime(untilIdle(asking, random), 'the agent');
    const out = await checkLogs(asking, [taken.turnId], random);
    await withinTime(sessions.close(0), 'the sessions');
    await asking.log.close();
    return { malformed, sound: Math.max(0, frames.length - malformed), refused: 0, out };
  },
};

/** Answers what is asked. */
async function untilIdle(asking: Session, random: Random): Promise<void> {
  const member = { user: { id: 'ann' }, role: 'owner' } as const;
  while (!asking.isIdle) {
    for (const { questionId } of await asking.openQuestions()) {
      await asking
        .answer(questionId, random.pick(['Approve', 'no']), member)
        .catch(() => undefined);
    }
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
}

export const SESSIONS: Target[] = [
  ...[fromClients, fromRunners, fromGateways],
  ...[session, links, runner, agent],
];
