import { describe, expect, it } from 'vitest';
import {
  agentStatus,
  create,
  delta,
  finalize,
  fold,
  question,
  recorded,
  sessionStatus,
  tool,
  translate,
  types,
  WEB,
} from '../../../test/agent-ops-events.ts';
import { comparable } from '../../../test/comparable.ts';
import { CLIENTS, runClient } from '../../../test/real-clients.ts';
import type { Chunk } from '../../core/chunks.ts';
import { createDowngrade } from '../../core/downgrade.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';

const ASKED = { args: { questions: [{ question: 'Deploy?' }] } };
const asking = (status: string, more: object = {}) =>
  tool(status, { callId: 'call', toolName: 'question', ...more });
const answered = (answer?: unknown) => sessionStatus({ questionAnswered: 'q', answer });
const prompt = (more: object = {}, outer: object = {}) => ({
  type: 'interactive_prompt',
  prompt: { id: 'q', type: 'question', title: 'Deploy?', ...more },
  ...outer,
});
const resolved = (resolution?: object) => ({
  type: 'interactive_prompt_resolved',
  promptId: 'q',
  resolution,
});
const EXPIRED = { type: 'interactive_prompt_expired', promptId: 'q' };

const states = (events: unknown[], options = {}) =>
  translate(events, options).chunks.flatMap((chunk) =>
    chunk.type === 'data-question' ? [(chunk as { data: { status: string } }).data.status] : [],
  );
const dataOf = (events: unknown[]) =>
  fold(events).parts.flatMap((part) => (part.type === 'data-question' ? [part.data] : []));

