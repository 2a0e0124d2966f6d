import { describe, expect, it } from 'vitest';
import { called, eventsOf, UPDATE } from '../../../test/v2-events.ts';
import type { V2Event } from './events.ts';

describe('a question', () => {
  const question = (data: object) => ({
    type: 'data-question',
    id: 'q',
    data: { questionId: 'q', text: 'Deploy?', status: 'open', ...data },
  });
  const asked = { type: 'question', questionId: 'q', text: 'Deploy?' };

  it('is asked with its time in whole seconds, rounded down', () => {
    const answerBy = { role: 'owner' };
    const options = ['Yes', { id: 'n', label: 'No' }];
    expect(
      eventsOf(question({ options, expiresAt: 1_794_769_643_999, toolCallId: 'c', answerBy })),
    ).toEqual([
      { ...asked, options: ['Yes', 'No'], expiresAt: 1_794_769_643, callId: 'c', answerBy },
    ]);
  });

  it('is asked again when it changes, and only then', () => {
    expect(eventsOf(question({}), question({}), question({ text: 'Sure?' }))).toEqual([
      asked,
      { ...asked, text: 'Sure?' },
    ]);
  });

  it.each([
    ['a text', 'Yes', 'Yes'],
    ['yes or no', true, true],
    ['a number', 2, '2'],
    ['a decision with a reason', { approved: false, reason: 'No.' }, false],
  ])('that is answered with %s sends the answer', (_name, answer, expected) => {
    expect(eventsOf(question({}), question({ status: 'answered', answer }))).toEqual([
      asked,
      { type: 'status', data: { questionAnswered: 'q', answer: expected } },
    ]);
  });

  it('that is answered with a list is answered without an answer', () => {
    const settled = { type: 'status', data: { questionAnswered: 'q' } };
    expect(eventsOf(question({ status: 'answered', answer: [1] }))).toEqual([asked, settled]);
  });

  it('that expired sends its end, and nothing when it is asked again', () => {
    const chunks = [question({}), question({ status: 'expired' }), question({ status: 'open' })];
    expect(eventsOf(...chunks)).toEqual([
      asked,
      { type: 'status', data: { questionExpired: 'q' } },
    ]);
  });

  it('that was withdrawn sends nothing: readers withdraw it when the turn ends', () => {
    expect(eventsOf(question({}), question({ status: 'withdrawn' }))).toEqual([asked]);
  });

  it('without an answer holds back the closing error of its call, which readers count as an answer', () => {
    const answered = question({ toolCallId: 'c', status: 'answered', answer: 'Yes' });
    const noResult = (errorText: string) => ({
      type: 'tool-output-error',
      toolCallId: 'c',
      errorText,
    });
    const about = question({ toolCallId: 'c' });
    const types = (...chunks: unknown[]) =>
      eventsOf(called, about, ...chunks, { type: 'finish' }).map(
        (event) => (event as V2Event).type,
      );
    const end = ['message.finalize', 'complete'];
    expect(types(noResult('The tool gave no result.'))).toEqual([UPDATE, 'question', ...end]);
    expect(types()).toEqual([UPDATE, 'question', ...end]);
    expect(types(answered)).toEqual([UPDATE, 'question', 'status', UPDATE, ...end]);
    expect(types(noResult('Broken.'))).toEqual([UPDATE, 'question', UPDATE, ...end]);
  });

  it('without an id is no question', () => {
    expect(eventsOf({ type: 'data-question', data: { text: 'Deploy?' } })).toEqual([]);
  });
});
