import { describe, expect, it } from 'vitest';
import {
  agentStatus,
  create,
  delta,
  finalize,
  fold,
  message,
  question,
  sessionStatus,
  tool,
  translate,
  types,
} from '../../../test/agent-ops-events.ts';

const OURS = { promptId: 'p' };
const LINKED = { turnId: 't', promptId: 'p' };
const queued = (promptId: string, queuePosition: unknown) =>
  sessionStatus({ promptQueued: true, promptId, queuePosition });
const words = (events: unknown[], options: object = OURS) =>
  fold(events, options).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));

describe('the turn of a prompt that the server names', () => {
  it('is the one that answers it, whatever came first', () => {
    const theirs = [create('u', { promptId: 'o' }), delta('theirs', 'u'), delta('whose?', null)];
    expect(translate(theirs, OURS).chunks).toEqual([]);
    expect(words([...theirs, create('t', OURS), delta('ours'), delta('theirs', 'u')])).toEqual([
      'ours',
    ]);
    expect(translate([create('t')], OURS).chunks).toEqual([]);
    expect(translate([create('t', { promptId: 'o' })], { ...OURS, turnId: 't' }).chunks).toEqual(
      [],
    );
    expect(words([delta('ours')], { ...OURS, turnId: 't' })).toEqual(['ours']);
  });

  it('can end before it begins', () => {
    const ends = [
      { ...finalize('error', { error: 'No agent.' }), ...OURS, seq: 1 },
      { type: 'error', error: 'No agent.', ...LINKED },
    ];
    for (const end of ends) {
      const { chunks, translator } = translate([queued('p', 1), end], { ...OURS, messageId: 'm' });
      expect(types(chunks)).toEqual([
        ...['start', 'data-queue', 'data-queue', 'message-metadata', 'error', 'finish'],
      ]);
      expect(translator.ended).toBe(true);
    }
    const theirs = { ...finalize('error'), promptId: 'o' };
    expect(translate([theirs, { ...theirs, promptId: undefined }], OURS).translator.ended).toBe(
      false,
    );
  });

  it('is found in messages too', () => {
    const data = {
      id: 't',
      role: 'assistant',
      promptId: 'p',
      parts: [{ type: 'text', text: 'a' }],
    };
    const init = { type: 'init', session: { messages: [{ id: 'p', role: 'user' }, data] } };
    expect(words([message('u', { promptId: 'o' }), message('t', OURS), delta('a')])).toEqual(['a']);
    expect(words([{ type: 'message.updated', data }, delta('b')])).toEqual(['ab']);
    expect(words([init, delta('b')])).toEqual(['ab']);
    expect(words([{ ...init, session: { messages: [{ ...data, promptId: 'o' }] } }])).toEqual([]);
  });

  it('ends only with what names it', () => {
    const idle = [
      sessionStatus({ runnerBusy: false }),
      sessionStatus({ aborted: true }),
      sessionStatus({ runnerDisconnected: true }),
      { type: 'aborted' },
      { type: 'aborted', turnId: 'u' },
      { type: 'complete' },
      { type: 'complete', messageId: 'o' },
      finalize('end_turn', { turnId: null }),
      finalize('end_turn', { turnId: 'u' }),
      { type: 'error', error: 'x', turnId: 'u' },
      { type: 'queue.withdrawn', data: OURS },
      sessionStatus({ promptWithdrawn: 'p' }),
    ];
    const { translator } = translate([create('t', OURS), ...idle], OURS);
    expect(translator.ended).toBe(false);
    const ends = [
      finalize(),
      { type: 'aborted', turnId: 't' },
      { type: 'complete', messageId: 'p' },
      { type: 'error', error: 'x', turnId: 't' },
      { type: 'error', error: 'x', messageId: 'p' },
      { type: 'error', error: 'x' },
    ];
    for (const end of ends) {
      const turn = translate([create('t', OURS), end], OURS).translator;
      expect(turn.ended, JSON.stringify(end)).toBe(true);
    }
  });

  it('has the status that is said of it', () => {
    const shown = (...events: unknown[]) =>
      translate(events, OURS).chunks.filter(({ type }) => type === 'data-agent-status').length;
    expect(shown(agentStatus('thinking'), create('t', OURS))).toBe(0);
    expect(shown(agentStatus('thinking', OURS), create('t', OURS))).toBe(1);
    expect(shown(create('t', OURS), agentStatus('thinking'))).toBe(1);
    expect(shown(create('t', OURS), agentStatus('thinking', { turnId: 'u' }))).toBe(0);
    expect(shown(create('t', OURS), agentStatus('thinking', { promptId: 'o' }))).toBe(0);
  });

  it('is told once, though its events are told again', () => {
    const told = [
      create('t', { ...OURS, seq: 1 }),
      { ...delta('a'), seq: 2 },
      { ...delta('a'), seq: 3 },
    ];
    for (const options of [OURS, {}, { turnId: 't' }]) {
      expect(words([...told, ...told, { ...delta('b'), seq: 4 }], options)).toEqual(['aab']);
    }
    const theirs = { ...delta('x', 'u'), seq: 9 };
    expect(words([...told, theirs, { ...delta('b'), seq: 4 }])).toEqual(['aab']);
  });

  it('goes on in another turn with numbers of its own where the server says nothing of prompts', () => {
    const gone = sessionStatus({ runnerDisconnected: true });
    const again = [create('u', { seq: 1 }), { ...delta('b', 'u'), seq: 2 }];
    expect(words([create('t', { seq: 1 }), { ...delta('a'), seq: 2 }, gone, ...again], {})).toEqual(
      ['a', 'b'],
    );
  });
});