describe('a question', () => {
  it('is one part, replaced when its state changes', () => {
    const { parts } = fold([create(), question(), answered('Yes'), finalize()]);
    expect(parts.slice(1)).toEqual([
      {
        type: 'data-question',
        id: 'q',
        data: { questionId: 'q', text: 'Deploy?', status: 'answered', answer: 'Yes' },
      },
    ]);
  });

  it.each([
    ['answered', [answered('Yes')]],
    ['answered', [answered()]],
    ['answered', [resolved({ actionId: 'yes' })]],
    ['expired', [answered('__expired__')]],
    ['expired', [EXPIRED]],
    ['withdrawn', [finalize()]],
    ['withdrawn', [{ type: 'aborted' }]],
    ['withdrawn', [{ type: 'error', error: 'x' }]],
  ])('is %s after %j, and stays so', (status, events) => {
    const later = [answered('No'), EXPIRED, resolved({ value: 'x' }), question()];
    expect(states([create(), question(), ...events, ...later])).toEqual(['open', status]);
  });

  it('is withdrawn when the turn ends from outside, and waits on when it pauses', () => {
    const end = (status: 'stopped' | 'paused') =>
      types(translate([create(), question()]).translator.end({ status }));
    expect(end('stopped')).toContain('data-question');
    expect(end('paused')).not.toContain('data-question');
  });

  it('counts as answered when its own tool call ends', () => {
    const running = asking('running', ASKED);
    for (const over of [asking('completed', { args: {}, result: 'Yes' }), asking('error')]) {
      expect(states([create(), running, question(), over])).toEqual(['open', 'answered']);
      expect(states([create(), question(), running, over])).toEqual(['open', 'answered']);
    }
    const other = tool('completed', { result: 1 });
    expect(states([create(), tool('running', ASKED), question(), other])).toEqual(['open']);
    const done = [running, asking('completed')];
    expect(states([create(), ...done, question(), other])).toEqual(['open']);
  });

  it('counts as answered when it is said to belong to a call that is over', () => {
    const over = asking('completed', { args: {}, result: 'Yes' });
    const named = question({ callId: 'call', turnId: 't' });
    expect(states([create(), over, named])).toEqual(['open', 'answered']);
    expect(states([create(), question(), over, named])).toEqual(['open', 'answered']);
    const approvals = translate([create(), over, named, finalize()], { approvals: true }).chunks;
    expect(verifyChunks(approvals, { aiSdk: 7 })).toEqual([]);
  });

  it('belongs to our turn', () => {
    expect(states([question(), create()])).toEqual([]);
    expect(states([create(), question({ ...WEB, channelId: 'x' })], { channel: WEB })).toEqual([]);
    expect(states([create(), question(WEB)], { channel: WEB })).toEqual(['open']);
    expect(states([question()], { turnId: 't' })).toEqual(['open']);
  });

  it('is told again only where something changed', () => {
    const again = [question(), question({ text: 'Really?' }), question({ text: 'Really?' })];
    expect(dataOf([create(), question(), ...again])).toMatchObject([{ text: 'Really?' }]);
    expect(states([create(), question(), ...again])).toEqual(['open', 'open']);
  });

  it.each([
    [1_794_769_643, 1_794_769_643_000],
    [1_794_769_643_000, 1_794_769_643_000],
    ['2026-11-15T19:07:23.000Z', 1_794_769_643_000],
    ['soon', undefined],
    [0, undefined],
    [Number.NaN, undefined],
    [undefined, undefined],
  ])('waits until %s, in milliseconds: %s', (expiresAt, expected) => {
    const [data] = dataOf([create(), question({ expiresAt }), answered()]);
    expect(data?.expiresAt).toBe(expected);
  });

  it('offers options, whatever form they have', () => {
    const options = ['Yes', { label: 'No' }, { id: 'later' }, 5, null, {}];
    expect(dataOf([create(), question({ options })])[0]?.options).toEqual(['Yes', 'No', 'later']);
    expect(dataOf([create(), question({ options: 'Yes' })])[0]).not.toHaveProperty('options');
    expect(dataOf([create(), question({ text: 5 })])[0]?.text).toBe('');
  });

  it('takes an answer that is no text, if it can be one', () => {
    const answers = [true, 5, { yes: 1 }, null].map(
      (answer) => dataOf([create(), question(), answered(answer)])[0]?.answer,
    );
    expect(answers).toEqual(['true', '5', undefined, undefined]);
  });

  it('may come as an interactive prompt', () => {
    const actions = [
      { id: 'option_0', label: 'Yes' },
      { id: 'option_1', label: 'No' },
    ];
    const asked = prompt({ body: 'Now.', actions, expiresAt: 1_794_769_643_000 });
    const data = {
      questionId: 'q',
      text: 'Deploy?\n\nNow.',
      options: ['Yes', 'No'],
      expiresAt: 1_794_769_643_000,
    };
    expect(dataOf([create(), asked, resolved({ actionId: 'option_1' })])).toEqual([
      { ...data, status: 'answered', answer: 'No' },
    ]);
    expect(dataOf([create(), asked, resolved({ value: 'Later' })])[0]?.answer).toBe('Later');
    expect(dataOf([create(), asked, resolved()])[0]).not.toHaveProperty('answer');
    const channel = { channel: WEB };
    const elsewhere = { channelType: 'slack', channelId: 'C1' };
    expect(states([create(), prompt({ context: elsewhere })], channel)).toEqual([]);
    expect(states([create(), prompt({}, elsewhere)], channel)).toEqual([]);
    expect(states([create(), prompt({ context: elsewhere }, WEB)], channel)).toEqual(['open']);
  });

  it('leaves the approval of an action to the call that wants it', () => {
    const approval = prompt({ type: 'approval' });
    const events = [create(), tool('running', ASKED), approval];
    expect(states([...events, tool('completed', { result: 1 })])).toEqual(['open', 'answered']);
  });
});

