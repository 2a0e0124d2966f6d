import fc from 'fast-check';
import type { TurnEventType } from '../src/sources/agent-ops/events.ts';
import { agentStatus, sessionStatus, WEB } from './agent-ops-events.ts';
import { createPlay } from './agent-ops-play.ts';
import type { Dialect, Step } from './agent-ops-script.ts';

export const AGENT_OPS_EVENT_TYPES: TurnEventType[] = [
  'message.create',
  'message.part.text-delta',
  'message.part.tool-update',
  'message.part.reasoning-delta',
  'message.part.tool-input-delta',
  'message.part.step',
  'message.part.source',
  'message.part.file',
  'message.part.data',
  'message.finalize',
  'complete',
  'aborted',
  'usage-report',
  'init',
  'message',
  'message.updated',
  'chunk',
  'agentStatus',
  'status',
  'error',
  'question',
  'interactive_prompt',
  'interactive_prompt_resolved',
  'interactive_prompt_expired',
  'queue.state',
  'queue.withdrawn',
];

/** Mostly sound events of few turns, calls and questions, so that they meet; some are broken. */
export function anyEvents() {
  const some = <T>(...values: T[]) =>
    fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...values) }, fc.anything());
  const id = some('t', 'u', null, undefined);
  const anyCall = {
    callId: some('c', 'd'),
    toolName: some('bash', 'question', undefined),
    status: some('pending', 'running', 'completed', 'error', 'thinking', 'idle'),
    args: some({}, { a: 1 }, undefined),
    result: some('r', undefined),
    error: some('e', undefined),
  };
  const anyPart = {
    name: some('chart', 'question'),
    sourceId: some('s'),
    url: some('https://example.test', undefined),
    mediaType: some('text/plain', undefined),
    title: some('T', undefined),
    data: some<unknown>(1, { a: 1 }),
  };
  const part = fc.oneof(
    fc.record({ type: fc.constant('text'), text: some('a', 'ab', 'abc', '') }),
    fc.record({ type: fc.constant('tool-call'), ...anyCall }),
    fc.record({ type: fc.constant('finish'), reason: some('end_turn', 'error', 'canceled') }),
    fc.record({ type: fc.constant('error'), message: some('broken') }),
    fc.record({ type: fc.constant('reasoning'), text: some('a', 'ab') }),
    fc.record({ type: fc.constant('step') }),
    fc.record({ type: some('source', 'file', 'data'), ...anyPart }),
    fc.record({
      type: fc.constant('question'),
      questionId: some('q', 'r'),
      text: some('Deploy?'),
      status: some('open', 'answered', 'expired'),
      callId: some('c', undefined),
    }),
    fc.record({ type: fc.constant('usage'), usage: some({ inputTokens: 1 }) }),
    fc.anything(),
  );
  const data = fc.oneof(
    fc.record(
      {
        id: some('t', 'u', 'p'),
        role: some('assistant', 'assistant', 'user', undefined),
        content: some('', 'abc'),
        promptId: some('p', undefined),
        parts: fc.oneof({ weight: 9, arbitrary: fc.array(part, { maxLength: 5 }) }, fc.anything()),
      },
      { requiredKeys: ['id'] },
    ),
    fc.record(
      {
        runnerBusy: some(true, false),
        aborted: some(true, false),
        promptQueued: some(true, false),
        queuePosition: some(1, 2),
        promptId: some('p', 'o'),
        promptWithdrawn: some('p', 'o', undefined),
        queue: some([{ promptId: 'p', position: 2 }], []),
        promptDequeued: some(true, false),
        remaining: some(0, 1),
        questionAnswered: some('q', 'r'),
        answer: some('Yes', '__expired__'),
        runnerDisconnected: some(true, false),
      },
      { requiredKeys: [] },
    ),
    fc.anything(),
  );
  const event = fc.record(
    {
      type: fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom(...AGENT_OPS_EVENT_TYPES) },
        fc.string(),
      ),
      turnId: id,
      messageId: id,
      promptId: some('q', 'r', 'p', undefined),
      seq: some(1, 2, 3, 4, undefined),
      refused: some(undefined, undefined, 'answer'),
      id: some('1', undefined),
      questionId: some('q', 'r'),
      text: some('Deploy?'),
      delta: some('a', 'b', ''),
      content: some('a', 'b', ''),
      reason: some('end_turn', 'error', 'canceled'),
      finalText: some('ab', undefined),
      channelType: some('web', undefined),
      prompt: some({ id: 'q', type: 'approval', title: 'x', actions: [{ id: 'y', label: 'Y' }] }),
      resolution: some({ actionId: 'y' }, undefined),
      entries: some([{ inputTokens: 1 }]),
      session: some({
        messages: [{ id: 't', role: 'assistant', parts: [{ type: 'finish', reason: 'end_turn' }] }],
      }),
      ...anyPart,
      data,
      ...anyCall,
    },
    {
      requiredKeys: ['type', 'turnId', 'callId', 'status', 'toolName', 'delta', 'content', 'data'],
    },
  );
  return fc.array(event, { maxLength: 40 });
}