describe('a prompt’s place in the queue', () => {
  const options = { ...OURS, messageId: 'm' };
  const places = (events: unknown[], given: object = options) =>
    translate(events, given).chunks.flatMap((one) =>
      one.type === 'data-queue' ? [(one as { data: unknown }).data] : [],
    );
  const waiting = (position: number) => ({ position, status: 'waiting' });

  it('is shown as it changes, and that it has begun', () => {
    const state = { type: 'queue.state', data: { queue: [{ promptId: 'p', position: 1 }] } };
    const init = { type: 'init', session: {}, data: state.data };
    const events = [queued('o', 1), queued('p', 3), queued('p', 3), queued('p', 2), state, init];
    expect(places([...events, create('t', OURS), queued('p', 1), state])).toEqual([
      waiting(3),
      waiting(2),
      waiting(1),
      { position: 0, status: 'begun' },
    ]);
    const { chunks, translator } = translate([...events, create('t', OURS)], options);
    expect(types(chunks).filter((type) => type.startsWith('start'))).toEqual([
      'start',
      'start-step',
    ]);
    expect(fold([...events, create('t', OURS)], options).parts).toHaveLength(2);
    expect(translator.waiting).toBe(false);
  });

  it('is shown only in a message whose id is known, and only where prompts have names', () => {
    expect(places([queued('p', 1), create('t', OURS)], OURS)).toEqual([]);
    expect(places([queued('p', 1), create('t', OURS)], { messageId: 'm' })).toEqual([]);
    expect(translate([queued('p', 1)], OURS).translator.waiting).toBe(true);
  });

  it('is the first where nothing sound is said of it', () => {
    for (const odd of [undefined, 0, -1, 1.5, '2', null]) {
      expect(places([queued('p', odd)])).toEqual([waiting(1)]);
    }
    for (const odd of [5, null, {}, [null]]) {
      expect(places([{ type: 'queue.state', data: { queue: odd } }])).toEqual([]);
    }
  });

  it('is left when the session takes it, and the turn ends when somebody else does', () => {
    const left = { type: 'queue.state', data: { queue: [] } };
    expect(translate([queued('p', 1), left], options).translator.waiting).toBe(false);
    const withdrawals = [
      { type: 'queue.withdrawn', data: OURS },
      sessionStatus({ promptWithdrawn: 'p' }),
    ];
    for (const withdrawn of withdrawals) {
      const others = JSON.parse(JSON.stringify(withdrawn).replace('"p"', '"o"'));
      const { chunks, translator } = translate([queued('p', 1), others], options);
      expect([chunks.length, translator.ended]).toEqual([2, false]);
      expect(translator.push(withdrawn)).toEqual([
        { type: 'data-queue', id: 'queue', data: { position: 0, status: 'withdrawn' } },
        {
          type: 'finish',
          finishReason: 'other',
          messageMetadata: { outcome: 'stopped', reason: 'withdrawn' },
        },
      ]);
    }
  });
});

