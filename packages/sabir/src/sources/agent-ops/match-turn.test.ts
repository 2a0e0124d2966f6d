import { describe, expect, it } from 'vitest';
import {
  agentStatus,
  call,
  chunk,
  create,
  delta,
  FINISH,
  finalize,
  fold,
  message,
  question,
  sessionStatus,
  text,
  tool,
  translate,
  types,
  updated,
  userMessage,
  WEB,
} from '../../../test/agent-ops-events.ts';
import { createTurnMatcher } from './match-turn.ts';

const SLACK = { channelType: 'slack', channelId: 'C1' };
const texts = (events: unknown[], options = {}) =>
  fold(events, options).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
const turnOf = (id: string, words: string) => [
  message(id),
  chunk(words, id),
  updated([text(words), FINISH], id),
];

describe('which turn is ours', () => {
  it('is the first one announced, in either dialect', () => {
    const events = [create('t'), create('u'), delta('u', 'u'), delta('t', 't')];
    expect(texts(events)).toEqual(['t']);
    expect(texts([message('t'), message('u'), chunk('u', 'u'), chunk('t', 't')])).toEqual(['t']);
  });

  it('is not one that ran before, unless its id is given', () => {
    const running = [
      chunk('old', 'u'),
      updated([text('old'), call('running')], 'u'),
      delta('old', 'u'),
    ];
    expect(texts([...running, create(), delta('ours')])).toEqual(['ours']);
    expect(texts([...running, message('u'), chunk('old', 'u')])).toEqual([]);
    expect(texts([...running, create(), delta('ours')], { turnId: 'u' })).toEqual(['old']);
  });

  it('is one of our channel, or of none', () => {
    const options = { channel: WEB };
    const turns = (place: object) => [create('s', place), delta('s', 's'), create('t'), delta('t')];
    expect(texts(turns(SLACK), options)).toEqual(['t']);
    expect(texts(turns({ ...WEB, channelId: 'other' }), options)).toEqual(['t']);
    expect(texts(turns({ ...WEB, channelType: 'other' }), options)).toEqual(['t']);
    expect(texts(turns(WEB), options)).toEqual(['s']);
    expect(texts(turns({}), options)).toEqual(['s']);
    expect(texts(turns(SLACK))).toEqual(['s']);
  });

  it('is no message of a person, of the system, or of a workflow', () => {
    const others = [
      userMessage('p'),
      message('y', { role: 'system' }),
      message('w', { content: 'whole', parts: undefined }),
      message('x', { parts: { type: 'screenshot' } }),
    ];
    expect(translate(others).chunks).toEqual([]);
    expect(texts([...others, ...turnOf('t', 'ours')])).toEqual(['ours']);
    expect(texts([message('t', { parts: undefined }), chunk('ours')])).toEqual(['ours']);
  });

  it('may come whole with its announcement', () => {
    const parts = [text('whole'), FINISH];
    const { translator, chunks } = translate([message('t', { parts })]);
    expect(translator.ended).toBe(true);
    expect(chunks).toContainEqual({ type: 'text-delta', id: 'text-1', delta: 'whole' });
    expect(texts([create(), message('t', { content: 'whole', parts: undefined })])).toEqual([
      'whole',
    ]);
  });

  it('goes on under another id when its prompt is sent again', () => {
    const gone = sessionStatus({ runnerConnected: false, runnerDisconnected: true });
    const stuck = sessionStatus({ runnerBusy: false, watchdogRecovery: true });
    for (const lost of [gone, stuck]) {
      const first = [message('t'), chunk('One ')];
      expect(texts([...first, lost, ...turnOf('u', 'Two')])).toEqual(['One ', 'Two']);
      expect(texts([...first, lost, chunk('more'), ...turnOf('u', 'Two')])).toEqual(['One more']);
      expect(texts([lost, ...first, ...turnOf('u', 'Two')])).toEqual(['One ']);
    }
  });
});

