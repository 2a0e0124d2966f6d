/** Both sides of a session: what people and runners say to it, and what it says to runners. */

import type { Chunk } from '../../src/core/chunks.ts';
import type { Loose } from '../../src/core/loose.ts';
import { startAgentTurn } from '../../src/sessions/agent-turn.ts';
import { type AgentPrompt, Runner } from '../../src/sessions/index.ts';
import { readClientMessage } from '../../src/sessions/read-client-message.ts';
import { readRunnerEvent } from '../../src/sessions/read-runner-event.ts';
import { createAgentOpsTranslator } from '../../src/sources/agent-ops/translate.ts';
import { approveCalls } from '../../src/sources/ai-sdk/approve-calls.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { createSessionRig, settled, type TestSocket } from '../session-rig.ts';
import { chunkTurns, clientMessages, runnerEvents } from './corpus.ts';
import { toFrameBytes } from './mutate-bytes.ts';
import { mutateSequence, mutateValue } from './mutate-json.ts';
import type { Random } from './random.ts';
import { checkTurn, InvalidOutput, type Target, withinTime } from './target.ts';

const decoder = new TextDecoder();
const toText = (value: unknown, random: Random) =>
  decoder.decode(toFrameBytes(value, random).bytes);

const fromClients: Target = {
  name: 'client messages',
  play(random) {
    const { sequences, words } = clientMessages();
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), { random, words });
    let refused = 0;
    for (const frame of frames) {
      const heard = readClientMessage(toText(frame, random));
      if (heard.problem) refused++;
      else if (typeof heard.message.type !== 'string') throw new InvalidOutput('no type');
    }
    const out = frames.length - refused;
    return { malformed, sound: Math.max(0, frames.length - malformed), refused, out };
  },
};

const fromRunners: Target = {
  name: 'runner events',
  play(random) {
    const { sequences, words } = runnerEvents();
    const given = random.pick(sequences);
    const { frames, malformed } = mutateSequence(given, random.pick(sequences), { random, words });
    let refused = 0;
    for (const frame of frames) {
      if (readRunnerEvent(toText(frame, random)).kind === 'malformed') refused++;
    }
    const out = frames.length - refused;
    return { malformed, sound: Math.max(0, frames.length - malformed), refused, out };
  },
};

/** Mostly of the turn that runs, so that it is more than skipped. */
function aimed(event: unknown, { turnId }: Loose, random: Random): unknown {
  const isNamed = typeof event === 'object' && event !== null && 'turnId' in event;
  return isNamed && turnId !== undefined && random.chance(0.85) ? { ...event, turnId } : event;
}

