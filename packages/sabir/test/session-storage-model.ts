/** The contract once more, as simply as it can be said, and random walks on which a store must agree. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type {
  Participant,
  PromptChanges,
  SessionStorage,
  SessionStore,
  StoredMessage,
  StoredPrompt,
} from '../src/sessions/storage.ts';
import {
  type Bench,
  CHANNEL,
  infoOf,
  message,
  OTHER_CHANNEL,
  participant,
  prompt,
  says,
  sessionIdsOf,
} from './session-storage-helpers.ts';

type SingleStep =
  | { do: 'addMessage'; message: StoredMessage }
  | { do: 'replaceMessages' | 'restoreMessages'; from: string; promptId: string }
  | { do: 'addPrompt'; prompt: StoredPrompt }
  | { do: 'updatePrompt'; promptId: string; changes: PromptChanges }
  | { do: 'saveParticipant'; participant: Participant };
type Step = SingleStep | { do: 'transaction'; steps: Step[]; fails: boolean };
type Walk = { sessionId: string; step: Step | 'delete' }[];

const SESSIONS = ['s1', 's2', 's3'];
const IDS = ['a', 'b', 'c', 'd'];
const CHANNELS = [CHANNEL, OTHER_CHANNEL];

class Undone extends Error {}

/** All that is kept of a session. */
type Kept = {
  touched: number;
  messages: { message: StoredMessage; replacedBy?: string }[];
  prompts: (StoredPrompt & { asked: StoredPrompt })[];
  participants: Participant[];
};

class Model {
  sessions: Record<string, Kept> = {};
  #clock = 0;