describe('the queue of a session', () => {
  const queued = (queuePosition?: number) => sessionStatus({ promptQueued: true, queuePosition });
  const dequeued = (remaining?: number) => sessionStatus({ promptDequeued: true, remaining });

  it('is waited in until our prompt leaves it', () => {
    const { translator, chunks } = translate([queued(2), ...turnOf('u', 'theirs')]);
    expect([translator.waiting, chunks]).toEqual([true, []]);
    translator.push(dequeued(2));
    expect(translator.waiting).toBe(true);
    expect(turnOf('v', 'next').flatMap((event) => translator.push(event))).toEqual([]);
    translator.push(dequeued(1));
    expect(translator.waiting).toBe(false);
    expect(types(translator.push(message('t')))).toEqual(['start', 'start-step']);
  });

  it('has no place without a number, and none left when it is empty', () => {
    expect(texts([queued(), dequeued(), ...turnOf('t', 'ours')])).toEqual(['ours']);
    expect(texts([queued(5), dequeued(0), ...turnOf('t', 'ours')])).toEqual(['ours']);
  });

  it('is not ours when others wait behind us', () => {
    const { translator } = translate([queued(1), queued(2), dequeued(1)]);
    expect(translator.waiting).toBe(false);
    const running = [userMessage('p'), agentStatus('thinking'), queued(1)];
    expect(translate(running).translator.waiting).toBe(false);
    expect(translate([create(), queued(1)]).translator.waiting).toBe(false);
    expect(translate([queued(1)], { turnId: 't' }).translator.waiting).toBe(false);
  });

  it('is ours when what works is the turn before', () => {
    const { translator } = translate([agentStatus('streaming'), userMessage('p'), queued(1)]);
    expect(translator.waiting).toBe(true);
    expect(types([...translator.push(dequeued()), ...translator.push(create())])).toEqual([
      'start',
      'start-step',
    ]);
  });

  it('means nothing any more once nothing runs', () => {
    const idle = sessionStatus({ runnerBusy: false });
    expect(translate([queued(3), idle]).translator.waiting).toBe(false);
    expect(texts([queued(3), idle, ...turnOf('t', 'ours')])).toEqual(['ours']);
    for (const more of [{ aborted: true }, { watchdogRecovery: true }]) {
      const status = sessionStatus({ runnerBusy: false, ...more });
      expect(translate([queued(1), status]).translator.waiting).toBe(true);
    }
  });

  it('is ours where a prompt is shown as pending that may be another', () => {
    const pending = { type: 'queue.state', data: { pending: { content: 'x' } } };
    expect(translate([pending, queued(1)]).translator.waiting).toBe(true);
  });

  it('can be left for good', () => {
    const withdrawn = { type: 'queue.withdrawn' };
    expect(fold([queued(1), withdrawn]).metadata).toEqual({
      outcome: 'stopped',
      reason: 'withdrawn',
    });
    expect(translate([withdrawn]).translator.ended).toBe(false);
  });

  it('lets nothing of the turn before into ours', () => {
    const theirs = [
      agentStatus('streaming'),
      question(),
      { type: 'error', error: 'theirs' },
      { type: 'aborted' },
      { type: 'complete' },
    ];
    const events = [queued(1), ...theirs, dequeued(), create()];
    expect(types(translate(events).chunks)).toEqual(['start', 'start-step']);
  });
});

