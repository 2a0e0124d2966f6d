import { describe, expect, it } from 'vitest';
import {
  AGENT_OPS_FIXTURES,
  call,
  chunk,
  create,
  delta,
  FINISH,
  finalize,
  fold,
  message,
  recorded,
  text,
  tool,
  translate,
  types,
  updated,
} from '../../../test/agent-ops-events.ts';
import { comparable } from '../../../test/comparable.ts';
import { readJsonl } from '../../../test/jsonl.ts';
import type { AgentOpsUIMessage } from './events.ts';

const TURNS = ['text', 'tool', 'toolerror', 'error-after-text', 'abort', 'question'];

/** Without what only one side of a session is told: until when a question waits, and its answer. */
function common({ parts, ...rest }: AgentOpsUIMessage) {
  const known = parts.map((part) => {
    if (part.type !== 'data-question') return part;
    const { expiresAt: _, answer: __, ...data } = part.data;
    return { ...part, data };
  });
  return comparable({ ...rest, parts: known });
}

describe('the two dialects of a session', () => {
  const pairs = ['rfc', 'head'].flatMap((release) => TURNS.map((turn) => `${release}-${turn}`));

  it.each(pairs.filter((name) => name !== 'head-question'))('tell the same turn: %s', (name) => {
    const [v2, snapshot] = ['v2', 'snapshot'].map((side) => fold(recorded(`${name}-${side}`)));
    expect(common(v2 as AgentOpsUIMessage)).toEqual(common(snapshot as AgentOpsUIMessage));
    expect(v2?.metadata?.outcome).toBe(name.endsWith('abort') ? 'stopped' : 'finished');
  });

  it('tell the same turn as far as it was recorded: head-question', () => {
    const v2 = fold(recorded('head-question-v2'));
    const snapshot = fold(recorded('head-question-snapshot'));
    const parts = v2.parts.filter((part) => part.type !== 'data-question');
    expect(comparable({ ...v2, parts })).toEqual(comparable(snapshot));
  });

  it('tell it from the prompt on as well', () => {
    for (const name of pairs) {
      const all = recorded(`${name}-snapshot`) as { data?: { role?: string } }[];
      const prompt = all.findIndex(({ data }) => data?.role === 'user');
      expect(fold(all.slice(prompt)), name).toEqual(fold(all));
    }
  });

  it('skip and count nothing that was recorded', () => {
    for (const name of pairs.flatMap((pair) => [`${pair}-v2`, `${pair}-snapshot`])) {
      const { translator } = translate(recorded(name));
      expect(translator.stats, name).toEqual({ unknown: {}, malformed: {} });
    }
  });

  it('give the same for a turn that is told in both at once', () => {
    const both = readJsonl(new URL('doubled-whole-dialects.events.jsonl', AGENT_OPS_FIXTURES));
    for (const dialect of ['v2', 'snapshot'] as const) {
      expect(fold(both, { dialect })).toEqual(fold(both));
    }
  });

  it('can be chosen', () => {
    const v2 = [create('t'), delta('v2'), tool('running', { args: {} }), finalize()];
    const snapshot = [message('t'), chunk('snapshot'), updated([text('snapshot'), FINISH])];
    expect(translate(v2, { dialect: 'snapshot' }).chunks).toEqual([]);
    expect(translate(snapshot, { dialect: 'v2' }).chunks).toEqual([]);
    expect(translate([...v2, ...snapshot], { dialect: 'v2' }).translator.stats.unknown).toEqual({});
    expect(fold([...v2, ...snapshot], { dialect: 'snapshot' }).parts[1]).toMatchObject({
      text: 'snapshot',
    });
  });
});

