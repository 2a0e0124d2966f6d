import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  AGENT_OPS_FIXTURES,
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
  recorded,
  sessionStatus,
  text,
  tool,
  translate,
  types,
  updated,
  userMessage,
} from '../../../test/agent-ops-events.ts';
import { AGENT_OPS_EVENT_TYPES, anyEvents, anyOptions } from '../../../test/arbitrary-agent-ops.ts';
import { describeTranslator } from '../../../test/translator-conformance.ts';
import { verifyChunks } from '../../core/verify.ts';
import { createAgentOpsTranslator } from './translate.ts';

describeTranslator('Agent Ops', AGENT_OPS_FIXTURES, createAgentOpsTranslator);

const RUNS = { providerExecuted: true };
const ls = { args: { command: 'ls' } };

describe('mapping Agent Ops events', () => {
  it('begins the message with the turn, and a text with its first word [RFC-MAP-01] [RFC-UNIT-01]', () => {
    const { chunks } = translate([create('turn-1')]);
    expect(chunks).toEqual([{ type: 'start', messageId: 'turn-1' }, { type: 'start-step' }]);
    const { chunks: more } = translate([create(), delta('a')]);
    expect(types(more)).toEqual(['start', 'start-step', 'text-start', 'text-delta']);
  });

  it('prefers the message id it is given to the turn’s', () => {
    const start = (options: object) => translate([create('t')], options).chunks[0];
    expect(start({ messageId: 'm' })).toEqual({ type: 'start', messageId: 'm' });
    expect(start({ messageId: 'm', turnId: 't' })).toEqual({ type: 'start', messageId: 'm' });
    expect(start({ turnId: 't' })).toEqual({ type: 'start', messageId: 't' });
  });

  it('names a message without a turn by itself', () => {
    const ids = [1, 2].map(() => createAgentOpsTranslator().end()[0]);
    expect(ids[0]).not.toEqual(ids[1]);
    const [start] = createAgentOpsTranslator({ generateMessageId: () => 'mine' }).end();
    expect(start).toEqual({ type: 'start', messageId: 'mine' });
  });

  it('keeps every delta as it is [RFC-MAP-02] [RFC-UNIT-02]', () => {
    const words = ['Hel', 'lo\n', ' ', '🙂', '</p>'];
    const { chunks } = translate([create(), ...words.map((word) => delta(word))]);
    const deltas = chunks.filter((one) => one.type === 'text-delta');
    expect(deltas.map((one) => one.delta)).toEqual(words);
    expect(new Set(deltas.map(({ id }) => id)).size).toBe(1);
  });

  it('takes chunks for text as well [RFC-MAP-03] [RFC-UNIT-03]', () => {
    const { chunks } = translate([message(), chunk('Hello'), chunk('theirs', 'other')]);
    expect(chunks.slice(2)).toEqual([
      { type: 'text-start', id: 'text-1' },
      { type: 'text-delta', id: 'text-1', delta: 'Hello' },
    ]);
  });

  it('shows a call that is about to run, with an input to render [RFC-MAP-04] [RFC-UNIT-04]', () => {
    const { chunks } = translate([create(), tool('pending', { args: {} })]);
    expect(chunks.slice(2)).toEqual([
      { type: 'tool-input-start', toolCallId: 'c', toolName: 'bash', ...RUNS },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' },
    ]);
  });

  it('shows what a tool is called with [RFC-MAP-05] [RFC-UNIT-05]', () => {
    const { chunks } = translate([create(), tool('running', ls)]);
    expect(chunks.slice(2)).toEqual([
      {
        type: 'tool-input-available',
        toolCallId: 'c',
        toolName: 'bash',
        input: { command: 'ls' },
        ...RUNS,
      },
    ]);
    expect(types(translate([create(), tool('running'), tool('running')]).chunks.slice(2))).toEqual([
      'tool-input-start',
      'tool-input-delta',
    ]);
  });

  it('shows what a tool gave, and keeps its input [RFC-MAP-06] [RFC-UNIT-06]', () => {
    const result = { files: ['a'] };
    const { chunks } = translate([
      create(),
      tool('running', ls),
      tool('completed', { args: {}, result }),
    ]);
    expect(chunks.slice(3)).toEqual([
      { type: 'tool-output-available', toolCallId: 'c', output: result, ...RUNS },
    ]);
  });

  it('shows a failed tool as failed, and the turn goes on [RFC-MAP-07] [RFC-UNIT-07]', () => {
    const { chunks, translator } = translate([
      create(),
      tool('error', { ...ls, error: 'two\nlines of /a/b/c.ts' }),
      delta('Went on.'),
    ]);
    expect(chunks[3]).toEqual({
      type: 'tool-output-error',
      toolCallId: 'c',
      errorText: 'two\nlines of /a/b/c.ts',
      ...RUNS,
    });
    expect(types(chunks)).not.toContain('error');
    expect(translator.ended).toBe(false);
  });

  it('passes a tool’s error on, whatever it is', () => {
    const errors = [{ message: 'an object’s' }, { code: 7 }, 0, '', undefined, null];
    const { parts } = fold([
      create(),
      ...errors.map((error, n) => tool('error', { callId: `c${n}`, error })),
    ]);
    expect(parts.flatMap((part) => ('errorText' in part ? [part.errorText] : []))).toEqual([
      'an object’s',
      '{"code":7}',
      '0',
      'The tool failed.',
      'The tool failed.',
      'The tool failed.',
    ]);
  });

  it('closes text, step and message when the turn ends [RFC-MAP-08] [RFC-UNIT-08]', () => {
    const { chunks, translator } = translate([create(), delta('a'), finalize()]);
    expect(types(chunks).slice(-3)).toEqual(['text-end', 'finish-step', 'finish']);
    expect(chunks.at(-1)).toEqual({
      type: 'finish',
      finishReason: 'stop',
      messageMetadata: { outcome: 'finished' },
    });
    expect(translator.ended).toBe(true);
    expect(translator.push(delta('late'))).toEqual([]);
  });

  it('tells a failed turn’s reason, then finishes [RFC-MAP-09] [RFC-UNIT-09] [RFC-ERR-04]', () => {
    const { chunks } = translate([
      create(),
      delta('a'),
      finalize('error', { error: 'Overloaded' }),
    ]);
    expect(chunks.slice(-5)).toEqual([
      { type: 'text-end', id: 'text-1' },
      { type: 'finish-step' },
      {
        type: 'message-metadata',
        messageMetadata: { outcome: 'failed', code: 'run-failed' },
      },
      { type: 'error', errorText: 'Overloaded' },
      { type: 'finish', finishReason: 'error' },
    ]);
  });

  it('ends a canceled turn without an error [RFC-MAP-10] [RFC-UNIT-10]', () => {
    const { chunks } = translate([create(), delta('a'), finalize('canceled', { error: 'x' })]);
    expect(types(chunks).slice(-3)).toEqual(['text-end', 'finish-step', 'finish']);
    expect(chunks.at(-1)).toEqual({
      type: 'finish',
      finishReason: 'other',
      messageMetadata: { outcome: 'stopped', reason: 'canceled' },
    });
  });

  it('carries the agent’s status beside the message [RFC-MAP-11] [RFC-UNIT-16] [RFC-EDGE-03]', () => {
    const { chunks } = translate([
      create(),
      delta('a'),
      agentStatus('tool_calling', { detail: 'bash' }),
      agentStatus('streaming', { detail: 5 }),
      delta('b'),
    ]);
    const status = (data: object) => ({ type: 'data-agent-status', transient: true, data });
    expect(chunks.slice(4, 6)).toEqual([
      status({ status: 'tool_calling', detail: 'bash' }),
      status({ status: 'streaming' }),
    ]);
    expect(types(chunks).filter((type) => type === 'text-start')).toHaveLength(1);
  });

  it('holds the last status until the message has begun', () => {
    const { chunks } = translate([agentStatus('idle'), agentStatus('thinking'), create()]);
    expect(types(chunks)).toEqual(['start', 'start-step', 'data-agent-status']);
    expect(chunks[2]).toMatchObject({ data: { status: 'thinking' } });
  });

  it('shows a question as a part, whole [RFC-MAP-12] [RFC-UNIT-17]', () => {
    const { chunks } = translate([
      create(),
      question({ options: ['Yes', 'No'], expiresAt: 1_794_769_643 }),
    ]);
    expect(chunks.at(-1)).toEqual({
      type: 'data-question',
      id: 'q',
      data: {
        questionId: 'q',
        text: 'Deploy?',
        options: ['Yes', 'No'],
        expiresAt: 1_794_769_643_000,
        status: 'open',
      },
    });
  });

  it('says nothing of what is no part of the turn [RFC-MAP-13] [RFC-MAP-14] [RFC-UNIT-18]', () => {
    const { translator, chunks } = translate([
      { type: 'init', session: { id: 's', messages: [{ id: 'old', role: 'assistant' }] } },
      userMessage('p'),
      updated([text('old')], 'old'),
      sessionStatus({ runnerConnected: true }),
      { type: 'status', status: 'running' },
      { type: 'git-state', data: {} },
      { type: 'diff' },
      { type: 'audit_log', entry: {} },
    ]);
    expect(chunks).toEqual([]);
    expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
  });

  it('makes an empty turn an empty message [RFC-EDGE-01] [RFC-UNIT-11]', () => {
    const { chunks } = translate([create(), finalize()]);
    expect(types(chunks)).toEqual(['start', 'start-step', 'finish-step', 'finish']);
    expect(fold([create(), finalize()]).parts).toEqual([{ type: 'step-start' }]);
  });

  it('lets tools answer in any order [RFC-EDGE-02]', () => {
    const { parts } = fold([
      create(),
      tool('running', { callId: 'a', ...ls }),
      tool('running', { callId: 'b', ...ls }),
      tool('completed', { callId: 'b', result: 'B' }),
      tool('completed', { callId: 'a', result: 'A' }),
    ]);
    expect(parts.slice(1)).toMatchObject([
      { toolCallId: 'a', output: 'A' },
      { toolCallId: 'b', output: 'B' },
    ]);
  });

  it('says a text once that comes as chunk and as delta, whichever is first [RFC-EDGE-04] [RFC-RISK-05]', () => {
    const words = ['Hel', 'lo'];
    const both = words.map((word) => [chunk(word), delta(word)]);
    for (const pairs of [both, both.map((pair) => pair.toReversed())]) {
      expect(fold([create(), ...pairs.flat(), finalize()]).parts[1]).toMatchObject({
        text: 'Hello',
      });
    }
  });

  it('counts an event nobody told us about, and goes on [RFC-UNIT-12]', () => {
    const { translator, chunks } = translate([{ type: 'hologram' }, { type: 'hologram' }]);
    expect(chunks).toEqual([]);
    expect(translator.stats).toEqual({ unknown: { hologram: 2 }, malformed: {} });
  });

  it('gives a valid stream for a whole turn, as it was recorded [RFC-UNIT-13]', () => {
    for (const name of ['rfc-tool-v2', 'rfc-tool-snapshot', 'head-tool-v2', 'head-tool-snapshot']) {
      const { chunks, translator } = translate(recorded(name));
      expect(verifyChunks(chunks), name).toEqual([]);
      expect(translator.stats, name).toEqual({ unknown: {}, malformed: {} });
    }
  });

  it('keeps the calls of a turn apart [RFC-UNIT-14]', () => {
    const { parts } = fold([
      create(),
      ...['a', 'b', 'c'].map((callId) => tool('completed', { callId, result: callId })),
    ]);
    const ids = parts.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : []));
    expect(ids).toEqual(['a', 'b', 'c']);
  });

  it('puts text that follows a tool behind the tool [RFC-UNIT-15]', () => {
    const { parts } = fold([
      create(),
      delta('Before. '),
      tool('running', ls),
      delta('While it runs. '),
      tool('completed', { args: {}, result: 1 }),
      delta('After.'),
      finalize(),
    ]);
    expect(parts.slice(1)).toMatchObject([
      { text: 'Before. ' },
      { output: 1, input: { command: 'ls' } },
      { text: 'While it runs. After.' },
    ]);
  });

  it.each([
    [{ type: 'error', messageId: 'e', error: 'Overloaded' }, 'Overloaded'],
    [{ type: 'error', error: 'Overloaded' }, 'Overloaded'],
    [{ type: 'error', message: 'Overloaded' }, 'Overloaded'],
    [{ type: 'error', content: 'Overloaded' }, 'Overloaded'],
    [{ type: 'error', data: { message: 'Overloaded' } }, 'Overloaded'],
    [{ type: 'error', error: { message: 'Overloaded' } }, 'Overloaded'],
    [{ type: 'error' }, 'The agent could not finish its answer.'],
  ])('ends a turn with the session’s error %o, begun or not [RFC-ERR-03]', (error, errorText) => {
    for (const before of [[], [create(), delta('a')]]) {
      const { chunks, translator } = translate([...before, error]);
      expect(types(chunks)[0]).toBe('start');
      expect(chunks.slice(-2)).toEqual([
        { type: 'error', errorText },
        { type: 'finish', finishReason: 'error' },
      ]);
      expect(translator.ended).toBe(true);
    }
  });

  it('lets the application choose the words, and survives it if it throws', () => {
    const words = (errorText: (error: unknown) => string) =>
      translate([{ type: 'error', error: 'E42' }], { errorText }).chunks.at(-2);
    expect(words((error) => `Sorry: ${error}`)).toMatchObject({ errorText: 'Sorry: E42' });
    expect(words(() => '')).toMatchObject({ errorText: 'E42' });
    const broken = () => {
      throw new Error('no words');
    };
    expect(words(broken)).toMatchObject({ errorText: 'E42' });
  });
});