describe('what ends a turn', () => {
  const idle = sessionStatus({ runnerBusy: false });
  const outcome = (...events: unknown[]) => fold(events).metadata;
  const hasEnded = (...events: unknown[]) => translate(events).translator.ended;

  it('is the end of our turn, not of another', () => {
    expect(hasEnded(create(), finalize('end_turn', { turnId: 'u' }))).toBe(false);
    expect(hasEnded(create(), finalize('end_turn', { turnId: null }))).toBe(true);
    expect(hasEnded(message(), updated([FINISH], 'u'))).toBe(false);
    expect(hasEnded(message(), updated([FINISH]))).toBe(true);
    expect(outcome(create(), finalize('max_tokens'))).toEqual({ outcome: 'finished' });
  });

  it('is complete where there was no finalize', () => {
    expect(outcome(create(), { type: 'complete' })).toEqual({ outcome: 'finished' });
  });

  it('is not what the turn before left behind', () => {
    const left = [
      { type: 'complete' },
      { type: 'aborted' },
      idle,
      finalize('error', { turnId: null, error: 'aborted' }),
      finalize('end_turn', { turnId: 'old' }),
    ];
    for (const event of left) {
      expect(hasEnded(event), JSON.stringify(event)).toBe(false);
      expect(hasEnded(agentStatus('idle'), event), JSON.stringify(event)).toBe(false);
    }
    const theirs = [delta('theirs', 'u'), agentStatus('streaming')];
    expect(hasEnded(...theirs, idle)).toBe(false);
    expect(hasEnded(create(), finalize('end_turn', { turnId: 'u' }), { type: 'complete' })).toBe(
      false,
    );
  });

  it('is also the end of an agent that worked and said nothing', () => {
    for (const status of ['thinking', 'streaming', 'tool_calling']) {
      expect(outcome(agentStatus(status), { type: 'complete' })).toEqual({ outcome: 'finished' });
      expect(outcome(agentStatus(status), idle)).toMatchObject({ outcome: 'stopped' });
    }
    expect(outcome(agentStatus('thinking'), finalize('error', { turnId: null }))).toMatchObject({
      outcome: 'failed',
    });
  });

  it('is idleness without a finish, or an abort, and says so', () => {
    const stopped = { outcome: 'stopped', reason: 'aborted' };
    expect(outcome(message(), chunk('a'), idle)).toEqual(stopped);
    expect(outcome(message(), sessionStatus({ aborted: true }))).toEqual(stopped);
    expect(outcome(create(), { type: 'aborted' })).toEqual(stopped);
    expect(hasEnded(message(), agentStatus('idle'))).toBe(false);
    expect(hasEnded(message(), sessionStatus({ runnerBusy: true }))).toBe(false);
  });

  it('ignores what follows an abort', () => {
    const { translator, chunks } = translate([create(), { type: 'aborted' }]);
    const late = [finalize('error', { turnId: null, error: 'x' }), { type: 'complete' }];
    expect(late.flatMap((event) => translator.push(event))).toEqual([]);
    expect(types(chunks)).not.toContain('error');
  });

  it('is no error of another turn or prompt', () => {
    const error = (messageId: string) => ({ type: 'error', messageId, error: 'x' });
    expect(hasEnded(create(), create('u'), error('u'))).toBe(false);
    expect(hasEnded(create(), userMessage('p2'), error('p2'))).toBe(false);
    expect(hasEnded(userMessage('p'), create(), error('p'))).toBe(true);
    expect(hasEnded(create(), error('t'))).toBe(true);
    expect(hasEnded(create(), error('an id of its own'))).toBe(true);
  });

  it('is no refused answer', () => {
    const refused = { type: 'error', messageId: 'e', message: 'Already answered' };
    expect(hasEnded(create(), { ...refused, promptId: 'q' })).toBe(false);
    expect(hasEnded(create(), { ...refused, data: { promptId: 'q' } })).toBe(false);
  });

  it('knows its prompt by the id an agent told while it worked', () => {
    const begun = [
      agentStatus('idle', { messageId: 'p0' }),
      agentStatus('thinking', { messageId: 'p1' }),
      create(),
    ];
    const about = (type: string, messageId: string) => ({ type, messageId, error: 'x' });
    expect(hasEnded(...begun, about('complete', 'p0'))).toBe(false);
    expect(hasEnded(...begun, about('error', 'p0'))).toBe(false);
    expect(hasEnded(...begun, about('complete', 'p1'))).toBe(true);
    expect(hasEnded(...begun, about('error', 'p1'))).toBe(true);
    const status = agentStatus('streaming', { messageId: 'p0' });
    expect(types(translate([...begun, status]).chunks)).toHaveLength(3);
  });

  it('does not let a tool answer after it', () => {
    const { translator } = translate([create(), tool('running', { args: {} }), finalize()]);
    expect(translator.push(tool('completed', { result: 1 }))).toEqual([]);
  });

  it('fails with the error part of a snapshot, wherever it stands', () => {
    const error = { type: 'error', message: 'Overloaded' };
    for (const parts of [
      [error, FINISH],
      [FINISH, error],
      [error, { type: 'finish', reason: 'error' }],
    ]) {
      const { chunks } = translate([message(), updated(parts)]);
      expect(chunks.at(-2)).toEqual({ type: 'error', errorText: 'Overloaded' });
    }
    for (const last of [idle, { type: 'complete' }, updated([FINISH])]) {
      const { chunks } = translate([message(), updated([error]), last]);
      expect(chunks.at(-2)).toEqual({ type: 'error', errorText: 'Overloaded' });
    }
    const { translator } = translate([message(), updated([error])]);
    expect(translator.end().at(-2)).toEqual({ type: 'error', errorText: 'Overloaded' });
    expect(outcome(message(), updated([error, { type: 'finish', reason: 'canceled' }]))).toEqual({
      outcome: 'stopped',
      reason: 'canceled',
    });
  });
});

