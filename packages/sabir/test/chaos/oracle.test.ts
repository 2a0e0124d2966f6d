/** What judges a run sees every character that is missing, doubled or out of place. */
import { describe, expect, it } from 'vitest';
import type { Chunk } from '../../src/core/chunks.ts';
import type { UIMessage } from '../../src/core/message.ts';
import {
  differenceFrom,
  differenceFromBeginning,
  disagreement,
  replicaDifference,
} from './oracle.ts';
import { planTurn, WEIGHTS } from './plan.ts';
import { scriptOf, type TruePart, truthOf } from './script.ts';

const SEEDS = Array.from({ length: 40 }, (_, i) => i + 1);
const truthOfSeed = (seed: number) => truthOf(scriptOf(seed), 'port');

/** As a client has it. */
function toMessage(parts: TruePart[]): UIMessage {
  return {
    id: 'm',
    role: 'assistant',
    parts: parts.map((part) => {
      if (part.type === 'tool') {
        const { callId: toolCallId, toolName, input, output } = part;
        const state = 'output-available';
        return { type: 'dynamic-tool', toolName, toolCallId, state, input, output };
      }
      if (part.type !== 'question') return { ...part, state: 'done' };
      const { questionId, answer } = part;
      return { type: 'data-question', id: questionId, data: { questionId, answer } };
    }) as UIMessage['parts'],
  };
}

/** With another text in place of the last one. */
function withText(parts: TruePart[], change: (text: string) => string): TruePart[] {
  const at = parts.findLastIndex(({ type }) => type === 'text');
  return parts.map((part, i) =>
    i === at && 'text' in part ? { ...part, text: change(part.text) } : part,
  );
}

describe('what a viewer has at the end', () => {
  it('is what was said, or is not', () => {
    for (const seed of SEEDS) {
      const truth = truthOfSeed(seed);
      expect(differenceFrom(truth, toMessage(truth))).toBeUndefined();
      for (const change of [
        (text: string) => text.slice(0, -1),
        (text: string) => text.slice(1),
        (text: string) => text + text.at(-1),
        (text: string) => `${text}${text}`,
      ]) {
        expect(differenceFrom(truth, toMessage(withText(truth, change)))).toContain('at ');
      }
      expect(differenceFrom(truth, toMessage(truth.slice(0, -1)))).toBeDefined();
      expect(differenceFrom(truth, toMessage([...truth, ...truth.slice(-1)]))).toBeDefined();
    }
  });

  it('is a beginning of it where the turn was broken off', () => {
    for (const seed of SEEDS) {
      const truth = truthOfSeed(seed);
      const begun = withText(truth, (text) => text.slice(0, -1));
      expect(differenceFromBeginning(truth, toMessage(begun))).toBeUndefined();
      expect(differenceFromBeginning(truth, toMessage(truth.slice(0, 1)))).toBeUndefined();
      const doubled = withText(truth, (text) => `${text}${text}`);
      expect(differenceFromBeginning(truth, toMessage(doubled))).toBeDefined();
      const holed = withText(truth, (text) => `${text.slice(0, 1)}${text.slice(2)}`);
      expect(differenceFromBeginning(truth, toMessage(holed))).toBeDefined();
    }
  });

  it('is the same for all of them', () => {
    const message = toMessage(truthOfSeed(1));
    const other = { ...message, metadata: { outcome: 'lost' } };
    expect(
      disagreement([
        { name: 'a', message },
        { name: 'b', message },
      ]),
    ).toBeUndefined();
    expect(
      disagreement([
        { name: 'a', message },
        { name: 'b', message: other },
      ]),
    ).toContain('b');
  });
});

describe('a gateway’s replica of a session’s log', () => {
  const session: Chunk[] = [
    { type: 'start', messageId: 'm' },
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'One ' },
    { type: 'text-delta', id: '1', delta: 'two' },
    { type: 'text-end', id: '1' },
    { type: 'finish' },
  ];

  it('is the same chunk for chunk, or is not', () => {
    expect(replicaDifference(session, session, false)).toBeUndefined();
    for (const at of session.keys()) {
      const [before, after] = [session.slice(0, at), session.slice(at)];
      const [chunk] = after as [Chunk];
      for (const replica of [
        [...before, ...after.slice(1)],
        [...before, chunk, ...after],
        [...before, { type: 'text-delta', id: '1', delta: 'x' } as Chunk, ...after.slice(1)],
      ]) {
        expect(replicaDifference(session, replica, false)).toContain('chunk ');
      }
    }
    const merged: Chunk[] = [
      ...session.slice(0, 2),
      { type: 'text-delta', id: '1', delta: 'One two' },
    ];
    expect(replicaDifference(session, [...merged, ...session.slice(4)], false)).toContain(
      'chunk 3',
    );
  });

  it('is a beginning of it where the gateway has ended the turn', () => {
    const ended: Chunk[] = [
      { type: 'text-end', id: '1' },
      { type: 'error', errorText: '' },
      { type: 'finish' },
    ];
    const begun = [...session.slice(0, 3), ...ended];
    expect(replicaDifference(session, begun, true)).toBeUndefined();
    expect(replicaDifference(session, begun, false)).toContain('chunk 4');
    const holed = [...session.slice(0, 2), ...session.slice(3, 4), ...ended];
    expect(replicaDifference(session, holed, true)).toContain('chunk 3');
  });
});

it('plans the same again for the same seed, and something else for another', () => {
  const plans = (seed: number) => SEEDS.map((turn) => planTurn(seed, turn, WEIGHTS.redis));
  expect(plans(7)).toEqual(plans(7));
  expect(plans(7)).not.toEqual(plans(8));
  const kinds = new Set(plans(7).flatMap(({ faults }) => faults.map(({ kind }) => kind)));
  expect(kinds.size).toBeGreaterThan(8);
});