describe('what a translator of Agent Ops minds', () => {
  const words = (events: unknown[], options = {}) =>
    fold(events, options).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));

  it('hears the dialect it is told to, whole, and nothing of the other', () => {
    const usage = { type: 'usage-report', turnId: 't', entries: [{ inputTokens: 1 }] };
    const begun = [create(), delta('a'), tool('completed', { result: 1 }), usage];
    const ours = { id: 't', role: 'assistant', parts: [FINISH] };
    const told = [message(), chunk('a'), updated([call('completed')])];
    const init = { type: 'init', session: { messages: [ours] } };
    const turns: ['v2' | 'snapshot', unknown[]][] = [
      ['v2', [...begun, finalize()]],
      ['v2', [...begun, { type: 'complete' }]],
      ['v2', [...begun, { type: 'aborted' }]],
      ['snapshot', [...told, updated([FINISH])]],
      ['snapshot', [...told, init]],
    ];
    for (const [dialect, events] of turns) {
      const { chunks, translator } = translate(events, { dialect });
      expect(chunks).toEqual(translate(events).chunks);
      expect(translator.ended).toBe(true);
      const other = dialect === 'v2' ? 'snapshot' : 'v2';
      const deaf = translate(events, { dialect: other, turnId: 't' });
      expect([deaf.chunks, deaf.translator.stats.unknown]).toEqual([[], {}]);
    }
  });

  it('takes text from where it first came, and from nowhere else', () => {
    expect(words([create(), chunk(''), delta('a'), chunk('b')])).toEqual(['a']);
    expect(
      words([create(), updated([text('a')]), finalize('end_turn', { finalText: 'a' })]),
    ).toEqual(['a']);
    expect(words([create(), updated([text('a')]), chunk('b'), updated([text('abc')])])).toEqual([
      'ab',
    ]);
    expect(words([create(), finalize('end_turn', { finalText: 'a' })])).toEqual(['a']);
  });

  it('knows a turn that ran before by all it says', () => {
    const said = [
      delta('old', 'u'),
      chunk('old', 'u'),
      tool('running', { turnId: 'u' }),
      updated([text('old')], 'u'),
    ];
    const idle = sessionStatus({ runnerBusy: false });
    for (const event of said) {
      expect(translate([event, message('u')]).chunks, JSON.stringify(event)).toEqual([]);
      const { translator } = translate([event, agentStatus('streaming'), idle]);
      expect(translator.ended, JSON.stringify(event)).toBe(false);
    }
    const over = updated([text('old'), FINISH], 'u');
    expect(translate([over, agentStatus('thinking'), idle]).translator.ended).toBe(true);
    expect(translate([agentStatus('thinking'), over, { type: 'complete' }]).translator.ended).toBe(
      false,
    );
    const transcript = { type: 'message.updated', data: { id: 'p', parts: [{ type: 'audio' }] } };
    expect(translate([transcript, agentStatus('thinking'), idle]).translator.ended).toBe(true);
    const others = { id: 'u', role: 'assistant', parts: [FINISH] };
    const init = { type: 'init', session: { messages: [others] } };
    expect(translate([create(), init, { type: 'complete' }]).translator.ended).toBe(true);
  });

  it('takes no message of somebody else for its own prompt', () => {
    const queued = sessionStatus({ promptQueued: true });
    const options = { channel: { channelType: 'web', channelId: 'default' } };
    const waits = (...events: unknown[]) =>
      translate([...events, queued], options).translator.waiting;
    expect(waits(userMessage('p'), agentStatus('thinking'))).toBe(false);
    const elsewhere = { type: 'message', data: { id: 'p', role: 'user', channelType: 'slack' } };
    expect(waits(elsewhere, agentStatus('thinking'))).toBe(true);
    const system = { type: 'message', data: { id: 'p', role: 'system', content: 'x' } };
    expect(waits(system, agentStatus('thinking'))).toBe(true);
  });

  it('reads no snapshot of what is no turn, and does not count it', () => {
    const { chunks, translator } = translate([
      message(),
      updated({ type: 'note' }),
      { type: 'message.updated', data: { id: 't', role: 'user', parts: [FINISH] } },
    ]);
    expect(chunks).toHaveLength(2);
    expect(translator.stats.malformed).toEqual({});
  });

  it('forgets in a queue what it held of the turn before', () => {
    const { chunks, translator } = translate([
      agentStatus('streaming'),
      sessionStatus({ promptQueued: true }),
      sessionStatus({ promptDequeued: true }),
      create(),
    ]);
    expect(types(chunks)).toEqual(['start', 'start-step']);
    translator.push({ type: 'queue.withdrawn' });
    expect(translator.ended).toBe(false);
  });

  it('leaves no half input behind when a prompt is sent again', () => {
    const { parts } = fold([
      create(),
      tool('pending'),
      sessionStatus({ runnerDisconnected: true }),
      create('u'),
    ]);
    expect(parts[1]).toMatchObject({ state: 'output-error', input: {} });
    expect(parts[1]).not.toHaveProperty('rawInput');
  });

  it('lets a question wait in a turn that only pauses, and gives a call back when it ends', () => {
    const events = [create(), tool('running', { toolName: 'question', ...ls }), question()];
    const end = (status: 'paused' | 'stopped') =>
      translate(events, { approvals: true }).translator.end({ status });
    expect(types(end('paused'))).toEqual(['finish-step', 'finish']);
    expect(end('stopped').slice(0, 2)).toMatchObject([
      { type: 'data-question', data: { status: 'withdrawn' } },
      { type: 'tool-output-error', providerExecuted: true },
    ]);
  });

  it('asks nobody for words where there is nothing to tell', () => {
    const { chunks } = translate([{ type: 'error' }], { errorText: () => 'Sorry.' });
    expect(chunks.at(-2)).toMatchObject({ errorText: 'The agent could not finish its answer.' });
    const ended = createAgentOpsTranslator().end({ status: 'failed', message: 'Why' });
    expect(ended.at(-2)).toMatchObject({ errorText: 'Why' });
  });
});