describe('an error that names what it is about', () => {
  it('ends the turn only if it is about the turn', () => {
    const refusals = [
      { refused: 'prompt', promptId: 'p' },
      { refused: 'answer', turnId: 't' },
      { questionId: 'q' },
      { questionId: 'q', turnId: 't' },
      { promptId: 'p' },
      { data: { promptId: 'p' } },
      { turnId: 'u' },
    ];
    for (const options of [OURS, {}]) {
      for (const refusal of refusals) {
        const error = { type: 'error', error: 'x', code: 'not-allowed', ...refusal };
        const { translator } = translate([create('t', OURS), error], options);
        expect(translator.ended, JSON.stringify([refusal, options])).toBe(false);
      }
      const error = { type: 'error', error: 'x', code: 'agent-lost', ...LINKED };
      expect(fold([create('t', OURS), error], options).metadata).toEqual({
        outcome: 'failed',
        code: 'agent-lost',
      });
    }
    expect(translate([{ type: 'error', error: 'x', turnId: 't' }]).translator.ended).toBe(true);
  });

  it('has the code of the turn’s end', () => {
    const code = (...args: Parameters<typeof finalize>) =>
      fold([create(), finalize(...args)]).metadata?.code;
    expect(code('error', { error: 'x', code: 'agent-lost' })).toBe('agent-lost');
    expect(code('error', { code: 'agent-lost' })).toBe('agent-lost');
    expect(code('error', { error: 'x' })).toBe('run-failed');
    expect(code('error', { error: 'x', code: 5 })).toBe('run-failed');
    expect(code('canceled', { code: 'agent-lost' })).toBeUndefined();
  });
});

