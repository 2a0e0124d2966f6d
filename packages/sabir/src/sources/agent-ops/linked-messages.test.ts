import { describe, expect, it } from 'vitest';
import {
  call,
  chunk,
  FINISH,
  fold,
  message,
  text,
  translate,
} from '../../../test/agent-ops-events.ts';
import { toHistory } from './history.ts';

const OURS = { promptId: 'p' };
const words = (events: unknown[]) =>
  fold(events, OURS).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));

describe('messages of a server of ours', () => {
  const stored = (parts: unknown[], more: object = {}) => ({
    id: 't',
    role: 'assistant',
    content: '',
    promptId: 'p',
    parts,
    ...more,
  });

  it('keep two texts that are the same', () => {
    const parts = [text('Done.'), call('completed'), text('Done.'), FINISH];
    const texts = (data: object) =>
      toHistory([data], {})[0]?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
    expect(texts(stored(parts))).toEqual(['Done.', 'Done.']);
    expect(texts(stored(parts, { promptId: undefined }))).toEqual(['Done.']);
  });

  it('add nothing to text that comes as it is written, though they may have it already', () => {
    const ahead = stored([text('a'), call('running', { args: {} }), text('b')]);
    const events = [message('t', OURS), chunk('a'), { type: 'message.updated', data: ahead }];
    expect(words([...events, chunk('b')])).toEqual(['a', 'b']);
  });

  it('have parts that mean nothing in a message of another server', () => {
    const parts = [{ type: 'reasoning', text: 'Hm' }, { type: 'step' }, text('a'), FINISH];
    const kinds = (data: object) => toHistory([data], {})[0]?.parts.map(({ type }) => type);
    expect(kinds(stored(parts))).toEqual(['step-start', 'reasoning', 'step-start', 'text']);
    expect(kinds(stored(parts, { promptId: undefined }))).toEqual(['step-start', 'text']);
  });

  it('are counted if a part is not what it should be', () => {
    const odd = [
      { type: 'reasoning' },
      { type: 'data', name: 'question', data: 1 },
      { type: 'source', sourceId: 's' },
      { type: 'file' },
      { type: 'question', questionId: 'q', text: 'x', status: 'lost' },
    ];
    for (const part of odd) {
      const { translator } = translate([{ type: 'message.updated', data: stored([part]) }], OURS);
      expect(translator.stats.malformed, JSON.stringify(part)).toEqual({ 'message.updated': 1 });
    }
  });

  it('are without the turn that runs, which the server names', () => {
    const messages = [
      stored([text('a')], { id: 't1' }),
      stored([text('b')], { id: 't2' }),
      stored([text('c')], { id: 't3', channelType: 'web', channelId: 'x' }),
    ];
    const ids = (...args: [turn: unknown, channel?: { channelType: string; channelId: string }]) =>
      toHistory(messages, { runnerBusy: true, turn: args[0] }, args[1]).map(({ id }) => id);
    expect(ids({ turnId: 't1' })).toEqual(['t2', 't3']);
    expect(ids(null)).toEqual(['t1', 't2', 't3']);
    expect(ids(undefined)).toEqual(['t1', 't2']);
    expect(ids(null, { channelType: 'web', channelId: 'default' })).toEqual(['t1', 't2']);
    expect(ids(null, { channelType: 'slack', channelId: 'x' })).toEqual(['t1', 't2']);
    expect(ids(null, { channelType: 'web', channelId: 'x' })).toEqual(['t1', 't2', 't3']);
  });
});
