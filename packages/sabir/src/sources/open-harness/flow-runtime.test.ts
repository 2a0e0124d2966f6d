import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import type { RuntimeEvent } from './events.ts';
import { createFlowRuntime, type FlowNodeContext, type FlowRuntime } from './flow-runtime.ts';

const record = (runtime: FlowRuntime) => {
  const events: RuntimeEvent[] = [];
  runtime.onEvent((event) => events.push(event));
  return events;
};
const types = (events: RuntimeEvent[]) => events.map(({ type }) => type);

/** An agent that says its text in two deltas and then the whole, as the recorded ones do. */
const agent =
  (text: string) =>
  async ({ emit }: FlowNodeContext) => {
    emit({ type: 'agent:start', sessionId: 's', prompt: 'p' });
    emit({ type: 'agent:text:delta', content: text.slice(0, 2) });
    emit({ type: 'agent:text:delta', content: text.slice(2) });
    emit({ type: 'agent:text', content: text });
    emit({ type: 'agent:complete', result: text, usage: { inputTokens: 1, outputTokens: 1 } });
    return { text };
  };

const untilAborted = ({ signal, emit }: FlowNodeContext) => {
  emit({ type: 'agent:start', sessionId: 's', prompt: 'p' });
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')));
  });
};

const recordedTypes = (name: string) =>
  readFileSync(
    new URL(`../../../test/fixtures/open-harness/recorded-${name}.events.jsonl`, import.meta.url),
    'utf8',
  )
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .flatMap((event) => (event.type ? [event.type as string] : []));

/** Consecutive repeats say how much an agent spoke, not in which order a runtime does. */
const inOrder = (all: string[]) => all.filter((type, index) => type !== all[index - 1]);

