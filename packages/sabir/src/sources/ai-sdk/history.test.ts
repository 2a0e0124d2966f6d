import { describe, expect, it } from 'vitest';
import { AI_SDK_RELEASES, say } from '../../../test/ai-sdk-models.ts';
import { runPrompt } from '../../../test/run-prompt.ts';
import type { UIMessage } from '../../core/message.ts';
import type { Attachment } from '../../turns/upstream.ts';
import { aiSdkAgent } from './agent.ts';

type Said = { role: string; content: { type: string; [field: string]: unknown }[] };

describe.each(AI_SDK_RELEASES)('what a model of $name is told', (release) => {
  async function toldOf(
    messages: { role: 'user' | 'assistant' | 'system'; parts: object[] }[],
    attachments: Attachment[] = [],
    text = 'And now?',
  ): Promise<Said[]> {
    const { model, calls } = release.model([say('x')]);
    const given = messages.map((message, index) => ({ id: `m${index}`, ...message }));
    const agent = aiSdkAgent({ ai: release.ai, model });
    const files = attachments.map((file) => ({ type: 'file', ...file }));
    const asked = { id: 'p', role: 'user', parts: [{ type: 'text', text }, ...files] };
    const conversation = { messages: [...given, asked] as UIMessage[], attachments };
    await runPrompt(agent, text, conversation).done;
    return calls[0]?.prompt as Said[];
  }

  const question = { role: 'user' as const, parts: [{ type: 'text', text: 'Hi' }] };
  const tool = {
    type: 'tool-lookup',
    toolCallId: 'c1',
    input: { q: 'x' },
    providerExecuted: true,
    state: 'output-available',
    output: 'found x',
  };
  const outline = (said: Said[]) =>
    said.map(({ role, content }) => `${role}: ${content.map(({ type }) => type).join(' ')}`);

  it('is the conversation, then the prompt', async () => {
    const said = await toldOf([
      question,
      { role: 'assistant', parts: [{ type: 'step-start' }, { type: 'text', text: 'Hello!' }] },
    ]);
    expect(said).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello!' }] },
      { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
    ]);
  });

  it('has the tools of earlier turns, with their results before what was said of them', async () => {
    const said = await toldOf([
      question,
      {
        role: 'assistant',
        parts: [
          { type: 'text', text: 'Let me see.' },
          tool,
          {
            ...tool,
            toolCallId: 'c2',
            state: 'output-error',
            errorText: 'Gone.',
            input: undefined,
          },
          { type: 'text', text: 'It is x.' },
        ],
      },
    ]);
    expect(outline(said)).toEqual([
      'user: text',
      'assistant: text tool-call tool-call',
      'tool: tool-result tool-result',
      'assistant: text',
      'user: text',
    ]);
    expect(said[2]?.content).toMatchObject([
      { toolCallId: 'c1', output: { type: 'text', value: 'found x' } },
      { toolCallId: 'c2', output: { type: 'error-text', value: 'Gone.' } },
    ]);
  });

  it('has no call that never got its output, and nothing that a model cannot be told', async () => {
    const { output: _, ...open } = tool;
    const said = await toldOf([
      { role: 'system', parts: [{ type: 'text', text: 'Obey.' }] },
      question,
      {
        role: 'assistant',
        parts: [
          { ...open, state: 'input-streaming' },
          { ...open, state: 'input-available' },
          { ...open, state: 'approval-requested', approval: { id: 'a' } },
          { ...tool, preliminary: true },
          { type: 'reasoning', text: 'Hm.' },
          { type: 'text', text: '' },
          { type: 'source-url', sourceId: 's', url: 'https://example.com' },
          { type: 'data-plan', data: 1 },
          { type: 'file', url: 'nowhere', mediaType: 'image/png' },
        ],
      },
      { role: 'assistant', parts: [{ ...open, state: 'output-denied' }] },
    ]);
    expect(outline(said)).toEqual([
      ...['user: text', 'assistant: tool-call', 'tool: tool-result', 'user: text'],
    ]);
    expect(said[2]?.content).toMatchObject([{ output: { value: 'It was not approved.' } }]);
  });

  it('has reasoning that its provider signed', async () => {
    const providerMetadata = { acme: { signature: 'abc' } };
    const parts = [
      { type: 'reasoning', text: 'Hm.', providerMetadata },
      { type: 'text', text: 'So.' },
    ];
    const said = await toldOf([question, { role: 'assistant', parts }]);
    expect(said[1]?.content).toMatchObject([
      { type: 'reasoning', text: 'Hm.', providerOptions: providerMetadata },
      { type: 'text' },
    ]);
  });

  it('has what is attached, also without words', async () => {
    const attachment = { url: 'data:text/plain;base64,SGk=', mediaType: 'text/plain' };
    const named = { ...attachment, filename: 'hi.txt' };
    const said = await toldOf([], [named]);
    expect(outline(said)).toEqual(['user: text file']);
    expect(said[0]?.content[1]).toMatchObject({ mediaType: 'text/plain', filename: 'hi.txt' });
    expect(JSON.stringify(said[0]?.content[1])).toContain('SGk=');
    expect(outline(await toldOf([], [attachment], ''))).toEqual(['user: file']);
  });

  it('has the files of earlier turns', async () => {
    const file = { type: 'file', url: 'data:image/png;base64,AAAA', mediaType: 'image/png' };
    const said = await toldOf([
      { role: 'user', parts: [{ type: 'text', text: 'Look.' }, file] },
      { role: 'assistant', parts: [file, { type: 'text', text: 'Nice.' }] },
    ]);
    expect(outline(said)).toEqual(['user: text file', 'assistant: file text', 'user: text']);
  });
});
