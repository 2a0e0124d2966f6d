import { describe, expect, it } from 'vitest';
import { model, says, started, translate } from '../../../test/openai-agents/events.ts';
import { outline } from '../../../test/openai-agents/outline.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { OpenAIAgentsOptions } from './events.ts';

const thrown = (name: string, message = 'secret', more: object = {}) =>
  Object.assign(new Error(message), { name, ...more });

/** How a turn ends whose run threw. */
function endWith(error: unknown, options: OpenAIAgentsOptions = {}, events: unknown[] = []) {
  const { translator, chunks } = translate([started, ...events], options);
  chunks.push(...translator.end({ status: 'finished' }, error));
  expect(verifyChunks(chunks)).toEqual([]);
  const { metadata, parts } = foldChunks(chunks);
  const shown = chunks.find((chunk) => chunk.type === 'error')?.errorText;
  const last = chunks.at(-1);
  return {
    shown,
    parts: outline({ parts }),
    metadata,
    finishReason: last?.type === 'finish' ? last.finishReason : undefined,
  };
}

describe('a run that throws', () => {
  it.each([
    {
      name: 'MaxTurnsExceededError',
      code: 'max-turns',
      text: 'The agent took too many steps without coming to an answer.',
    },
    {
      name: 'InputGuardrailTripwireTriggered',
      code: 'input-blocked',
      text: 'A safety check did not let this message through.',
    },
    {
      name: 'OutputGuardrailTripwireTriggered',
      code: 'output-blocked',
      text: 'A safety check stopped the answer.',
    },
    {
      name: 'ToolInputGuardrailTripwireTriggered',
      code: 'tool-blocked',
      text: 'A safety check stopped a tool.',
    },
    {
      name: 'ToolOutputGuardrailTripwireTriggered',
      code: 'tool-blocked',
      text: 'A safety check stopped a tool.',
    },
    {
      name: 'ModelTimeoutError',
      code: 'model-timeout',
      text: 'The model did not answer in time.',
    },
  ])('says for people what a $name is, and nothing of what is in it', ({ name, code, text }) => {
    const { shown, metadata, finishReason } = endWith(thrown(name));
    expect(shown).toBe(text);
    expect(metadata).toEqual({ outcome: 'failed', code });
    expect(finishReason).toBe('error');
    const errorText = (error: unknown) => `Sorry: ${(error as Error).name}`;
    expect(endWith(thrown(name), { errorText }).shown).toBe(`Sorry: ${name}`);
  });

  it('shows another error in its own words, without stack and paths', () => {
    const error = new Error('No key in /home/me/app/.env\n    at run (/home/me/app/run.js:1:2)');
    expect(endWith(error)).toMatchObject({
      shown: 'No key in …',
      metadata: { outcome: 'failed', code: 'run-failed' },
    });
    expect(endWith('plain words').shown).toBe('plain words');
    expect(endWith(null).shown).toBe('The agent could not finish its answer.');
    expect(endWith({ name: 'toString' }).metadata).toMatchObject({ code: 'run-failed' });
  });

  it('looks into the error that a tool’s is wrapped in', () => {
    const inner = thrown('ToolOutputGuardrailTripwireTriggered');
    const error = thrown('ToolCallError', 'Failed to run function tools', { error: inner });
    expect(endWith(error).metadata).toMatchObject({ code: 'tool-blocked' });
    const plain = thrown('ToolCallError', 'Failed: no disk', { error: new Error('no disk') });
    expect(endWith(plain).shown).toBe('no disk');
    expect(endWith(thrown('ToolCallError', 'Failed.')).shown).toBe('Failed.');
  });

  it('ends as stopped where somebody stopped it', () => {
    const { shown, metadata, finishReason } = endWith(thrown('AbortError'), {}, [says('a')]);
    expect({ shown, metadata, finishReason }).toEqual({
      shown: undefined,
      metadata: { outcome: 'stopped' },
      finishReason: 'other',
    });
  });

  it('takes a refusal for an answer, told once', () => {
    const error = thrown('ModelRefusalError', 'Model refused', { refusal: 'I cannot.' });
    const untold = endWith(error);
    expect(untold.parts).toEqual(['—', 'says I cannot.']);
    expect(untold.finishReason).toBe('content-filter');
    expect(untold.metadata).toEqual({ outcome: 'finished' });
    const delta = { type: 'response.refusal.delta', item_id: 'm', delta: 'I cannot.' };
    expect(endWith(error, {}, [model(delta)]).parts).toEqual(['—', 'says I cannot.']);
    const silent = endWith(thrown('ModelRefusalError'));
    expect(silent.parts).toEqual(['—']);
    expect(silent.finishReason).toBe('content-filter');
  });

  it('takes a response that was cut short for an answer, and no other misbehaviour', () => {
    const error = thrown('ModelBehaviorError', 'Tool x not found.');
    const response = { incomplete_details: { reason: 'max_output_tokens' } };
    const cut = model({ type: 'response.incomplete', response });
    expect(endWith(error, {}, [says('Half'), cut])).toMatchObject({
      shown: undefined,
      finishReason: 'length',
      metadata: { outcome: 'finished' },
    });
    expect(endWith(error).shown).toBe('Tool x not found.');
    expect(endWith(new Error('boom'), {}, [cut]).shown).toBe('boom');
  });

  it('survives an error that cannot be looked at', () => {
    const broken = new Proxy(
      {},
      {
        get() {
          throw new Error('never');
        },
      },
    );
    expect(endWith(broken).shown).toBe('The agent could not finish its answer.');
    const wrapped = { name: 'ToolCallError', error: broken };
    expect(endWith(wrapped).metadata).toMatchObject({ outcome: 'failed' });
  });

  it('lets the words of the application fail', () => {
    const errorText = () => {
      throw new Error('no words');
    };
    expect(endWith(new Error('boom'), { errorText }).shown).toBe('boom');
  });
});
