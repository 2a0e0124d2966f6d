import { describe, expect, it } from 'vitest';
import { playLive } from '../../../test/openai-agents/play-scenario.ts';
import { countingIds } from '../../../test/openai-agents/responses-script.ts';
import { SCENARIOS } from '../../../test/openai-agents/scenarios.ts';
import { scriptedModel } from '../../../test/openai-agents/scripted-model.ts';
import { SDKS, type Sdk } from '../../../test/openai-agents/sdks.ts';
import type { MessageLike } from '../../core/message.ts';
import { toAgentInput } from './to-agent-input.ts';

type Part = { type: string } & Record<string, unknown>;

const message = (role: MessageLike['role'], ...parts: Part[]): MessageLike => ({
  id: 'm',
  role,
  parts,
});
const text = (said: string) => ({ type: 'text', text: said });
const tool = (state: string, fields: object = {}) => ({
  type: 'tool-search',
  toolCallId: 'c',
  state,
  input: { q: 1 },
  ...fields,
});
const asked = {
  type: 'function_call',
  callId: 'c',
  name: 'search',
  arguments: '{"q":1}',
  status: 'completed',
};
const given = (result: string) => ({
  type: 'function_call_result',
  callId: 'c',
  name: 'search',
  status: 'completed',
  output: { type: 'text', text: result },
});
const reply = (said: string) => ({
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: said }],
});

/** What the API was sent for the input. */
async function sentFor(sdk: Sdk, messages: MessageLike[]): Promise<unknown> {
  const requests: Record<string, unknown>[] = [];
  const model = scriptedModel(sdk, [{ outputs: [{ text: 'Hi.' }] }], countingIds(), {
    onRequest: (request) => requests.push(request),
  });
  const agent = new sdk.Agent({ name: 'Helper', model });
  const run = await sdk.run(agent, toAgentInput(messages) as never, { stream: true });
  await run.completed;
  return requests[0]?.input;
}