describe('Agent Ops events that are not what they should be', () => {
  it('skips and counts what it cannot read, and reports each type once', () => {
    const warn = vi.fn();
    const bad = [null, undefined, 'x', 42, Symbol('x'), [], {}, { type: 7 }, { type: '__proto__' }];
    const { translator, chunks } = translate(
      [
        ...bad,
        ...AGENT_OPS_EVENT_TYPES.map((type) => ({
          type,
          data: 5,
          turnId: 5,
          status: 5,
          content: 5,
        })),
        { type: 'constructor' },
      ],
      { logger: { warn } },
    );
    expect(types(chunks)).toEqual(['start', 'message-metadata', 'error', 'finish']);
    expect(translator.stats.malformed).toEqual({
      '(no type)': 8,
      'message.create': 1,
      'message.part.text-delta': 1,
      'message.part.tool-update': 1,
      'message.part.reasoning-delta': 1,
      'message.part.tool-input-delta': 1,
      'message.part.step': 1,
      'message.part.source': 1,
      'message.part.file': 1,
      'message.part.data': 1,
      'message.finalize': 1,
      'usage-report': 1,
      message: 1,
      'message.updated': 1,
      chunk: 1,
      agentStatus: 1,
      status: 1,
    });
    expect(warn).toHaveBeenCalledTimes(17);
  });

  it('counts an event with parts it cannot read, and reads the others', () => {
    const parts = [null, 5, { type: 'text' }, call('dreaming'), { type: 'new' }, text('kept')];
    for (const bad of parts.slice(0, 4)) {
      const { translator, chunks } = translate([message(), updated([bad, text('kept')])]);
      expect(translator.stats.malformed).toEqual({ 'message.updated': 1 });
      expect(chunks.at(-1)).toMatchObject({ delta: 'kept' });
    }
    expect(translate([message(), updated(parts.slice(4))]).translator.stats.malformed).toEqual({});
  });

  it('makes values safe that JSON cannot carry, and counts them', () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    const { translator, chunks } = translate([create(), tool('completed', { result: cyclic })]);
    expect(translator.stats.malformed).toEqual({ 'message.part.tool-update': 1 });
    expect(chunks.at(-1)).toMatchObject({ output: { self: '[circular]' } });
    const first = translate([{ type: 'error', error: 'x' }]);
    expect(first.translator.stats.malformed).toEqual({});
  });

  it('survives events whose properties throw, and a logger that does', () => {
    const trap = new Proxy(create(), {
      get: (target, key) => {
        if (key !== 'type') throw new Error('trap');
        return target.type;
      },
    });
    const warn = () => {
      throw new Error('disk full');
    };
    const { translator, chunks } = translate([trap, create()], { logger: { warn } });
    expect(translator.stats.malformed).toEqual({ 'message.create': 1 });
    expect(types(chunks)).toEqual(['start', 'start-step']);
  });

  it('does not let invented event types fill the memory', () => {
    const { translator } = translate(Array.from({ length: 1_000 }, (_, n) => ({ type: `x:${n}` })));
    expect(Object.keys(translator.stats.unknown)).toHaveLength(101);
    expect(translator.stats.unknown['(others)']).toBe(900);
  });

  it('keeps the ordering law for any events in any order', () => {
    fc.assert(
      fc.property(anyEvents(), anyOptions(), (events, options) => {
        const { translator, chunks } = translate(events, options);
        const isOver = translator.ended;
        const rest = translator.end();
        if (isOver) expect(rest).toEqual([]);
        const all = [...chunks, ...rest];
        for (const aiSdk of [6, 7] as const) expect(verifyChunks(all, { aiSdk })).toEqual([]);
        if (!options.approvals) expect(verifyChunks(all)).toEqual([]);
        expect(translator.push(events[0])).toEqual([]);
      }),
      { numRuns: Number(process.env.PROPERTY_RUNS ?? 1_000) },
    );
  });
});
