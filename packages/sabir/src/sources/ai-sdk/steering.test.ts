import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  AI_SDK_7,
  AI_SDK_RELEASES,
  callTool,
  type ModelCall,
  type ScriptedStep,
  say,
} from '../../../test/ai-sdk-models.ts';
import { runPrompt, until } from '../../../test/run-prompt.ts';
import type { UIMessage, UIMessagePart } from '../../core/message.ts';
import { aiSdkAgent } from './agent.ts';

/** What people said, and what the model said, in the order in which a call of the model has them. */
const outline = (call: ModelCall | undefined) =>
  call?.prompt.map(({ role, content }) => {
    const [part] = content as { type: string; text?: string }[];
    return `${role}: ${part?.text ?? part?.type}`;
  });

/** A tool that runs until the test ends it. */
function start(steps: ScriptedStep[], sdk = AI_SDK_7, isAgent = false) {
  const working = Promise.withResolvers<string>();
  const { model, calls } = sdk.model(steps);
  let isWorking = false;
  const tools = {
    work: {
      inputSchema: z.object({}),
      execute() {
        isWorking = true;
        return working.promise;
      },
    },
    pay: { inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' },
  };
  const options = isAgent ? { agent: new sdk.Agent({ model, tools }) } : { model, tools };
  const agent = aiSdkAgent({ ai: sdk.ai, ...options });
  const turn = runPrompt(agent, 'Go');
  return {
    agent,
    turn,
    calls,
    working: () => until(() => isWorking),
    finishWork: () => working.resolve('worked'),
    typesOf: () => turn.chunks.map(({ type }): string => type),
  };
}

const work = callTool('c1', 'work', {});
const shownIn = ({ parts }: UIMessage) =>
  parts.filter(({ type }: { type: string }) => type === 'steering-message') as unknown as {
    id: string;
    parts: UIMessagePart[];
  }[];

describe('a message for a running turn of AI SDK 7', () => {
  it.each([false, true])(
    'is seen by the next step, and shown between the two (agent: %s)',
    async (isAgent) => {
      const steps = [work, say('Both.')];
      const { turn, calls, working, finishWork, typesOf } = start(steps, AI_SDK_7, isAgent);
      await working();
      const steering = turn.steer('Also that.', 'm1');
      finishWork();
      await Promise.all([steering, turn.done]);
      expect(outline(calls[1])).toEqual([
        ...['user: Go', 'assistant: tool-call', 'tool: tool-result', 'user: Also that.'],
      ]);
      const shown = { id: 'm1', parts: [{ type: 'text', text: 'Also that.' }] };
      expect(shownIn(turn.message)).toMatchObject([shown]);
      const types = typesOf();
      const at = types.indexOf('steering-message');
      expect(types.indexOf('finish-step')).toBeLessThan(at);
      expect(types.lastIndexOf('start-step')).toBeGreaterThan(at);
      expect(turn.text).toBe('Both.');
    },
  );

  it('makes the model go on where it would have ended', async () => {
    const gate = Promise.withResolvers<void>();
    const slow = () =>
      new ReadableStream({
        async start(controller) {
          controller.enqueue({ type: 'stream-start', warnings: [] });
          for (const part of say('One. ')) controller.enqueue(part);
          await gate.promise;
          controller.enqueue(AI_SDK_7.finish());
          controller.close();
        },
      });
    const { turn, calls } = start([slow, say('Two.')]);
    await until(() => turn.text === 'One. ');
    const steering = turn.steer('More.');
    // It is on its way by the time that the step ends.
    await new Promise((resolve) => setTimeout(resolve, 10));
    gate.resolve();
    await Promise.all([steering, turn.done]);
    expect(outline(calls[1])).toEqual(['user: Go', 'assistant: One. ', 'user: More.']);
    expect(turn.text).toBe('One. Two.');
  });

  it('waits while people decide about a call, and stays in the conversation after it', async () => {
    const { turn, calls, working, finishWork } = start([
      ...[work, callTool('c2', 'pay', {}), callTool('c3', 'pay', {}), say('Done.')],
    ]);
    await working();
    const early = turn.steer('First.');
    finishWork();
    await until(() => turn.questions.length === 1);
    await early;
    const late = turn.steer('Second.');
    turn.answer('Approve');
    await until(() => turn.questions.length === 2);
    await late;
    turn.answer('Approve');
    await turn.done;
    const first = ['user: Go', 'assistant: tool-call', 'tool: tool-result', 'user: First.'];
    expect(outline(calls[1])).toEqual(first);
    const second = [...first, 'assistant: tool-call', 'tool: tool-result', 'user: Second.'];
    expect(outline(calls[2])).toEqual(second);
    expect(outline(calls[3])).toEqual([...second, 'assistant: tool-call', 'tool: tool-result']);
    expect(shownIn(turn.message).map(({ id }) => id)).toEqual(['First.', 'Second.']);
  });

  it('is not taken where the turn ends without another step', async () => {
    const { turn, typesOf, working } = start([work, say('Never.')]);
    await working();
    const steering = turn.steer('Too late.');
    turn.abort();
    await Promise.all([steering, turn.done]);
    expect(typesOf()).not.toContain('steering-message');
  });
});

it.each(AI_SDK_RELEASES.slice(0, 3))('$name takes no message into a running turn', async (sdk) => {
  const { turn, calls, working, finishWork } = start([work, say('Done.')], sdk);
  await working();
  await turn.steer('More.', 'm1');
  expect(turn.chunks.at(-1)).toEqual({
    type: 'data-steering',
    id: 'm1',
    data: { id: 'm1', status: 'refused' },
    transient: true,
  });
  finishWork();
  await turn.done;
  expect(JSON.stringify(calls[1])).not.toContain('More.');
  expect(turn.message.parts.map(({ type }) => type)).not.toContain('data-steering');
});

it.each(AI_SDK_RELEASES)(
  'a model of $name is told later what was said in mid-turn',
  async (sdk) => {
    const { model, calls } = sdk.model([say('x')]);
    const steered = { type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'Stop' }] };
    const text = (words: string) => ({ type: 'text', text: words });
    const messages = [
      { id: 'u', role: 'user', parts: [text('Count')] },
      { id: 'a', role: 'assistant', parts: [text('One, two'), steered, text('Stopped')] },
      { id: 'p', role: 'user', parts: [text('Thanks')] },
    ] as UIMessage[];
    await runPrompt(aiSdkAgent({ ai: sdk.ai, model }), 'Thanks', { messages }).done;
    expect(outline(calls[0])).toEqual([
      ...['user: Count', 'assistant: One, two', 'user: Stop', 'assistant: Stopped', 'user: Thanks'],
    ]);
  },
);