describe('a chat as the input of a run', () => {
  it('gives a text of a person as a text, and what stands beside it as parts', () => {
    expect(toAgentInput([message('user', text('Hi'))])).toEqual([{ role: 'user', content: 'Hi' }]);
    expect(toAgentInput([message('user', text('a'), text('b'))])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
    ]);
  });

  it('gives images and other files of a person', () => {
    const file = (url: string, mediaType: unknown, more = {}) => ({
      type: 'file',
      url,
      mediaType,
      ...more,
    });
    expect(
      toAgentInput([
        message(
          'user',
          file('https://a.example/i', 'image/png'),
          file('data:application/pdf;base64,aGk=', 'application/pdf', { filename: 'a.pdf' }),
          file('https://a.example/b', undefined),
          { type: 'file', mediaType: 'image/png' },
        ),
      ]),
    ).toEqual([
      {
        role: 'user',
        content: [
          { type: 'input_image', image: 'https://a.example/i' },
          { type: 'input_file', file: 'data:application/pdf;base64,aGk=', filename: 'a.pdf' },
          { type: 'input_file', file: 'https://a.example/b' },
        ],
      },
    ]);
  });

  it('gives what the agent said and did, in its order', () => {
    const parts = [
      text('I look.'),
      tool('output-available', { output: { hits: 2 } }),
      text('Two.'),
    ];
    expect(toAgentInput([message('assistant', ...parts)])).toEqual([
      ...[reply('I look.'), asked, given('{"hits":2}'), reply('Two.')],
    ]);
  });

  it('gives what a tool gave: words as they are, a failure and a denial in words', () => {
    const result = (state: string, fields: object) => {
      const [, last] = toAgentInput([message('assistant', tool(state, fields))]);
      return last && 'output' in last ? last.output.text : undefined;
    };
    expect(result('output-available', { output: 'ok' })).toBe('ok');
    expect(result('output-available', { output: undefined })).toBe('null');
    expect(result('output-error', { errorText: 'no disk' })).toBe('no disk');
    expect(result('output-denied', {})).toBe('Tool execution was not approved.');
    expect(result('output-denied', { approval: { id: 'a', reason: 'Keep it.' } })).toBe('Keep it.');
  });

  it('gives arguments as text, also such as never were JSON', () => {
    const [first] = toAgentInput([
      message('assistant', tool('output-error', { input: '{"q":', errorText: 'x' })),
    ]);
    expect(first).toMatchObject({ arguments: '{"q":' });
    const [none] = toAgentInput([
      message('assistant', tool('output-available', { input: undefined, output: 1 })),
    ]);
    expect(none).toMatchObject({ arguments: '{}' });
  });

  it('takes a dynamic tool by its name', () => {
    const dynamic = { ...tool('output-available', { output: 1 }), type: 'dynamic-tool' };
    expect(toAgentInput([message('assistant', { ...dynamic, toolName: 'find' })])).toMatchObject([
      ...[{ name: 'find' }, { name: 'find' }],
    ]);
    expect(toAgentInput([message('assistant', dynamic)])).toEqual([]);
  });

  it('leaves out what no model is told: thoughts, open calls, tools of OpenAI, data', () => {
    const parts = [
      ...[{ type: 'step-start' }, { type: 'reasoning', text: 'Hm.' }, text('')],
      ...[tool('input-streaming'), tool('input-available'), tool('approval-requested')],
      tool('output-error', { errorText: 'It waits until the run goes on.' }),
      { ...tool('output-available', { output: 1 }), type: 'tool-web_search' },
      { ...tool('output-available', { output: 1 }), type: 'tool-image_generation' },
      ...[
        { type: 'data-agent', data: {} },
        { type: 'source-url', url: 'https://a.example/' },
      ],
      { type: 'file', url: 'https://a.example/i', mediaType: 'image/png' },
    ];
    expect(toAgentInput([message('assistant', ...parts)])).toEqual([]);
    expect(
      toAgentInput([message('user', text(''), { type: 'data-x' }), message('system')]),
    ).toEqual([]);
  });

  it('gives what the system says', () => {
    const messages = [message('system', text('Be '), text('brief.'))];
    expect(toAgentInput(messages, { system: true })).toEqual([
      { role: 'system', content: 'Be brief.' },
    ]);
    // A client could write itself instructions.
    expect(toAgentInput(messages)).toEqual([]);
    const odd = message('developer' as never, text('Do as I say.'));
    expect(toAgentInput([odd], { system: true })).toEqual([]);
  });

  it('says what is wrong with what is no chat', () => {
    expect(() => toAgentInput(undefined as never)).toThrow('messages is not an array');
    expect(() => toAgentInput([{ role: 'user', content: 'hi' } as never])).toThrow('has no parts');
  });
});

describe.each(SDKS)('a chat as the Agents SDK $version sends it', ({ version, sdk }) => {
  it('reaches the model whole', async () => {
    const sent = await sentFor(sdk, [
      message(
        'user',
        text('What is this?'),
        { type: 'file', url: 'https://a.example/i.png', mediaType: 'image/png' },
        { type: 'file', url: 'https://a.example/a.pdf', mediaType: 'application/pdf' },
      ),
      message('assistant', text('I look.'), tool('output-available', { output: { hits: 2 } })),
      message('user', text('And?')),
    ]);
    expect(sent).toMatchObject([
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: 'https://a.example/i.png' },
          { type: 'input_file', file_url: 'https://a.example/a.pdf' },
        ],
      },
      { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
      { type: 'function_call', call_id: 'c', name: 'search', arguments: '{"q":1}' },
      { type: 'function_call_output', call_id: 'c', output: '{"hits":2}' },
      { role: 'user', content: 'And?' },
    ]);
  });

  it.each(SCENARIOS.filter(({ since }) => since === undefined || since === version))(
    'takes the message of every run again: $name',
    async (scenario) => {
      const { message: answer } = await playLive(sdk, scenario);
      const sent = (await sentFor(sdk, [message('user', text('Hi')), answer])) as Part[];
      const called = sent.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : []));
      const answered = sent.flatMap((item) =>
        item.type === 'function_call_output' ? [item.call_id] : [],
      );
      // A call without its answer, or the other way round, is what the API refuses.
      expect(answered).toEqual(called);
      expect(new Set(called).size).toBe(called.length);
    },
  );
});
