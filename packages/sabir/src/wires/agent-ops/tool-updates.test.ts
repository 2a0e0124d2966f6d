import { describe, expect, it } from 'vitest';
import { call, called, eventsOf, named, running, UPDATE } from '../../../test/v2-events.ts';

describe('a tool call', () => {
  it('is pending when it is named, then running with its arguments, then completed with its result', () => {
    expect(
      eventsOf(named, called, { type: 'tool-output-available', toolCallId: 'c', output: [1] }),
    ).toEqual([
      { type: UPDATE, ...call, status: 'pending' },
      running,
      { type: UPDATE, ...call, status: 'completed', result: [1] },
    ]);
  });

  it('streams its arguments until it is called', () => {
    const delta = (inputTextDelta: string) => ({
      type: 'tool-input-delta',
      toolCallId: 'c',
      inputTextDelta,
    });
    const type = 'message.part.tool-input-delta';
    const [, ...events] = eventsOf(
      delta('{'),
      named,
      delta('{'),
      delta(''),
      delta('"a":1}'),
      called,
    );
    expect(events).toEqual([
      { type, ...call, delta: '{' },
      { type, ...call, delta: '"a":1}' },
      running,
    ]);
    expect(eventsOf(named, called, delta('x'))).toHaveLength(2);
  });

  it('keeps the name it began with', () => {
    expect(eventsOf(named, { ...called, toolName: 'other' })[1]).toEqual(running);
  });

  it('without arguments runs with none', () => {
    expect(eventsOf({ ...called, input: null })).toEqual([{ ...running, args: {} }]);
  });

  it('shows a preliminary output as a call that runs, and ends with it if nothing follows', () => {
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 1, preliminary: true };
    expect(eventsOf(called, output, { type: 'finish' }).slice(1, 3)).toEqual([
      { type: UPDATE, ...call, status: 'running', result: 1 },
      { type: UPDATE, ...call, status: 'completed', result: 1 },
    ]);
  });

  it('fails with the text of its error, or with one that says as much', () => {
    const fail = (errorText: string) =>
      eventsOf(called, { type: 'tool-output-error', toolCallId: 'c', errorText })[1];
    expect(fail('No.')).toEqual({ type: UPDATE, ...call, status: 'error', error: 'No.' });
    expect(fail('')).toMatchObject({ error: 'The tool failed.' });
  });

  it('fails with its arguments where they were refused', () => {
    const { input } = called as { input: unknown };
    expect(
      eventsOf(named, { ...called, type: 'tool-input-error', input, errorText: 'Bad.' })[1],
    ).toEqual({ type: UPDATE, ...call, status: 'error', args: { a: 1 }, error: 'Bad.' });
  });

  it('that was denied fails with the reason that was given', () => {
    const request = { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' };
    const denied = { type: 'tool-output-denied', toolCallId: 'c' };
    const answer = { type: 'tool-approval-response', approvalId: 'a', approved: false };
    const error = (...chunks: unknown[]) => eventsOf(called, request, ...chunks, denied)[1];
    expect(error({ ...answer, reason: 'Too late.' })).toMatchObject({ error: 'Too late.' });
    expect(error(answer)).toMatchObject({ status: 'error', error: 'It was not approved.' });
  });

  it('that is open when the turn ends fails', () => {
    expect(eventsOf(called, { type: 'finish' })[1]).toEqual({
      type: UPDATE,
      ...call,
      status: 'error',
      error: 'The tool gave no result.',
    });
  });

  it('sends nothing after its end, and nothing for an unknown id', () => {
    const output = { type: 'tool-output-available', toolCallId: 'c', output: 1 };
    expect(eventsOf(called, output, output, called, named)).toHaveLength(2);
    expect(eventsOf(output, { ...output, preliminary: true })).toEqual([]);
  });
});