describe('createFlowRuntime', () => {
  it('emits in the recorded order', async () => {
    const runtime = createFlowRuntime({ name: 'one', nodes: { writer: agent('Hello') } });
    const events = record(runtime);
    const snapshot = await runtime.run({ message: 'hi' });
    expect(inOrder(types(events))).toEqual(inOrder(recordedTypes('one-node-text')));
    expect(snapshot).toMatchObject({ status: 'complete', nodeStatus: { writer: 'done' } });
    expect(events.every(({ timestamp }) => typeof timestamp === 'number')).toBe(true);
  });

  it('runs nodes one after another along the edges, each with the output before it', async () => {
    const inputs: unknown[] = [];
    const node = (name: string) => (context: FlowNodeContext) => {
      inputs.push(context.input);
      return `${name}'s output`;
    };
    const runtime = createFlowRuntime({
      name: 'three',
      nodes: { a: node('a'), b: node('b'), c: node('c') },
      edges: [
        { from: 'a', to: 'b' },
        { from: 'b', to: 'c' },
      ],
    });
    const events = record(runtime);
    await runtime.run({ message: 'go' });
    expect(inputs).toEqual([{ message: 'go' }, "a's output", "b's output"]);
    expect(inOrder(types(events))).toEqual([
      'flow:start',
      'node:start',
      'node:complete',
      'edge:fire',
      'node:start',
      'node:complete',
      'edge:fire',
      'node:start',
      'node:complete',
      'flow:complete',
    ]);
  });

  it('takes only the edges whose condition holds, and skips what none leads to', async () => {
    const runtime = createFlowRuntime({
      name: 'choice',
      nodes: { a: () => 1, yes: () => 2, no: () => 3, after: ({ input }) => input },
      edges: [
        { from: 'a', to: 'yes', when: ({ output }) => output === 1 },
        { from: 'a', to: 'no', when: ({ output }) => output !== 1 },
        { from: 'no', to: 'after' },
        { from: 'yes', to: 'after' },
      ],
    });
    const events = record(runtime);
    const { nodeStatus, outputs } = await runtime.run();
    expect(nodeStatus).toEqual({ a: 'done', yes: 'done', no: 'skipped', after: 'done' });
    expect(outputs.after).toBe(2);
    expect(events).toContainEqual(expect.objectContaining({ type: 'node:skipped', nodeId: 'no' }));
  });

  it('gives a node with several sources all of their outputs', async () => {
    const runtime = createFlowRuntime({
      name: 'join',
      nodes: { a: () => 1, b: () => 2, c: ({ input }) => input },
      edges: [
        { from: 'a', to: 'c' },
        { from: 'b', to: 'c' },
      ],
    });
    expect((await runtime.run()).outputs.c).toEqual({ a: 1, b: 2 });
  });

  it('ends a flow whose node throws as failed, and says why', async () => {
    const runtime = createFlowRuntime({
      name: 'f',
      nodes: {
        a: ({ emit }) => {
          emit({ type: 'agent:start' });
          throw new Error('no key');
        },
        b: () => 1,
      },
      edges: [{ from: 'a', to: 'b' }],
    });
    const events = record(runtime);
    const snapshot = await runtime.run();
    expect(types(events).slice(-3)).toEqual(['agent:error', 'node:error', 'flow:complete']);
    expect(events.at(-1)).toMatchObject({ status: 'failed' });
    expect(snapshot).toMatchObject({ status: 'complete', nodeStatus: { a: 'failed' } });
  });

  it('aborts in the recorded order, without waiting for the node, and runs no more', async () => {
    const runtime = createFlowRuntime({ name: 'f', nodes: { a: untilAborted } });
    const events = record(runtime);
    const running = runtime.run();
    runtime.dispatch({ type: 'abort', reason: 'enough' });
    expect((await running).status).toBe('aborted');
    expect(types(events).slice(-3)).toEqual(recordedTypes('abort').slice(-3));
    await expect(runtime.run()).rejects.toThrow('is not resumable');
  });

  it('pauses and resumes in the recorded order, with the message for the next node', async () => {
    let tries = 0;
    const heard: string[][] = [];
    const runtime = createFlowRuntime({
      name: 'f',
      nodes: {
        a: (context) => {
          heard.push(context.messages);
          return ++tries === 1 ? untilAborted(context) : agent('ok')(context);
        },
      },
    });
    const events = record(runtime);
    const running = runtime.run({ message: 'm' });
    runtime.dispatch({ type: 'abort', resumable: true });
    expect((await running).status).toBe('paused');
    expect(types(events).slice(-3)).toEqual(recordedTypes('pause').slice(-3));
    events.length = 0;
    runtime.dispatch({ type: 'resume', message: 'go on please' });
    expect(runtime.getSnapshot().status).toBe('running');
    expect((await runtime.run()).status).toBe('complete');
    expect(types(events).slice(0, 6)).toEqual(recordedTypes('resume').slice(0, 6));
    expect(heard).toEqual([[], ['go on please']]);
  });

  it('hands a message sent into the running flow to the next node', async () => {
    const heard: string[] = [];
    const runtime: FlowRuntime = createFlowRuntime({
      name: 'f',
      nodes: {
        a: () => runtime.dispatch({ type: 'send', message: 'psst', runId: 'x' }),
        b: ({ messages }) => heard.push(...messages),
      },
      edges: [{ from: 'a', to: 'b' }],
    });
    await runtime.run();
    expect(heard).toEqual(['psst']);
  });

  it('fails a flow whose condition throws', async () => {
    const runtime = createFlowRuntime({
      name: 'f',
      nodes: { a: () => 1, b: () => 2 },
      edges: [
        {
          from: 'a',
          to: 'b',
          when: () => {
            throw new Error('bad condition');
          },
        },
      ],
    });
    const events = record(runtime);
    expect((await runtime.run()).nodeStatus).toEqual({ a: 'failed', b: 'pending' });
    expect(types(events).slice(-2)).toEqual(['node:error', 'flow:complete']);
  });

  it.each(['flow:start', 'node:start', 'node:complete', 'edge:fire'])(
    'can be paused by a listener at %s, and goes on when it is resumed',
    async (type) => {
      const runtime = createFlowRuntime({
        name: 'f',
        nodes: { a: () => 1, b: ({ input }) => input },
        edges: [{ from: 'a', to: 'b' }],
      });
      const leave = runtime.onEvent((event) => {
        if (event.type !== type) return;
        leave();
        runtime.dispatch({ type: 'abort', resumable: true });
      });
      const events = record(runtime);
      expect((await runtime.run()).status).toBe('paused');
      expect(types(events)).not.toContain('flow:complete');
      runtime.dispatch({ type: 'resume' });
      expect(await runtime.run()).toMatchObject({ status: 'complete', outputs: { b: 1 } });
    },
  );

  it('can be aborted while it is paused', async () => {
    const runtime = createFlowRuntime({ name: 'f', nodes: { a: untilAborted } });
    const running = runtime.run();
    runtime.dispatch({ type: 'abort', resumable: true });
    await running;
    runtime.dispatch({ type: 'abort' });
    expect(runtime.getSnapshot().status).toBe('aborted');
  });

  it('drops what a node says after it was stopped', async () => {
    let late: () => void = () => undefined;
    const runtime = createFlowRuntime({
      name: 'f',
      nodes: {
        a: ({ emit }) => {
          late = () => emit({ type: 'agent:text:delta', content: 'late' });
          return new Promise(() => undefined);
        },
      },
    });
    const running = runtime.run();
    runtime.dispatch({ type: 'abort' });
    await running;
    const events = record(runtime);
    late();
    expect(events).toEqual([]);
  });

  it('keeps going when a listener throws, and reports it', async () => {
    const error = vi.fn();
    const runtime = createFlowRuntime({
      name: 'f',
      nodes: { a: () => 1 },
      logger: { warn: vi.fn(), error },
    });
    runtime.onEvent(() => {
      throw new Error('bad listener');
    });
    expect((await runtime.run()).status).toBe('complete');
    expect(error).toHaveBeenCalled();
  });

  it('refuses to run twice at once', async () => {
    const runtime = createFlowRuntime({ name: 'f', nodes: { a: untilAborted } });
    const running = runtime.run();
    await expect(runtime.run()).rejects.toThrow('already running');
    runtime.dispatch({ type: 'abort' });
    await running;
  });

  const one = (): unknown => 1;
  it.each([
    [{ nodes: {} }, 'at least one node'],
    [{ nodes: { a: 1 as never } }, 'Node "a" is not a function'],
    [{ nodes: { a: one }, edges: [{ from: 'a', to: 'b' }] }, 'there is no node "b"'],
    [
      {
        nodes: { a: one, b: one },
        edges: [
          { from: 'a', to: 'b' },
          { from: 'b', to: 'a' },
        ],
      },
      'loop through a, b',
    ],
  ])('says at once what is wrong with a flow: %#', (flow, message) => {
    expect(() => createFlowRuntime({ name: 'f', ...flow })).toThrow(message);
  });
});
