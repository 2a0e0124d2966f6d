/** The contract once more, as simply as it can be said, and random walks on which a store must agree. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type {
  Participant,
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredQuestion,
  StoredTurn,
  TurnChanges,
} from '../src/sessions/storage.ts';
import {
  type Bench,
  CHANNEL,
  message,
  OTHER_CHANNEL,
  participant,
  question,
  turn,
} from './session-storage-helpers.ts';

type SingleStep =
  | { do: 'addMessage'; message: StoredMessage }
  | { do: 'addTurn'; turn: StoredTurn }
  | { do: 'updateTurn'; turnId: string; changes: TurnChanges }
  | { do: 'appendEvents'; turnId: string; ahead: number; events: string }
  | { do: 'trimEvents'; keep: number }
  | { do: 'saveQuestion'; question: StoredQuestion }
  | { do: 'saveParticipant'; participant: Participant }
  | { do: 'set'; key: string; value: string };
type Step = SingleStep | { do: 'transaction'; steps: Step[]; fails: boolean };
type Walk = { sessionId: string; step: Step | 'delete' }[];

const SESSIONS = ['s1', 's2', 's3'];
const IDS = ['a', 'b', 'c', 'd'];
const CHANNELS = [CHANNEL, OTHER_CHANNEL];

class Undone extends Error {}

/** All that is kept of a session. */
type Kept = {
  touched: number;
  messages: StoredMessage[];
  turns: (StoredTurn & { entries: [lastSeq: number, events: string][]; asked: StoredTurn })[];
  questions: StoredQuestion[];
  participants: Participant[];
  values: Record<string, string>;
};

class Model {
  sessions: Record<string, Kept> = {};
  #clock = 0;