describe('a question as an approval', () => {
  const options = { approvals: true };
  const approvals = (events: unknown[]) =>
    translate(events, options).chunks.filter(({ type }) => type === 'tool-approval-request');
  const requested = (toolCallId: string) => [
    { type: 'tool-approval-request', approvalId: 'q', toolCallId },
  ];

  it('is asked only where it is wanted', () => {
    const { chunks } = translate([create(), asking('running', ASKED), question()]);
    expect(types(chunks)).not.toContain('tool-approval-request');
  });

  it('is asked on the agent’s own call, as soon as that has its input', () => {
    const running = asking('running', ASKED);
    expect(approvals([create(), running, question()])).toEqual(requested('call'));
    expect(approvals([create(), asking('pending'), question()])).toEqual([]);
    expect(approvals([create(), asking('pending'), question(), running])).toEqual(
      requested('call'),
    );
    expect(approvals([create(), running, question(), running, question()])).toHaveLength(1);
  });

  it('is asked on the call that wants an action approved', () => {
    const events = [create(), tool('running', ASKED), prompt({ type: 'approval' })];
    expect(approvals(events)).toEqual(requested('c'));
  });

  it('has a call of its own where the agent has none', () => {
    const events = [create(), tool('running', ASKED), question({ options: ['Yes'] })];
    expect(approvals(events)).toEqual(requested('question-q'));
    const { parts } = fold([...events, answered('Yes')], options);
    expect(parts.at(-1)).toMatchObject({
      type: 'tool-question',
      input: { question: 'Deploy?', options: ['Yes'] },
      output: 'Yes',
      providerExecuted: true,
    });
    expect(fold([...events, EXPIRED], options).parts.at(-1)).toMatchObject({
      errorText: 'Nobody answered in time.',
    });
    expect(fold([...events, finalize()], options).parts.at(-1)).toMatchObject({
      state: 'output-error',
      providerExecuted: true,
    });
  });

  it('makes a client answer: the call is its own until it is over', () => {
    const { chunks } = translate(
      [
        create(),
        asking('pending'),
        asking('running', ASKED),
        tool('running', ASKED),
        question(),
        asking('completed', { result: 'Yes' }),
      ],
      options,
    );
    const flags = chunks.flatMap((chunk) =>
      'toolCallId' in chunk && 'providerExecuted' in chunk
        ? [[chunk.type, chunk.toolCallId, chunk.providerExecuted]]
        : [],
    );
    expect(flags).toEqual([
      ['tool-input-start', 'call', false],
      ['tool-input-available', 'call', false],
      ['tool-input-available', 'c', true],
      ['tool-output-available', 'call', true],
    ]);
  });

  it('is not asked again by what an agent says meanwhile', () => {
    const { chunks, translator } = translate(
      [
        create(),
        asking('running', ASKED),
        question(),
        agentStatus('idle'),
        answered('Yes'),
        asking('completed', { result: 'Yes' }),
        delta('Deploying.'),
        finalize(),
      ],
      options,
    );
    expect(translator.ended).toBe(true);
    expect(types(chunks).slice(2)).toEqual([
      'tool-input-available',
      'data-question',
      'tool-approval-request',
      'data-agent-status',
      'data-question',
      'tool-output-available',
      'text-start',
      'text-delta',
      'text-end',
      'finish-step',
      'finish',
    ]);
  });

  const turns: [string, Chunk[]][] = [
    ['recorded', translate(recorded('rfc-question-snapshot'), options).chunks],
    [
      'open at the end',
      [...translate([create(), asking('running', ASKED), question(), finalize()], options).chunks],
    ],
    [
      'with a call of its own',
      translate([create(), question(), answered('Yes'), delta('So.'), finalize()], options).chunks,
    ],
  ];

  it.each(turns)('reaches every client that knows approvals: %s', async (_, chunks) => {
    for (const { name, major } of CLIENTS) {
      const down = createDowngrade(major);
      const sent = chunks.flatMap((chunk) => down(chunk));
      expect(verifyChunks(sent, { aiSdk: major }), name).toEqual([]);
      expect(types(sent).includes('tool-approval-request'), name).toBe(major > 5);
      for (const via of ['sse', 'in-process'] as const) {
        const { status, message } = await runClient(name, sent, { via });
        expect(status, name).toBe('ready');
        expect(comparable(message), name).toEqual(comparable(foldChunks(sent)));
      }
    }
  });
});