  walk(sessionId: string, step: SingleStep): unknown {
    const { sessions } = this;
    const fresh = { messages: [], prompts: [], participants: [] };
    const kept: Kept = sessions[sessionId] ?? { touched: ++this.#clock, ...fresh };
    const keep = (touch = false) => {
      sessions[sessionId] = kept;
      if (touch) kept.touched = ++this.#clock;
      return true;
    };
    switch (step.do) {
      case 'addMessage':
        if (shownOf(kept).some(({ id }) => id === step.message.id)) return false;
        kept.messages.push({ message: step.message });
        return keep(true);
      case 'replaceMessages': {
        const shown = shownOf(kept);
        const { channelId } = shown.find(({ id }) => id === step.from) ?? {};
        if (channelId === undefined) return undefined;
        const behind = shown.slice(shown.findIndex(({ id }) => id === step.from));
        for (const one of kept.messages) {
          const isBehind = behind.includes(one.message) && one.message.channelId === channelId;
          if (isBehind) one.replacedBy = step.promptId;
        }
        return keep(true) && undefined;
      }
      case 'restoreMessages': {
        const back = kept.messages.filter((one) => one.replacedBy === step.promptId);
        const used = new Set(shownOf(kept).map(({ id }) => id));
        const free = back.filter(({ message: { id } }) => !used.has(id) && used.add(id));
        for (const one of free) delete one.replacedBy;
        if (free.length > 0) keep(true);
        return undefined;
      }
      case 'addPrompt': {
        const { promptId, turnId, messageId } = step.prompt;
        const isSame = (one: StoredPrompt) =>
          one.promptId === promptId || one.turnId === turnId || one.messageId === messageId;
        if (kept.prompts.some(isSame)) return false;
        kept.prompts.push({ ...step.prompt, asked: step.prompt });
        return keep(true);
      }
      case 'updatePrompt': {
        const found = kept.prompts.find(({ promptId }) => promptId === step.promptId);
        if (found) Object.assign(found, step.changes);
        return found && keep(true) && undefined;
      }
      case 'saveParticipant':
        replace(kept.participants, step.participant);
        return void keep();
    }
  }

  tell() {
    const told = Object.entries(this.sessions).sort(
      ([, one], [, other]) => other.touched - one.touched,
    );
    const isOpen = ({ status }: StoredPrompt) => status !== 'ended';
    return {
      list: told.map(([id]) => id),
      unfinished: SESSIONS.filter((id) => this.sessions[id]?.prompts.some(isOpen)),
      sessions: SESSIONS.map((id) => tellKept(this.sessions[id])),
    };
  }
}

function replace(participants: Participant[], given: Participant): void {
  const index = participants.findIndex(({ id }) => id === given.id);
  if (index < 0) participants.push(given);
  else participants[index] = given;
}

function jsonBytes(values: object[]): number {
  return values.reduce((sum, value) => sum + Buffer.byteLength(JSON.stringify(value)), 0);
}

function shownOf({ messages }: Pick<Kept, 'messages'>): StoredMessage[] {
  return messages.flatMap(({ message, replacedBy }) => (replacedBy === undefined ? message : []));
}

function tellKept(kept: Kept | undefined) {
  const { messages: all = [], prompts = [], participants = [] } = kept ?? {};
  const messages = shownOf({ messages: all });
  const bare = prompts.map(({ asked: _, ...one }) => one);
  const infos = bare.map(infoOf);
  const ofChannel = (channelId: string) => messages.filter((one) => one.channelId === channelId);
  const channelIds = [...new Set(all.map(({ message: { channelId } }) => channelId))];
  return {
    messages,
    lastMessages: CHANNELS.map(({ channelId }) => ofChannel(channelId).slice(-2)),
    before: IDS.map((before) => {
      const at = messages.findIndex(({ id }) => id === before);
      return messages.slice(0, Math.max(0, at)).slice(-1);
    }),
    from: IDS.map((from) => {
      const at = messages.findIndex(({ id }) => id === from);
      return at < 0 ? [] : messages.slice(at);
    }),
    ofIds: IDS.map((id) => messages.find((one) => one.id === id)),
    replaced: IDS.map((id) => all.flatMap((one) => (one.replacedBy === id ? one.message : []))),
    wereReplaced: IDS.map((id) =>
      CHANNELS.map(({ channelId }) =>
        all.some(
          ({ message, replacedBy }) =>
            message.id === id && message.channelId === channelId && replacedBy !== undefined,
        ),
      ),
    ),
    channels: channelIds,
    prompts: IDS.map((id) => bare.find(({ promptId }) => promptId === id)),
    infos: IDS.map((id) => infos.find(({ promptId }) => promptId === id)),
    ofTurns: IDS.map((id) => infos.find(({ turnId }) => turnId === id)),
    ofMessages: IDS.map((id) => infos.find(({ messageId }) => messageId === id)),
    openPrompts: ['running', 'queued'].flatMap((status) =>
      infos.filter((one) => one.status === status),
    ),
    bytes: jsonBytes([...all.map(({ message }) => message), ...prompts.map(({ asked }) => asked)]),
    participants,
    found: IDS.map((id) => participants.find((one) => one.id === id)),
  };
}

function tellStore(store: SessionStore): ReturnType<Model['tell']> {
  return {
    list: sessionIdsOf(store),
    unfinished: store.unfinished().sort(),
    sessions: SESSIONS.map((id) => tellStorage(store.open(id))),
  };
}

function tellStorage(session: SessionStorage): ReturnType<typeof tellKept> {
  return {
    messages: session.messages(),
    lastMessages: CHANNELS.map((channel) => session.messages({ channel, limit: 2 })),
    before: IDS.map((before) => session.messages({ before, limit: 1 })),
    from: IDS.map((from) => session.messages({ from })),
    ofIds: IDS.map((id) => session.message(id)),
    replaced: IDS.map((id) => session.replacedMessages(id)),
    wereReplaced: IDS.map((id) => CHANNELS.map((channel) => session.wasReplaced(id, channel))),
    channels: session.channels().map(({ channelId }) => channelId),
    prompts: IDS.map((id) => session.prompt(id)),
    infos: IDS.map((id) => session.promptInfo('promptId', id)),
    ofTurns: IDS.map((id) => session.promptInfo('turnId', id)),
    ofMessages: IDS.map((id) => session.promptInfo('messageId', id)),
    openPrompts: session.openPrompts(),
    bytes: session.bytes(),
    participants: session.participants(),
    found: IDS.map((id) => session.participant(id)),
  };
}

/** One step of the store's; what it gives. */
function walkStore(session: SessionStorage, step: SingleStep): unknown {
  switch (step.do) {
    case 'addMessage':
      return session.addMessage(step.message);
    case 'replaceMessages':
      return session.replaceMessages(step.from, step.promptId);
    case 'restoreMessages':
      return session.restoreMessages(step.promptId);
    case 'addPrompt':
      return session.addPrompt(step.prompt);
    case 'updatePrompt':
      return session.updatePrompt(step.promptId, step.changes);
    case 'saveParticipant':
      return session.saveParticipant(step.participant);
  }
}

function walkBoth(model: Model, store: SessionStore, sessionId: string, step: Step): void {
  const session = store.open(sessionId);
  if (step.do !== 'transaction') {
    expect(walkStore(session, step)).toBe(model.walk(sessionId, step));
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
const anyOutcome = fc.constantFrom('finished', 'failed', 'withdrawn' as const);
const anyText = fc.string({ maxLength: 3 });

const anySingleStep: fc.Arbitrary<SingleStep> = fc.oneof(
  fc.record({
    do: fc.constant('addMessage' as const),
    message: fc
      .tuple(anyId, fc.constantFrom(...CHANNELS), anyText)
      .map(([id, channel, text]) => message(id, { ...channel, parts: says(text) })),
  }),
  fc.record({
    do: fc.constantFrom('replaceMessages', 'restoreMessages' as const),
    from: anyId,
    promptId: anyId,
  }),
  fc.record({
    do: fc.constant('addPrompt' as const),
    prompt: fc
      .tuple(anyId, anyId, anyId, anyStatus, anyText)
      .map(([id, turnId, messageId, status, text]) =>
        prompt(id, { turnId, messageId, status, text, body: { text } }),
      ),
  }),
  fc.record({
    do: fc.constant('updatePrompt' as const),
    promptId: anyId,
    changes: fc.record(
      {
        status: anyStatus,
        startedAt: anyTime,
        endedAt: anyTime,
        outcome: anyOutcome,
        error: anyText,
        runnerId: anyText,
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({
    do: fc.constant('saveParticipant' as const),
    participant: fc.tuple(anyId, anyText).map(([id, name]) => participant(id, { name })),
  }),
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