describe('snapshots', () => {
  const done = call('completed', { args: { a: 1 }, result: 1 });
  const said = (...snapshots: unknown[][]) =>
    fold([message(), ...snapshots.map((parts) => updated(parts))]).parts.flatMap((part) =>
      part.type === 'text' ? [part.text] : 'output' in part ? ['(tool)'] : [],
    );

  it('are the text where no chunk came, around the tools', () => {
    expect(said([text('One. '), done, text('Two.'), FINISH])).toEqual(['One. ', '(tool)', 'Two.']);
    expect(said([text('O')], [text('One')], [text('One. '), done])).toEqual(['One. ', '(tool)']);
  });

  it('do not take back what was said when one overwrites all texts', () => {
    expect(said([text('One. '), done], [text('Two.'), done, text('Two.'), FINISH])).toEqual([
      'One. ',
      '(tool)',
      'Two.',
    ]);
    expect(said([text('T'), done], [text('Two.'), done, text('Two.'), FINISH])).toEqual([
      'T',
      '(tool)',
      'Two.',
    ]);
    expect(said([text('Two.'), done, text('Two.'), FINISH])).toEqual(['(tool)', 'Two.']);
    expect(said([text('Same.'), done, text('Same.')])).toEqual(['Same.', '(tool)', 'Same.']);
  });

  it('say no text that chunks have said, or deltas, or say after them', () => {
    const final = updated([text('overwritten'), FINISH]);
    expect(fold([message(), chunk('said'), final]).parts[1]).toMatchObject({ text: 'said' });
    expect(fold([create(), delta('said'), final]).parts[1]).toMatchObject({ text: 'said' });
    const late = [message(), updated([text('Missed, ')]), chunk('then seen.'), final];
    expect(fold(late).parts[1]).toMatchObject({ text: 'Missed, then seen.' });
  });

  it('are read to their end before the turn ends', () => {
    const { chunks } = translate([message(), updated([FINISH, text('behind'), done])]);
    expect(types(chunks)).toEqual([
      'start',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
      'tool-input-available',
      'tool-output-available',
      'finish-step',
      'finish',
    ]);
  });

  it('tell each change of a tool once', () => {
    const pending = updated([call('pending', { args: {} })]);
    const running = updated([call('running', { args: { a: 1 } })]);
    const { chunks } = translate([
      message(),
      ...[pending, pending, running, pending, running, updated([done]), running, updated([done])],
    ]);
    expect(types(chunks).slice(2)).toEqual([
      'tool-input-start',
      'tool-input-delta',
      'tool-input-available',
      'tool-output-available',
    ]);
  });

  it('are skipped where the message is no turn, or says nothing new', () => {
    const nothing = [
      updated({ type: 'note' }),
      { type: 'message.updated', data: { id: 't', channelType: 'slack' } },
      { type: 'message.updated', data: { id: 't', role: 'user', parts: [FINISH] } },
    ];
    const { chunks, translator } = translate([message(), ...nothing]);
    expect(chunks).toHaveLength(2);
    expect(translator.stats.malformed).toEqual({});
  });

  it('tell after a reconnect how the turn stands', () => {
    const init = (messages: unknown) => ({ type: 'init', session: { id: 's', messages } });
    const ours = { id: 't', role: 'assistant', parts: [text('x'), done, FINISH] };
    const { translator, chunks } = translate([message(), chunk('x'), init([null, ours])]);
    expect(translator.ended).toBe(true);
    expect(types(chunks)).toContain('tool-output-available');
    for (const messages of [undefined, 5, [{ ...ours, id: 'u' }]]) {
      expect(translate([message(), init(messages)]).translator.ended).toBe(false);
    }
    expect(translate([init([ours])]).chunks).toEqual([]);
    expect(translate([init([ours])], { turnId: 't' }).translator.ended).toBe(true);
  });

  it('have the last word where nothing else was said', () => {
    const events = (finalText: unknown) => [create(), finalize('end_turn', { finalText })];
    expect(fold(events('all of it')).parts[1]).toMatchObject({ text: 'all of it' });
    expect(fold(events(5)).parts).toHaveLength(1);
    const [, , ...said] = translate([create(), delta('a'), ...events('a').slice(1)]).chunks;
    expect(types(said)).toEqual(['text-start', 'text-delta', 'text-end', 'finish-step', 'finish']);
  });
});

describe('usage', () => {
  it('is summed over what a runner reports of our turn', () => {
    const report = (turnId: unknown, entries: unknown) => ({
      type: 'usage-report',
      turnId,
      entries,
    });
    const { metadata } = fold([
      create(),
      report('t', [{ inputTokens: 1, outputTokens: 2 }, null, { inputTokens: 'x' }]),
      report(null, [{ inputTokens: 10 }]),
      report('u', [{ inputTokens: 100 }]),
      finalize(),
    ]);
    expect(metadata).toEqual({
      outcome: 'finished',
      usage: { inputTokens: 11, outputTokens: 2 },
    });
  });
});