describe('parts that only a server of ours has', () => {
  const input = (piece: string, more: object = {}) => ({
    type: 'message.part.tool-input-delta',
    turnId: 't',
    callId: 'c',
    toolName: 'bash',
    delta: piece,
    ...more,
  });
  const pieces = (...events: unknown[]) =>
    translate([create(), ...events]).chunks.flatMap((one) =>
      one.type === 'tool-input-delta' ? [one.inputTextDelta] : [],
    );
  const data = (name: unknown, more: object = {}) => ({
    type: 'message.part.data',
    turnId: 't',
    name,
    data: 1,
    ...more,
  });
  const STEP = { type: 'message.part.step', turnId: 't' };

  it('stream a call’s arguments as its JSON, whether it was begun or not', () => {
    const json = ['{', '"a": [1', ', {"b":"{"}', ']}'];
    for (const begun of [[], [tool('pending')]]) {
      expect(pieces(...begun, ...json.map((piece) => input(piece))).join('')).toBe(json.join(''));
      expect(pieces(...begun, input(' \n'), input('\t{"a"'), input(':1}')).join('')).toBe(
        '{"a":1}',
      );
    }
    // What is no object cannot follow the brace; the whole comes with the call.
    expect(pieces(input('["a"'), input(']'))).toEqual(['{']);
    expect(pieces(tool('running', { args: {} }), input('{'))).toEqual([]);
    const { translator } = translate([create(), input('{', { toolName: undefined })]);
    expect(translator.stats.malformed).toEqual({ 'message.part.tool-input-delta': 1 });
  });

  it('leave no half of an input behind', () => {
    const half = [create(), input('{"a":"b')];
    expect(fold([...half, finalize()]).parts[1]).toMatchObject({
      state: 'output-error',
      input: {},
    });
    const { parts } = fold([...half, STEP, tool('completed', { args: { a: 'b' }, result: 1 })]);
    expect(parts[1]).toMatchObject({ state: 'output-available', input: {}, output: 1 });
  });

  it('make steps, but no empty ones', () => {
    const steps = (...events: unknown[]) =>
      types(translate([create(), ...events]).chunks).filter((type) => type === 'start-step').length;
    expect(steps(STEP, STEP)).toBe(1);
    const contents = [
      delta('a'),
      { type: 'message.part.reasoning-delta', turnId: 't', delta: 'a' },
      tool('pending'),
      input('{'),
      data('chart'),
      data('chart', { id: '1' }),
      question(),
      { type: 'message.part.file', turnId: 't', url: 'data:,x', mediaType: 'text/plain' },
      { type: 'message.part.source', turnId: 't', sourceId: 's', url: 'https://x.test' },
    ];
    for (const content of contents) {
      expect(steps(content, STEP, STEP), JSON.stringify(content)).toBe(2);
    }
    const nothing = [data('chart', { transient: true }), delta(''), agentStatus('thinking')];
    for (const content of nothing) expect(steps(content, STEP), JSON.stringify(content)).toBe(1);
    expect(steps(tool('running', { args: {} }), STEP, tool('completed'), STEP)).toBe(2);
  });

  it('are malformed if a runner could say with them what is not its to say', () => {
    const names = [
      'question',
      'agent-status',
      'queue',
      'Queue',
      '',
      'a b',
      '-a',
      'a\n',
      'ü',
      5,
      null,
    ];
    for (const name of names) {
      const { chunks, translator } = translate([create(), data(name, { id: 'q' })]);
      expect(chunks, String(name)).toHaveLength(2);
      expect(translator.stats.malformed).toEqual({ 'message.part.data': 1 });
    }
    for (const odd of [{ id: 5 }, { data: undefined }]) {
      expect(translate([create(), data('chart', odd)]).chunks).toHaveLength(2);
    }
    expect(types(translate([create(), data('Chart.v2_x')]).chunks)[2]).toBe('data-Chart.v2_x');
  });

  it('are malformed if a client could not read them', () => {
    const odd = [
      { type: 'message.part.source', sourceId: '', url: 'https://x.test' },
      { type: 'message.part.source', sourceId: 's' },
      { type: 'message.part.source', sourceId: 's', url: 5, mediaType: 'a/b', title: 'T' },
      { type: 'message.part.source', sourceId: 's', url: 'https://x.test', title: 5 },
      { type: 'message.part.source', sourceId: 's', mediaType: 'text/plain' },
      { type: 'message.part.file', url: 'data:,x' },
      { type: 'message.part.reasoning-delta', delta: 5 },
    ];
    for (const event of odd) {
      const { chunks, translator } = translate([create(), { turnId: 't', ...event }]);
      expect(chunks).toHaveLength(2);
      expect(translator.stats.malformed).toEqual({ [event.type]: 1 });
    }
  });

  it('name the call that a question waits in', () => {
    const asked = (more: object, ...calls: unknown[]) =>
      translate([create('t', OURS), ...calls, question({ ...LINKED, ...more })], {
        ...OURS,
        approvals: true,
      }).chunks.flatMap((one) => (one.type === 'tool-approval-request' ? [one.toolCallId] : []));
    const running = (callId: string, toolName: string) =>
      tool('running', { callId, toolName, args: {} });
    const calls = [running('c', 'deploy'), running('d', 'question')];
    expect(asked({ callId: 'c' }, ...calls)).toEqual(['c']);
    // Where none is named none waits: one is made for it.
    expect(asked({}, ...calls)).toEqual(['question-q']);
    expect(asked({ turnId: 'u', callId: 'c' }, ...calls)).toEqual([]);
    const late = [create('t', OURS), question({ ...LINKED, callId: 'c' }), tool('completed')];
    expect(fold(late, OURS).parts[1]).toMatchObject({ data: { status: 'answered' } });
  });
});