  walk(sessionId: string, step: SingleStep): unknown {
    const { sessions } = this;
    const fresh = { messages: [], turns: [], questions: [], participants: [], values: {} };
    const kept: Kept = sessions[sessionId] ?? { touched: ++this.#clock, ...fresh };
    const keep = (touch = false) => {
      sessions[sessionId] = kept;
      if (touch) kept.touched = ++this.#clock;
      return true;
    };
    switch (step.do) {
      case 'addMessage':
        if (kept.messages.some(({ id }) => id === step.message.id)) return false;
        kept.messages.push(step.message);
        return keep(true);
      case 'addTurn': {
        const { turnId, promptId } = step.turn;
        if (kept.turns.some((one) => one.turnId === turnId || one.promptId === promptId))
          return false;
        kept.turns.push({ ...step.turn, entries: [], asked: step.turn });
        return keep(true);
      }
      case 'updateTurn': {
        const found = kept.turns.find(({ turnId }) => turnId === step.turnId);
        if (found) Object.assign(found, step.changes);
        return found && keep(true) && undefined;
      }
      case 'appendEvents': {
        const found = kept.turns.find(({ turnId }) => turnId === step.turnId);
        found?.entries.push([lastOf(found.entries) + step.ahead, step.events]);
        return undefined;
      }
      case 'trimEvents': {
        const ended = kept.turns.filter(({ status }) => status === 'ended').reverse();
        ended.sort((one, other) => (other.endedAt ?? -1) - (one.endedAt ?? -1));
        for (const one of ended.slice(step.keep)) one.entries = [];
        return undefined;
      }
      case 'saveQuestion':
        replace(kept.questions, 'questionId', step.question);
        return void keep();
      case 'saveParticipant':
        replace(kept.participants, 'id', step.participant);
        return void keep();
      case 'set':
        kept.values[step.key] = step.value;
        return void keep();
    }
  }

  /** Where the next entry of a turn's events has to come after. */
  lastSeq(sessionId: string, turnId: string): number {
    const found = this.sessions[sessionId]?.turns.find((one) => one.turnId === turnId);
    return found ? lastOf(found.entries) : 0;
  }

  tell() {
    const told = Object.entries(this.sessions).sort(
      ([, one], [, other]) => other.touched - one.touched,
    );
    const isOpen = ({ status }: StoredTurn) => status !== 'ended';
    return {
      list: told.map(([id]) => id),
      unfinished: SESSIONS.filter((id) => this.sessions[id]?.turns.some(isOpen)),
      sessions: SESSIONS.map((id) => tellKept(this.sessions[id])),
    };
  }
}

function lastOf(entries: [lastSeq: number, events: string][]): number {
  return entries.at(-1)?.[0] ?? 0;
}

function replace<Item, Key extends keyof Item>(items: Item[], key: Key, item: Item): void {
  const index = items.findIndex((one) => one[key] === item[key]);
  if (index < 0) items.push(item);
  else items[index] = item;
}

function jsonBytes(values: object[]): number {
  return values.reduce((sum, value) => sum + Buffer.byteLength(JSON.stringify(value)), 0);
}

function tellKept(kept: Kept | undefined) {
  const { messages = [], turns = [], questions = [], participants = [], values = {} } = kept ?? {};
  const bare = turns.map(({ entries: _, asked: __, ...one }) => one);
  const infos = bare.map(({ content: _, attachments: __, ...info }) => info);
  const ofChannel = (channelId: string) => messages.filter((one) => one.channelId === channelId);
  const channelIds = [...new Set(messages.map(({ channelId }) => channelId))];
  return {
    messages,
    lastMessages: CHANNELS.map(({ channelId }) => ofChannel(channelId).slice(-2)),
    channels: channelIds,
    turns: IDS.map((id) => bare.find(({ turnId }) => turnId === id)),
    turnInfos: IDS.map((id) => infos.find(({ turnId }) => turnId === id)),
    turnsOfPrompts: IDS.map((id) => infos.find(({ promptId }) => promptId === `p-${id}`)),
    openTurns: ['running', 'queued'].flatMap((status) =>
      infos.filter((one) => one.status === status),
    ),
    bytes: jsonBytes([...messages, ...turns.map(({ asked }) => asked), ...questions]),
    events: IDS.map((id) => {
      const entries = turns.find(({ turnId }) => turnId === id)?.entries ?? [];
      return [0, 3].map((after) => entries.filter(([seq]) => seq > after).map(([, text]) => text));
    }),
    questions: IDS.map((id) => questions.find(({ questionId }) => questionId === id)),
    openQuestions: questions.filter(({ status }) => status === 'open'),
    questionsOf: IDS.map((id) => questions.filter(({ turnId }) => turnId === id)),
    participants,
    found: IDS.map((id) => participants.find((one) => one.id === id)),
    values: IDS.map((id) => values[id]),
  };
}

function tellStore(store: SessionStore): ReturnType<Model['tell']> {
  return {
    list: store.list().map(({ sessionId }) => sessionId),
    unfinished: store.unfinished().sort(),
    sessions: SESSIONS.map((id) => tellStorage(store.open(id))),
  };
}

function tellStorage(session: SessionStorage): ReturnType<typeof tellKept> {
  return {
    messages: session.messages(),
    lastMessages: CHANNELS.map((channel) => session.messages({ channel, limit: 2 })),
    channels: session.channels().map(({ channelId }) => channelId),
    turns: IDS.map((id) => session.turn(id)),
    turnInfos: IDS.map((id) => session.turnInfo(id)),
    turnsOfPrompts: IDS.map((id) => session.turnOfPrompt(`p-${id}`)),
    openTurns: session.openTurns(),
    bytes: session.bytes(),
    events: IDS.map((id) => [0, 3].map((after) => session.events(id, after))),
    questions: IDS.map((id) => session.question(id)),
    openQuestions: session.openQuestions(),
    questionsOf: IDS.map((id) => session.questionsOf(id)),
    participants: session.participants(),
    found: IDS.map((id) => session.participant(id)),
    values: IDS.map((id) => session.get(id)),
  };
}

/** One step of the store's; what it gives. */
function walkStore(session: SessionStorage, step: SingleStep, lastSeq: number): unknown {
  switch (step.do) {
    case 'addMessage':
      return session.addMessage(step.message);
    case 'addTurn':
      return session.addTurn(step.turn);
    case 'updateTurn':
      return session.updateTurn(step.turnId, step.changes);
    case 'appendEvents':
      return session.appendEvents(step.turnId, lastSeq + step.ahead, step.events);
    case 'trimEvents':
      return session.trimEvents(step.keep);
    case 'saveQuestion':
      return session.saveQuestion(step.question);
    case 'saveParticipant':
      return session.saveParticipant(step.participant);
    case 'set':
      return session.set(step.key, step.value);
  }
}

function walkBoth(model: Model, store: SessionStore, sessionId: string, step: Step): void {
  const session = store.open(sessionId);
  if (step.do !== 'transaction') {
    const lastSeq = 'turnId' in step ? model.lastSeq(sessionId, step.turnId) : 0;
    expect(walkStore(session, step, lastSeq)).toBe(model.walk(sessionId, step));
    return;
  }
  const before = structuredClone(model.sessions);
  const run = () =>
    session.transaction(() => {
      for (const inner of step.steps) walkBoth(model, store, sessionId, inner);
      if (step.fails) throw new Undone();
    });
  if (step.fails) {
    expect(run).toThrow(Undone);
    model.sessions = before;
  } else {
    run();
  }
}

const anyId = fc.constantFrom(...IDS);
const anyTime = fc.integer({ min: 0, max: 3 });
const anyStatus = fc.constantFrom('queued', 'running', 'ended' as const);
const anyText = fc.string({ maxLength: 3 });

const anySingleStep: fc.Arbitrary<SingleStep> = fc.oneof(
  fc.record({
    do: fc.constant('addMessage' as const),
    message: fc
      .tuple(anyId, fc.constantFrom(...CHANNELS), anyText)
      .map(([id, channel, content]) => message(id, { ...channel, content })),
  }),
  fc.record({
    do: fc.constant('addTurn' as const),
    turn: fc
      .tuple(anyId, anyId, anyStatus)
      .map(([id, prompt, status]) => turn(id, { promptId: `p-${prompt}`, status })),
  }),
  fc.record({
    do: fc.constant('updateTurn' as const),
    turnId: anyId,
    changes: fc.record(
      { status: anyStatus, startedAt: anyTime, endedAt: anyTime, error: anyText },
      { requiredKeys: [] },
    ),
  }),
  fc.record({
    do: fc.constant('appendEvents' as const),
    turnId: anyId,
    ahead: fc.integer({ min: 1, max: 3 }),
    events: anyText,
  }),
  fc.record({ do: fc.constant('trimEvents' as const), keep: fc.nat(3) }),
  fc.record({
    do: fc.constant('saveQuestion' as const),
    question: fc
      .tuple(anyId, anyId, fc.constantFrom('open', 'answered' as const))
      .map(([id, turnId, status]) => question(id, { turnId, status })),
  }),
  fc.record({
    do: fc.constant('saveParticipant' as const),
    participant: fc.tuple(anyId, anyText).map(([id, name]) => participant(id, { name })),
  }),
  fc.record({ do: fc.constant('set' as const), key: anyId, value: anyText }),
);

const anyStep: fc.Arbitrary<Step> = fc.letrec<{ step: Step }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 6, arbitrary: anySingleStep },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('transaction' as const),
        steps: fc.array(tie('step'), { maxLength: 6 }),
        fails: fc.boolean(),
      }),
    },
  ),
})).step;

const anyWalk: fc.Arbitrary<Walk> = fc.array(
  fc.record({
    sessionId: fc.constantFrom(...SESSIONS),
    step: fc.option(anyStep, { freq: 15, nil: 'delete' as const }),
  }),
  { minLength: 10, maxLength: 60, size: 'max' },
);

export function describeAgreement(start: () => Bench): void {
  it('on every walk through several sessions', () => {
    fc.assert(
      fc.property(anyWalk, (walk) => {
        const bench = start();
        const model = new Model();
        for (const { sessionId, step } of walk) {
          if (step === 'delete') {
            bench.store().delete(sessionId);
            delete model.sessions[sessionId];
          } else {
            walkBoth(model, bench.store(), sessionId, step);
          }
        }
        bench.reading();
        expect(tellStore(bench.store())).toEqual(model.tell());
        bench.store().close();
      }),
      { numRuns: 40 },
    );
  });
}