export function anyOptions() {
  return fc.record(
    {
      dialect: fc.constantFrom('auto', 'v2', 'snapshot'),
      turnId: fc.constantFrom('t', 'x'),
      promptId: fc.constantFrom('p', 'q'),
      messageId: fc.constant('m'),
      approvals: fc.boolean(),
      channel: fc.constant({ channelType: 'web', channelId: 'default' }),
    },
    { requiredKeys: [] },
  );
}

type Person = { turnId: string; prompt: string; place: object; steps: Step[] };
export type SharedSocket = {
  events: object[];
  /** How many of them come before our prompt is sent. */
  before: number;
  /** Those of our turn. */
  ours: object[];
};

export const OUR_PROMPT = 'ours';
const SLACK = { channelType: 'slack', channelId: 'C1' };

/**
 * Turns of two people on one socket, in either dialect: on different channels in any interleaving;
 * or on one channel, where one of the prompts waits in the queue and is asked at any time.
 */
export function anySharedSocket(): fc.Arbitrary<SharedSocket> {
  const relation = fc.constantFrom('elsewhere', 'before', 'behind');
  const dialect = fc.constantFrom<Dialect>('snapshot', 'v2');
  const steps = { ours: anySteps(), theirs: anySteps() };
  const order = fc.array(fc.boolean(), { maxLength: 60 });
  const at = fc.double({ min: 0, max: 1, noNaN: true });
  return fc.record({ relation, dialect, order, at, ...steps }).map((given) => {
    const isElsewhere = given.relation === 'elsewhere';
    const place = isElsewhere ? SLACK : WEB;
    const we = { turnId: 't', prompt: OUR_PROMPT, place: WEB, steps: given.ours };
    const they = { turnId: 'u', prompt: 'theirs', place, steps: given.theirs };
    const ours = turnOf(we, given.dialect);
    const theirs = turnOf(they, given.dialect);
    const [asked, ...answered] = ours;
    let events: object[];
    if (isElsewhere) events = interleave(ours, theirs, given.order);
    else if (given.relation === 'before') events = waitBehind(theirs, ours, given.at, 1);
    // Without our words, only an agent that works says that our prompt is not the one that waits.
    else events = waitBehind(ours, theirs, given.at, 2);
    return {
      events: [...events, sessionStatus({ runnerBusy: false })],
      before: events.indexOf(asked as object),
      ours: answered,
    };
  });
}

function anySteps(): fc.Arbitrary<Step[]> {
  const word = fc.constantFrom('One', ' two', '\n', ' three.');
  const tool = fc.record({
    callId: fc.constantFrom('c', 'd'),
    toolName: fc.constant('bash'),
    status: fc.constantFrom('pending', 'running', 'completed', 'error'),
    args: fc.constantFrom({}, { command: 'ls' }),
    result: fc.constant('r'),
    error: fc.constant('e'),
  });
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ say: word }) },
    { weight: 2, arbitrary: fc.record({ tool }) },
  );
  const fail = fc.constantFrom<Step[]>([], [], [{ fail: 'Overloaded' }]);
  return fc
    .tuple(fc.array(step, { maxLength: 6 }), fail)
    .map(([done, failed]) => [{ begin: true }, ...(done as Step[]), ...failed]);
}

/** From the message of the person to the end of the turn. */
function turnOf({ turnId, prompt, place, steps }: Person, dialect: Dialect): object[] {
  const data = { id: `prompt-of-${turnId}`, role: 'user', content: prompt, ...place };
  const events: object[] = [{ type: 'message', data }, agentStatus('thinking', place)];
  const play = createPlay({
    turnId,
    dialect,
    place,
    messages: [],
    tell: (event) => void events.push(structuredClone(event)),
    misbehave: () => undefined,
  });
  for (const step of [...steps, undefined]) play(step);
  return dialect === 'v2' ? [...events, { type: 'complete' }] : events;
}

function interleave(first: object[], second: object[], order: boolean[]): object[] {
  const [a, b] = [[...first], [...second]];
  const events = order.flatMap((isFirst) => {
    const rest = isFirst ? a : b;
    const { type } = (rest[0] ?? {}) as { type?: string };
    // A runner sends the `complete` of a turn at once.
    return rest.splice(0, type === 'message.finalize' ? 2 : 1);
  });
  return [...events, ...a, ...b];
}

/** The second prompt is asked at some time in the first turn, from its event `from` on. */
function waitBehind(first: object[], second: object[], at: number, from: number): object[] {
  const [asked, ...answered] = second;
  const place = from + Math.floor(at * (first.length - from));
  return [
    ...first.slice(0, place),
    ...[asked as object, sessionStatus({ promptQueued: true, queuePosition: 1 })],
    ...first.slice(place),
    ...[sessionStatus({ promptDequeued: true, remaining: 0 }), ...answered],
  ];
}