/** Every turn that a client was told of, as a gateway would translate it. */
function translateAll(client: TestSocket, random: Random): number {
  const prompts = new Set(client.events.map(({ promptId }) => promptId));
  let out = 0;
  for (const promptId of prompts) {
    if (typeof promptId !== 'string') continue;
    const translator = createAgentOpsTranslator({
      promptId,
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

const sessionAgent: Target = {
  name: 'session agent',
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
    let runner = random.chance(0.7) ? rig.runner() : rig.foreignRunner();
    const said = clientMessages();
    const done = runnerEvents();
    const fromPeople = mutateSequence(random.pick(said.sequences), random.pick(said.sequences), {
      random,
      words: said.words,
    });
    const fromAgent = mutateSequence(random.pick(done.sequences), random.pick(done.sequences), {
      random,
      words: done.words,
    });
    clients[0]?.say({ type: 'prompt', content: 'Hello', promptId: 'p0' });
    const total = fromPeople.frames.length + fromAgent.frames.length;
    while (fromPeople.frames.length + fromAgent.frames.length > 0) {
      if (random.chance(fromPeople.frames.length / (total + 1))) {
        random.pick(clients).say(toText(fromPeople.frames.shift(), random));
      } else if (fromAgent.frames.length > 0) {
        const prompt = runner.last('prompt') ?? {};
        runner.say(toText(aimed(fromAgent.frames.shift(), prompt as Loose, random), random));
      }
      if (random.chance(0.02)) rig.clock.pass(random.pick([1, 1_000, 60_000]));
      if (random.chance(0.02)) {
        runner.drop();
        runner = random.chance(0.5) ? rig.runner() : rig.foreignRunner();
      }
      if (random.chance(0.05)) await settled();
    }
    rig.clock.pass(10 * 60_000);
    await settled();
    // Whoever comes afterwards is told a history that can be read.
    clients.push(rig.client('late'));
    rig.agent.close();
    await settled();
    if (problems.length > 0) throw new InvalidOutput(problems.join('\n'));
    const out = clients.reduce((sum, client) => sum + translateAll(client, random), 0);
    const malformed = fromPeople.malformed + fromAgent.malformed;
    const refused = clients.flatMap((client) => client.of('error')).length;
    return { malformed, sound: Math.max(0, total - malformed), refused, out };
  },
};

const COMMANDS: readonly unknown[] = [
  { type: 'init', session: { id: 's' }, data: { lastRunnerSeq: 0, protocol: { name: 'sabir' } } },
  {
    type: 'prompt',
    messageId: 'p1',
    turnId: 't1',
    content: 'question now',
    channelType: 'web',
    channelId: 'default',
    author: { id: 'ann', name: 'Ann' },
    attachments: [{ type: 'file', mime: 'text/plain', url: 'data:,x', filename: 'x.txt' }],
    messages: [
      { id: 'u0', role: 'user', content: 'Before' },
      { id: 't0', role: 'assistant', parts: [{ type: 'text', text: 'Then' }, { type: 'finish' }] },
    ],
  },
  { type: 'ack', runnerSeq: 2 },
  { type: 'answer', questionId: 'q1', answer: 'Yes' },
  { type: 'prompt', messageId: 'p2', turnId: 't2', content: 'everything', channelType: 'web' },
  { type: 'abort', turnId: 't2', messageId: 'p2' },
  { type: 'prompt', messageId: 'p3', turnId: 't3', content: 'tool' },
  { type: 'pong' },
];
const COMMAND_WORDS = ['init', 'prompt', 'ack', 'abort', 'answer', 't1', 't2', 'p1', 'q1', 'fail'];

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
    const events: Loose[] = [];
    let asked = 0;
    async function* answer(): AsyncGenerator<Chunk> {
      yield* frames.filter(isSettled) as Chunk[];
    }
    const approving = (prompt: AgentPrompt) =>
      approveCalls(prompt, async function* (approvals) {
        if (approvals.length === 0) yield* answer();
        else if (asked++ < 3) {
          yield* [mutateValue(approvals, mutation)].flat().filter(isSettled) as Chunk[];
        }
      });
    const hasApprovals = random.chance(0.5);
    const turn = startAgentTurn({
      sessionId: 's',
      command: { type: 'prompt', messageId: 'p', turnId: 't', content: 'x' } as never,
      ready: Promise.resolve(),
      agent: { name: 'fuzzed', prompt: hasApprovals ? approving : answer },
      emit: () => undefined,
      say(event) {
        events.push(JSON.parse(JSON.stringify(event)));
        const { type, questionId } = event as Loose;
        if (type === 'question') {
          queueMicrotask(() => turn.answer(questionId as string, random.pick(['Approve', 'no'])));
        }
      },
    });
    await withinTime(turn.ended, 'the agent');
    // Data with a name that a session keeps for itself.
    const isSkipped = (event: Loose) => readRunnerEvent(JSON.stringify(event)).kind === 'malformed';
    const refused = events.filter(isSkipped).length;
    const translator = createAgentOpsTranslator({ turnId: 't', messageId: 'm' });
    const chunks = events.flatMap((event) => translator.push(event));
    chunks.push(...translator.end());
    checkTurn(chunks, random);
    const sound = Math.max(0, frames.length - malformed);
    return { malformed, sound, refused, out: chunks.length };
  },
};

export const SESSIONS: Target[] = [fromClients, fromRunners, sessionAgent, runner, agent];