describe('what an event means for the prompt of a session', () => {
  const idle = sessionStatus({ runnerBusy: false });
  const joined = (queuePosition: number) => sessionStatus({ promptQueued: true, queuePosition });
  const left = (remaining: number) => sessionStatus({ promptDequeued: true, remaining });
  const asks = (content: string) => ({
    type: 'message',
    data: { id: `prompt ${content}`, role: 'user', content },
  });
  const error = { type: 'error', error: 'x' };

  function expecting(content = 'ours') {
    const matcher = createTurnMatcher();
    matcher.expect({ content, channel: WEB });
    const after = (...events: unknown[]) => events.map((event) => matcher.match(event)).at(-1);
    return { matcher, after };
  }

  it('begins, continues and ends the turn, by name or without', () => {
    expect(expecting().after(message())).toBe('begun');
    expect(expecting().after(message(), chunk('a'))).toBe('ours');
    expect(expecting().after(message(), chunk('a', 'u'))).toBe('other');
    expect(expecting().after(message(), updated([FINISH]))).toBe('ended');
    expect(expecting().after(message('t', { parts: [FINISH] }))).toBe('ended');
    expect(expecting().after(create(), finalize())).toBe('ended');
    expect(expecting().after(create(), { type: 'complete' })).toBe('ended');
    const cuts = [{ type: 'aborted' }, finalize('error', { turnId: null }), idle, error];
    for (const cut of cuts) expect(expecting().after(create(), cut)).toBe('cut');
    for (const end of [{ type: 'aborted', turnId: 'u' }, finalize('end_turn', { turnId: 'u' })]) {
      expect(expecting().after(create(), end)).toBe('other');
    }
  });

  it('is not the beginning of a turn whose prompt was shown before ours', () => {
    const { after } = expecting();
    expect(after(asks('theirs'), message('u'))).toBe('other');
    expect(after(message('t'))).toBe('begun');
    expect(expecting().after(asks('theirs'), asks('ours'), message('t'))).toBe('begun');
    expect(expecting().after(asks('theirs'), idle, message('t'))).toBe('begun');
  });

  it('is the queue, in which our prompt waits or another', () => {
    const { matcher, after } = expecting();
    expect(after(asks('ours'), joined(2))).toBe('queued');
    expect([matcher.isWaiting, matcher.wasQueued]).toEqual([true, true]);
    expect(after(left(1), message('u'))).toBe('other');
    expect(after(left(0))).toBe('queue');
    expect(after(message('t'))).toBe('begun');
    expect(expecting().after(asks('ours'), asks('theirs'), joined(1))).toBe('queue');
    expect(expecting().after(asks('ours'), message('t'), joined(1))).toBe('queue');
    // Our prompt is on its way while the server queues the one that it has shown before.
    const racing = expecting('first');
    racing.after(message('t'), asks('theirs'));
    racing.matcher.finish({ isRunning: false });
    racing.matcher.expect({ content: 'next', channel: WEB });
    expect(racing.after(joined(1))).toBe('queue');
    expect(racing.after(asks('next'), joined(2))).toBe('queued');
  });

  it('is of our turn if our prompt has left the queue, whatever ran before', () => {
    const queued = [chunk('a', 'u'), asks('ours'), joined(1)];
    expect(expecting().after(...queued, error)).toBe('other');
    expect(expecting().after(...queued, left(0), error)).toBe('cut');
    const over = [joined(1), finalize('end_turn', { turnId: 'u' }), left(0), create('t')];
    expect(expecting().after(...over, { type: 'complete' })).toBe('ended');
  });

  it('is the withdrawal of our prompt only if it has our words', () => {
    const withdrawn = (content: string) => ({ type: 'queue.withdrawn', data: { content } });
    expect(expecting().after(joined(1), withdrawn('ours'))).toBe('ended');
    expect(expecting().after(joined(1), withdrawn('theirs'))).toBe('other');
    expect(expecting().after(withdrawn('ours'))).toBe('other');
  });

  it('leaves a prompt in the queue when the runner is idle: it may be the end of an abort', () => {
    expect(expecting().after(joined(2), idle)).toBe('doubtful');
    expect(expecting().after(joined(2), idle, message('u'))).toBe('other');
    expect(expecting().after(asks('ours'), idle)).toBe('doubtful');
    expect(expecting().after(idle)).toBe('other');
  });

  it('ends a prompt on which an agent worked, though no turn was announced', () => {
    const thinking = agentStatus('thinking');
    for (const end of [{ type: 'complete' }, { type: 'aborted' }, idle]) {
      expect(expecting().after(thinking, end)).toBe('unannounced');
      expect(expecting().after(chunk('a', 'u'), thinking, end)).not.toBe('unannounced');
      expect(expecting().after(thinking, chunk('a', 'u'), idle, end)).not.toBe('unannounced');
      expect(expecting().after(message('s', SLACK), thinking, end)).not.toBe('unannounced');
    }
    const over = updated([FINISH], 'u');
    expect(expecting().after(thinking, chunk('a', 'u'), over, idle)).toBe('other');
    expect(expecting().after(thinking, asks('ours'), joined(1), idle)).toBe('doubtful');
    const [begun, ended] = [message('s', SLACK), updated([FINISH], 's')];
    expect(expecting().after(begun, ended, thinking, idle)).toBe('unannounced');
    expect(expecting().after(begun, thinking, ended, idle)).toBe('other');
  });

  it('is a complete of our turn, unless one is due for another', () => {
    const complete = { type: 'complete' };
    const over = finalize('end_turn', { turnId: 'u' });
    expect(expecting().after(create('t'), over, complete)).toBe('other');
    expect(expecting().after(create('t'), over, complete, complete)).toBe('ended');
  });

  it('has an error of ours fail our turn, and no other', () => {
    expect(expecting().after(error)).toBe('cut');
    expect(expecting().after(chunk('a', 'u'), error)).toBe('other');
    expect(expecting().after(joined(1), error)).toBe('other');
    expect(expecting().after({ ...error, ...SLACK })).toBe('other');
    expect(expecting().after(message('s', SLACK), error)).toBe('cut');
    const over = updated([FINISH], 'u');
    expect(expecting().after(over, chunk('late', 'u'), error)).toBe('cut');
    expect(expecting().after(asks('theirs'), message('u', { parts: [FINISH] }), error)).toBe('cut');
    expect(expecting().after(delta('a', null), error)).toBe('other');
    expect(expecting().after(delta('a', null), over, error)).toBe('cut');
    expect(expecting().after(message(), { ...error, messageId: 'prompt theirs' })).toBe('cut');
    const named = { ...error, messageId: 'prompt theirs' };
    expect(expecting().after(message(), asks('theirs'), named)).toBe('other');
  });

  it('starts a runner for the first prompt, which leaves the queue without notice', () => {
    const waking = { promptQueued: true, queuePosition: 1, queueReason: 'waking' };
    const { matcher, after } = expecting();
    expect(after(sessionStatus(waking))).toBe('queued');
    expect(after(idle)).toBe('other');
    after(sessionStatus({ runnerConnected: true }));
    expect(matcher.isWaiting).toBe(false);
    expect(after(message())).toBe('begun');
    expect(expecting().after(sessionStatus(waking), left(0))).toBe('queue');
    const init = { type: 'init', session: {}, data: { runnerConnected: false } };
    expect(expecting().after(init, joined(1), message())).toBe('begun');
  });

  it('answers the prompt with another turn after its runner has gone', () => {
    const { matcher, after } = expecting();
    const lost = sessionStatus({ runnerDisconnected: true });
    expect(after(message('t'), lost)).toBe('ours');
    expect(matcher.isWaiting).toBe(true);
    expect(after(message('u'))).toBe('begun');
    expect(matcher.isWaiting).toBe(false);
    expect(after(chunk('late', 't'))).toBe('other');
    matcher.finish({ isRunning: false });
    matcher.expect({ content: 'next', channel: WEB });
    expect(matcher.isWaiting).toBe(false);
    expect(expecting().after(message('t'), message('u'))).toBe('overtaken');
    expect(expecting().after(message('t'), message('u', SLACK))).toBe('other');
  });

  it('shows a pending prompt as a message only when its runner gets it', () => {
    const pending = { type: 'queue.state', data: { pending: { content: 'ours' } } };
    const { after } = expecting();
    after(pending, joined(1), asks('ours'));
    expect(after(message('t'))).toBe('begun');
    const theirs = { type: 'queue.state', data: { pending: { content: 'theirs' } } };
    expect(expecting().after(asks('ours'), theirs, joined(1))).toBe('queue');
  });

  it('keeps a turn that was given up apart from the next', () => {
    for (const [wantsStop, begun, ended] of [
      [true, 'unwanted-begun', 'unwanted-ended'],
      [false, 'other', 'other'],
    ] as const) {
      const { matcher, after } = expecting('first');
      after(asks('first'));
      matcher.giveUp(wantsStop);
      expect(matcher.isStopPending).toBe(wantsStop);
      matcher.expect({ content: 'next', channel: WEB });
      expect(after(asks('next'), agentStatus('thinking'))).toBe('other');
      expect(after(message('t'))).toBe(begun);
      expect(after(create('t'))).toBe('other');
      expect(after(updated([FINISH], 't'))).toBe(ended);
      expect(after(message('u'))).toBe('begun');
    }
  });

  it('does not wait for a given up prompt that will not begin any more', () => {
    const { matcher, after } = expecting('first');
    matcher.giveUp(true);
    matcher.expect({ content: 'next', channel: WEB });
    // Only the later prompt was shown, so that the first was never taken.
    expect(after(asks('next'), message('t'))).toBe('begun');
    expect(matcher.isStopPending).toBe(false);
    const failing = expecting('first');
    failing.after(asks('first'));
    failing.matcher.giveUp(true);
    failing.matcher.expect({ content: 'next', channel: WEB });
    expect(failing.after(asks('next'), error)).toBe('other');
    expect(failing.after(message('t'))).toBe('begun');
    const queued = expecting('first');
    queued.after(asks('first'));
    queued.matcher.giveUp(true);
    queued.matcher.expect({ content: 'next', channel: WEB });
    expect(queued.after(asks('next'), joined(1), left(0), message('t'))).toBe('begun');
    const elsewhere = createTurnMatcher();
    elsewhere.expect({ content: 'first', channel: SLACK });
    elsewhere.giveUp(true);
    elsewhere.expect({ content: 'next', channel: WEB });
    expect(elsewhere.match(message('t', WEB))).toBe('begun');
    expect(elsewhere.isStopPending).toBe(false);
  });

  it('says nothing of an unwanted turn any more when ours has begun', () => {
    const { matcher, after } = expecting('first');
    matcher.giveUp(true);
    matcher.expect({ content: 'next', channel: WEB });
    expect(after(message('u'))).toBe('unwanted-begun');
    expect(after(asks('next'), message('t'))).toBe('begun');
    expect(after(updated([FINISH], 'u'))).toBe('other');
  });

  it('does not wait for a turn that ran before ours', () => {
    const { matcher, after } = expecting('first');
    expect(after(chunk('a', 'u'), message('t'))).toBe('begun');
    matcher.finish({ isRunning: false });
    matcher.expect({ content: 'next', channel: WEB });
    expect(matcher.isWaiting).toBe(false);
  });

  it('does not mistake a turn that was left for the next', () => {
    for (const isRunning of [true, false]) {
      const { matcher, after } = expecting('first');
      after(message('t'));
      matcher.finish({ isRunning });
      matcher.expect({ content: 'next', channel: WEB });
      expect(after(chunk('late', 't'))).toBe('other');
      expect(matcher.isWaiting).toBe(isRunning);
      expect(after(updated([FINISH], 't'))).toBe('other');
      expect(matcher.isWaiting).toBe(false);
      expect(after({ type: 'complete' })).toBe('other');
      expect(after(message('u'))).toBe('begun');
    }
  });
});
