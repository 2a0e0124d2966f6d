import { describe, expect, it, vi } from 'vitest';
import { readJsonl } from '../../../test/jsonl.ts';
import { CLIENTS, createClient, runClientWithTransport } from '../../../test/real-clients.ts';
import type { Chunk } from '../../chunks.ts';
import { foldChunks } from '../../fold.ts';
import { verifyChunks } from '../../verify.ts';
import type {
  AgentEvent,
  Command,
  OpenHarnessUIMessage,
  Runtime,
  RuntimeEvent,
  RuntimeStatus,
} from './events.ts';
import { createFlowRuntime, type FlowNodeContext } from './flow-runtime.ts';
import { OpenHarnessChatTransport } from './transport.ts';

const user = (text: string): OpenHarnessUIMessage => ({
  id: `user-${text}`,
  role: 'user',
  parts: [{ type: 'text', text }],
});

const send = (text: string, more: Record<string, unknown> = {}) => ({
  trigger: 'submit-message' as const,
  chatId: 'chat',
  messageId: undefined,
  messages: [user(text)],
  abortSignal: undefined,
  ...more,
});

async function readAll(stream: ReadableStream<Chunk>): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  expect(verifyChunks(chunks)).toEqual([]);
  return chunks;
}
const textOf = (chunks: Chunk[]) =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');
const outcomeOf = (chunks: Chunk[]) => foldChunks(chunks).metadata;
const errorOf = (chunks: Chunk[]) => chunks.find((chunk) => chunk.type === 'error')?.errorText;

/** A runtime whose events the test emits, in whichever status it says. */
function manualRuntime(initial: RuntimeStatus = 'idle') {
  const listeners = new Set<(event: RuntimeEvent) => void>();
  const commands: Command[] = [];
  const settle: { resolve(status: RuntimeStatus): void; reject(error: unknown): void }[] = [];
  const run = vi.fn(
    (_input?: unknown) =>
      new Promise<{ status: RuntimeStatus }>((resolve, reject) => {
        settle.push({ resolve: (end) => resolve({ status: end }), reject });
      }),
  );
  const runtime = {
    status: initial as RuntimeStatus | undefined,
    run,
    dispatch: (command: Command) => void commands.push(command),
    onEvent(listener: (event: RuntimeEvent) => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    getSnapshot: () => ({ status: runtime.status as RuntimeStatus }),
    listeners,
    commands,
    settle,
    emit(event: object) {
      for (const listener of listeners) listener(event as RuntimeEvent);
    },
    say: (content: string) =>
      runtime.emit({ type: 'agent:text:delta', nodeId: 'n', runId: 'r', content }),
  };
  return runtime;
}

/** A flow that speaks at once and then waits until it is told to go on or stopped. */
function waitingFlow(onSignal?: (signal: AbortSignal) => void) {
  const gate = Promise.withResolvers<void>();
  const create = () =>
    createFlowRuntime({
      name: 'waiting',
      nodes: {
        a: async ({ emit, signal }: FlowNodeContext) => {
          onSignal?.(signal);
          emit({ type: 'agent:start', sessionId: 's' });
          emit({ type: 'agent:text:delta', content: 'Half ' });
          await Promise.race([
            gate.promise,
            new Promise((resolve) => signal.addEventListener('abort', resolve)),
          ]);
          emit({ type: 'agent:text:delta', content: 'and whole.' });
          emit({ type: 'agent:complete' });
        },
      },
    });
  return { create, go: () => gate.resolve() };
}

const echo = (): Runtime =>
  createFlowRuntime({
    name: 'echo',
    nodes: {
      a: ({ input, emit }) => {
        const { message } = input as { message: string };
        emit({ type: 'agent:text', content: `You said ${message}` });
      },
    },
  });

describe('sending to a runtime', () => {
  it.each(CLIENTS)(
    'streams a flow into the real Chat of $name [FR-008] [FR-017]',
    async (client) => {
      const result = await runClientWithTransport(client.name, new OpenHarnessChatTransport(echo));
      expect(result.status).toBe('ready');
      expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
      expect(result.message?.parts).toContainEqual(
        expect.objectContaining({ type: 'text', text: 'You said hi', state: 'done' }),
      );
    },
  );

  it('starts an idle runtime with the last user message [FR-007] [FR-016] [US1-AS2]', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime);
    const messages = [
      user('first'),
      { id: 'a', role: 'assistant' as const, parts: [] },
      user('second'),
    ];
    await transport.sendMessages(send('', { messages }));
    expect(runtime.run).toHaveBeenCalledExactlyOnceWith({ message: 'second' });
    expect(runtime.commands).toEqual([]);
  });

  it('lets the application make the input from text and messages', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime, {
      toInput: (text, messages) => ({ question: text, turns: messages.length }),
    });
    await transport.sendMessages(send('why?'));
    expect(runtime.run).toHaveBeenCalledWith({ question: 'why?', turns: 1 });
  });

  it('gives chunks one by one as events come [US1-AS3] [EC-4]', async () => {
    const runtime = manualRuntime('idle');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    const reader = stream.getReader();
    const next = async () => (await reader.read()).value;
    runtime.say('one');
    expect(await next()).toMatchObject({ type: 'start' });
    expect(await next()).toMatchObject({ type: 'text-start' });
    expect(await next()).toMatchObject({ type: 'text-delta', delta: 'one' });
    const pending = next();
    runtime.say('two');
    expect(await pending).toMatchObject({ type: 'text-delta', delta: 'two' });
  });

  it('sends into a runtime that somebody else runs, and ends with its flow [FR-016]', async () => {
    const runtime = manualRuntime('running');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('psst'));
    expect(runtime.run).not.toHaveBeenCalled();
    expect(runtime.commands).toEqual([
      { type: 'send', message: 'psst', runId: expect.any(String) },
    ]);
    runtime.say('heard');
    runtime.emit({ type: 'agent:complete', nodeId: 'n', runId: 'r' });
    runtime.emit({ type: 'agent:text', nodeId: 'm', runId: 's', content: '!' });
    runtime.emit({ type: 'flow:complete', status: 'complete' });
    expect(textOf(await readAll(stream))).toBe('heard!');
  });

  it('sends a second message into the flow it runs: one stream ends, the other carries on [EC-2]', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(() => runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.status = 'running';
    runtime.say('For one');
    runtime.emit({ type: 'agent:text:delta', nodeId: 'n', runId: 'r', content: '.' });
    const second = await transport.sendMessages(send('two'));
    runtime.emit({ type: 'agent:text', nodeId: 'n', runId: 'r', content: 'For one.' });
    runtime.say('For two');
    runtime.settle[0]?.resolve('complete');
    expect(runtime.run).toHaveBeenCalledTimes(1);
    expect(runtime.commands).toMatchObject([{ type: 'send', message: 'two' }]);
    const [one, two] = [await readAll(first), await readAll(second)];
    expect([textOf(one), textOf(two)]).toEqual(['For one.', 'For two']);
    expect(outcomeOf(one)).toMatchObject({ outcome: 'stopped' });
    expect(outcomeOf(two)).toMatchObject({ outcome: 'finished' });
    expect(foldChunks(one).id).not.toBe(foldChunks(two).id);
    expect(runtime.listeners.size).toBe(0);
  });

  it('resumes a paused flow with the message and runs it on', async () => {
    const runtime = manualRuntime('paused');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('go on'));
    expect(runtime.commands).toEqual([{ type: 'resume', message: 'go on' }]);
    expect(runtime.run).toHaveBeenCalledExactlyOnceWith();
    runtime.say('on it');
    runtime.settle[0]?.resolve('complete');
    expect(textOf(await readAll(stream))).toBe('on it');
  });

  it('uses pause, resume and stop where a runtime has them', async () => {
    const old = manualRuntime('paused');
    const resumed = Promise.withResolvers<{ status: RuntimeStatus }>();
    const runtime = Object.assign(old, {
      pause: vi.fn(),
      resume: vi.fn((_message?: string) => resumed.promise),
      stop: vi.fn(),
    });
    const transport = new OpenHarnessChatTransport(runtime);
    const stream = await transport.sendMessages(send('go on'));
    expect(runtime.resume).toHaveBeenCalledExactlyOnceWith('go on');
    runtime.say('a');
    transport.stop('chat');
    expect(runtime.stop).toHaveBeenCalledOnce();
    expect([runtime.commands, runtime.run.mock.calls]).toEqual([[], []]);
    expect(outcomeOf(await readAll(stream))).toMatchObject({ outcome: 'stopped' });
  });

  it('pauses with the flow and goes on with the next message, on the same runtime', async () => {
    const gate = Promise.withResolvers<void>();
    let runtime = createFlowRuntime({ name: 'never', nodes: { a: () => 1 } });
    let created = 0;
    const transport = new OpenHarnessChatTransport(() => {
      created++;
      runtime = createFlowRuntime({
        name: 'f',
        nodes: {
          a: async ({ emit, messages }) => {
            if (messages.length > 0) {
              emit({ type: 'agent:text', content: `Heard ${messages.join()}` });
              return;
            }
            emit({ type: 'agent:text:delta', content: 'Wait' });
            await gate.promise;
          },
        },
      });
      return runtime;
    });
    const first = await transport.sendMessages(send('start'));
    runtime.dispatch({ type: 'abort', resumable: true });
    expect(outcomeOf(await readAll(first))).toMatchObject({ outcome: 'paused' });
    const second = await readAll(await transport.sendMessages(send('more')));
    expect(textOf(second)).toBe('Heard more');
    expect(created).toBe(1);
    await readAll(await transport.sendMessages(send('again')).finally(() => gate.resolve()));
    expect(created).toBe(2);
  });

  it.each(['complete', 'aborted'] as const)(
    'says how to start a runtime that is %s [EC-3]',
    async (status) => {
      const runtime = manualRuntime(status);
      const chunks = await readAll(
        await new OpenHarnessChatTransport(runtime).sendMessages(send('hi')),
      );
      expect(errorOf(chunks)).toMatch(/not ready.*run\(\).*factory/);
      expect(outcomeOf(chunks)).toMatchObject({ outcome: 'failed', code: 'runtime-not-ready' });
      expect([runtime.run.mock.calls, runtime.listeners.size]).toEqual([[], 0]);
    },
  );

  it('says so when a runtime cannot be started at all [EC-3]', async () => {
    const { run: _, ...runtime } = manualRuntime('idle');
    const chunks = await readAll(
      await new OpenHarnessChatTransport(runtime as unknown as Runtime).sendMessages(send('hi')),
    );
    expect(errorOf(chunks)).toMatch(/not ready/);
  });

  it('talks to a bare agent that has no run of its own, and ends with it', async () => {
    const whole = manualRuntime();
    whole.status = undefined;
    const { run: _, ...runtime } = whole;
    const stream = await new OpenHarnessChatTransport(runtime as unknown as Runtime).sendMessages(
      send('hi'),
    );
    expect(runtime.commands).toMatchObject([{ type: 'send', message: 'hi' }]);
    runtime.say('Hello');
    runtime.emit({ type: 'agent:complete', nodeId: 'n', runId: 'r' });
    expect(textOf(await readAll(stream))).toBe('Hello');
  });

  it('answers a posted assistant message without prompting again', async () => {
    const create = vi.fn(echo);
    const messages = [user('hi'), { id: 'answer', role: 'assistant' as const, parts: [] }];
    const chunks = await readAll(
      await new OpenHarnessChatTransport(create).sendMessages(send('', { messages })),
    );
    expect(chunks[0]).toEqual({ type: 'start', messageId: 'answer' });
    expect(create).not.toHaveBeenCalled();
  });

  it('sends the last user message again to a fresh runtime on regenerate', async () => {
    const flows = [waitingFlow(), waitingFlow()];
    let n = 0;
    const transport = new OpenHarnessChatTransport(() => flows[n++]?.create() as Runtime);
    const first = await transport.sendMessages(send('hi'));
    const second = await transport.sendMessages(send('hi', { trigger: 'regenerate-message' }));
    flows[1]?.go();
    expect(outcomeOf(await readAll(first))).toMatchObject({ outcome: 'stopped' });
    expect(textOf(await readAll(second))).toBe('Half and whole.');
    expect(n).toBe(2);
  });
});

describe('ends of a turn', () => {
  it('finishes when run() resolves without a terminal event', async () => {
    const outcomes = ['complete', 'paused', 'aborted', 'idle'] as const;
    const seen = await Promise.all(
      outcomes.map(async (status) => {
        const runtime = manualRuntime('idle');
        const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
        runtime.settle[0]?.resolve(status);
        const chunks = await readAll(stream);
        expect(runtime.listeners.size).toBe(0);
        return (outcomeOf(chunks) as { outcome?: string } | undefined)?.outcome;
      }),
    );
    expect(seen).toEqual(['finished', 'paused', 'failed', 'finished']);
  });

  it('shows why run() rejected, once, in words for people [SC-006]', async () => {
    const runtime = manualRuntime('idle');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    runtime.say('half');
    runtime.settle[0]?.reject(new Error('No model configured\n at /srv/x.js:1'));
    const chunks = await readAll(stream);
    expect(errorOf(chunks)).toBe('No model configured');
    expect(textOf(chunks)).toBe('half');
    expect(runtime.listeners.size).toBe(0);
  });

  it.each([undefined, null, 'a string', { message: 5 }])(
    'survives a rejection with %j',
    async (reason) => {
      const runtime = manualRuntime('idle');
      const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
      runtime.settle[0]?.reject(reason);
      expect(errorOf(await readAll(stream))).toBeTruthy();
    },
  );

  it('shows an error when run, onEvent or the factory throws', async () => {
    const boom = () => {
      throw new Error('boom');
    };
    const broken = [
      Object.assign(manualRuntime('idle'), { run: boom }),
      Object.assign(manualRuntime('idle'), { onEvent: boom }),
      Object.assign(manualRuntime('running'), { dispatch: boom }),
    ];
    for (const runtime of [...broken, boom, () => Promise.reject(new Error('boom'))]) {
      const transport = new OpenHarnessChatTransport(runtime as unknown as Runtime);
      expect(errorOf(await readAll(await transport.sendMessages(send('hi'))))).toBe('boom');
    }
  });

  it('ignores what comes after the end', async () => {
    const runtime = manualRuntime('idle');
    const keep: ((event: RuntimeEvent) => void)[] = [];
    const { onEvent } = runtime;
    runtime.onEvent = (listener) => {
      keep.push(listener);
      return onEvent(listener);
    };
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    runtime.emit({ type: 'flow:complete', status: 'complete' });
    const late = { type: 'agent:text:delta', nodeId: 'n', runId: 'r', content: 'late' } as const;
    for (const listener of keep) expect(() => listener(late)).not.toThrow();
    runtime.settle[0]?.reject(new Error('late'));
    const chunks = await readAll(stream);
    expect(chunks.at(-1)?.type).toBe('finish');
    expect([textOf(chunks), errorOf(chunks)]).toEqual(['', undefined]);
  });

  it('never throws into the runtime, even when nobody reads or the event is absurd', async () => {
    const runtime = manualRuntime('idle');
    await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    for (const event of [null, 'x', {}, { type: 'agent:tool', nodeId: 'n', runId: 'r' }]) {
      expect(() => runtime.emit(event as object)).not.toThrow();
    }
  });

  it('runs a resumed flow on with the input that it was started with', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime);
    await transport.sendMessages(send('one'));
    runtime.status = 'paused';
    runtime.settle[0]?.resolve('paused');
    await vi.waitFor(() => expect(runtime.listeners.size).toBe(0));
    await transport.sendMessages(send('two'));
    expect(runtime.commands).toEqual([{ type: 'resume', message: 'two' }]);
    expect(runtime.run.mock.calls).toEqual([[{ message: 'one' }], [{ message: 'one' }]]);
  });

  it('ends a paused run when it is stopped', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(() => runtime);
    await transport.sendMessages(send('one'));
    runtime.status = 'paused';
    runtime.emit({ type: 'flow:paused' });
    transport.stop('chat');
    expect(runtime.commands).toMatchObject([{ type: 'abort' }]);
  });

  it('does not let a run that was paused end the turn that resumed it', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.status = 'paused';
    runtime.emit({ type: 'flow:paused' });
    const second = await transport.sendMessages(send('two'));
    runtime.settle[0]?.resolve('paused');
    await readAll(first);
    runtime.say('still here');
    runtime.settle[1]?.resolve('complete');
    expect(textOf(await readAll(second))).toBe('still here');
  });
});

describe('a runtime that does not say the truth', () => {
  it('is not believed to run after its run() has rejected: the next message gets a new one', async () => {
    const runtimes = [manualRuntime('idle'), manualRuntime('idle')];
    let made = 0;
    const transport = new OpenHarnessChatTransport(() => runtimes[made++] as Runtime);
    const first = await transport.sendMessages(send('one'));
    Object.assign(runtimes[0] as object, { status: 'running' });
    runtimes[0]?.settle[0]?.reject(new Error('Execution stalled'));
    expect(errorOf(await readAll(first))).toBe('Execution stalled');
    const second = await transport.sendMessages(send('two'));
    runtimes[1]?.settle[0]?.resolve('complete');
    await readAll(second);
    expect([made, runtimes[0]?.commands]).toEqual([2, []]);
  });

  it('is not believed to run after it was told to stop', async () => {
    const runtimes = [manualRuntime('idle'), manualRuntime('idle')];
    let made = 0;
    const transport = new OpenHarnessChatTransport(() => runtimes[made++] as Runtime);
    await transport.sendMessages(send('one'));
    Object.assign(runtimes[0] as object, { status: 'running' });
    transport.stop('chat');
    await transport.sendMessages(send('two'));
    expect(runtimes[1]?.run).toHaveBeenCalledOnce();
  });

  it.each([{ message: Object.create(null) }, Object.create(null)])(
    'may reject with what cannot even be read',
    async (reason) => {
      const runtime = manualRuntime('idle');
      const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
      runtime.settle[0]?.reject(reason);
      expect(errorOf(await readAll(stream))).toBe('The agent could not finish its answer.');
      expect(runtime.listeners.size).toBe(0);
    },
  );

  it('may end while it is being subscribed to: then it is not run, and left', async () => {
    const runtime = manualRuntime('idle');
    const { onEvent } = runtime;
    runtime.onEvent = (listener) => {
      const leave = onEvent(listener);
      runtime.emit({ type: 'flow:complete', status: 'complete' });
      return leave;
    };
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    expect(outcomeOf(await readAll(stream))).toMatchObject({ outcome: 'finished' });
    expect([runtime.run.mock.calls, runtime.listeners.size]).toEqual([[], 0]);
  });

  it('failed where an error was the last it said, even if run() resolves', async () => {
    const runtime = manualRuntime('idle');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    runtime.emit({ type: 'node:error', nodeId: 'n', runId: 'r', error: 'Out of tokens' });
    runtime.settle[0]?.resolve('complete');
    expect(errorOf(await readAll(stream))).toBe('Out of tokens');
  });
});

describe('messages that cannot be delivered', () => {
  it('leave the turn that is running alone', async () => {
    const { dispatch: _, ...runtime } = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime as unknown as Runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.say('still ');
    const refused = await readAll(await transport.sendMessages(send('two')));
    expect(outcomeOf(refused)).toMatchObject({ code: 'runtime-not-ready' });
    const silent = await readAll(await transport.sendMessages(send('', { messages: [] })));
    expect(outcomeOf(silent)).toMatchObject({ code: 'no-user-message' });
    runtime.say('here');
    runtime.settle[0]?.resolve('complete');
    expect(textOf(await readAll(first))).toBe('still here');
  });
});

describe('a running runtime with pause and resume', () => {
  it('takes no message while it runs, and its turn goes on', async () => {
    const runtime = Object.assign(manualRuntime('idle'), {
      pause: vi.fn(),
      resume: vi.fn(),
      stop: vi.fn(),
    });
    const transport = new OpenHarnessChatTransport(() => runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.say('half ');
    const refused = await readAll(await transport.sendMessages(send('two')));
    expect(outcomeOf(refused)).toMatchObject({ code: 'runtime-not-ready' });
    runtime.say('whole');
    runtime.settle[0]?.resolve('complete');
    expect(textOf(await readAll(first))).toBe('half whole');
    expect([runtime.commands, runtime.pause.mock.calls]).toEqual([[], []]);
  });

  it('may reject when it is stopped', async () => {
    const warn = vi.fn();
    const runtime = Object.assign(manualRuntime('idle'), {
      stop: () => Promise.reject(new Error('cannot')),
    });
    const transport = new OpenHarnessChatTransport(runtime, { logger: { warn } });
    await readAll(await transport.sendMessages(send('hi')).finally(() => transport.stop('chat')));
    await vi.waitFor(() =>
      expect(warn).toHaveBeenCalledWith('the runtime threw', expect.anything()),
    );
  });
});

describe('what a runtime says of itself', () => {
  it('counts when it was paused by us and resumed by somebody else', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime);
    await readAll(
      await transport.sendMessages(send('one')).finally(() => {
        runtime.status = 'paused';
        runtime.settle[0]?.resolve('paused');
      }),
    );
    transport.stop('other');
    expect(await transport.reconnectToStream({ chatId: 'chat' })).toBeNull();
    runtime.status = 'paused';
    await transport.sendMessages(send('two'));
    expect(runtime.commands.at(-1)).toMatchObject({ type: 'resume', message: 'two' });
  });

  it('does not count after its flow has said that it is complete', async () => {
    const runtimes = [manualRuntime('idle'), manualRuntime('idle')];
    let made = 0;
    const transport = new OpenHarnessChatTransport(() => runtimes[made++] as Runtime);
    const first = await transport.sendMessages(send('one'));
    Object.assign(runtimes[0] as object, { status: 'running' });
    runtimes[0]?.emit({ type: 'flow:complete', status: 'complete' });
    await readAll(first);
    await transport.sendMessages(send('two'));
    expect(made).toBe(2);
  });

  it('is resumed when it is paused without having said so', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.status = 'paused';
    const second = await transport.sendMessages(send('two'));
    runtime.settle[1]?.resolve('complete');
    expect(runtime.commands).toEqual([{ type: 'resume', message: 'two' }]);
    await Promise.all([readAll(first), readAll(second)]);
  });

  it('lets a bare agent go on in a second message, and end it', async () => {
    const whole = manualRuntime();
    whole.status = undefined;
    const { run: _, ...runtime } = whole;
    const transport = new OpenHarnessChatTransport(runtime as unknown as Runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.say('a');
    const second = await transport.sendMessages(send('two'));
    runtime.say('b');
    runtime.emit({ type: 'agent:complete', nodeId: 'n', runId: 'r' });
    expect([textOf(await readAll(first)), textOf(await readAll(second))]).toEqual(['a', 'b']);
    expect(runtime.listeners.size).toBe(0);
  });
});

describe('while a runtime is being made', () => {
  function slowFactory() {
    const gates: PromiseWithResolvers<Runtime>[] = [];
    const create = vi.fn(() => {
      const gate = Promise.withResolvers<Runtime>();
      gates.push(gate);
      return gate.promise;
    });
    return { gates, create };
  }

  it('messages of one chat wait for each other, also when the first cannot start', async () => {
    const { gates, create } = slowFactory();
    const transport = new OpenHarnessChatTransport(create);
    const sent = ['one', 'two', 'three'].map((text) => transport.sendMessages(send(text)));
    await vi.waitFor(() => expect(gates).toHaveLength(1));
    gates[0]?.reject(new Error('no'));
    await vi.waitFor(() => expect(gates).toHaveLength(2));
    const runtime = manualRuntime('idle');
    gates[1]?.resolve(runtime);
    await Promise.all(sent);
    expect(create).toHaveBeenCalledTimes(2);
    expect(runtime.run).toHaveBeenCalledExactlyOnceWith({ message: 'two' });
    expect(runtime.commands).toMatchObject([{ type: 'send', message: 'three' }]);
  });

  it('an abort lets go at once, of a factory that hangs too', async () => {
    const { create } = slowFactory();
    const controller = new AbortController();
    const transport = new OpenHarnessChatTransport(create);
    const sent = transport.sendMessages(send('one', { abortSignal: controller.signal }));
    controller.abort();
    expect(outcomeOf(await readAll(await sent))).toMatchObject({ outcome: 'stopped' });
  });

  it('a stop waits for it and stops it, and a reconnect finds it', async () => {
    const { gates, create } = slowFactory();
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(create);
    const sent = transport.sendMessages(send('one'));
    const found = transport.reconnectToStream({ chatId: 'chat' });
    transport.stop('chat');
    await vi.waitFor(() => expect(gates).toHaveLength(1));
    gates[0]?.resolve(runtime);
    expect(outcomeOf(await readAll(await sent))).toMatchObject({ outcome: 'stopped' });
    expect(runtime.commands).toMatchObject([{ type: 'abort' }]);
    await found;
  });

  it('a message of another chat that cannot be delivered takes nothing over', async () => {
    const { dispatch: _, ...runtime } = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime as unknown as Runtime);
    await transport.sendMessages(send('one', { chatId: 'a' }));
    await readAll(await transport.sendMessages(send('two', { chatId: 'b' })));
    expect(await transport.reconnectToStream({ chatId: 'a' })).not.toBeNull();
    expect(await transport.reconnectToStream({ chatId: 'b' })).toBeNull();
  });
});

describe('stopping and leaving', () => {
  it('stops the run when the request is aborted, and ends quietly [FR-009] [EC-1]', async () => {
    const signals: AbortSignal[] = [];
    const { create } = waitingFlow((signal) => signals.push(signal));
    const controller = new AbortController();
    const stream = await new OpenHarnessChatTransport(create).sendMessages(
      send('hi', { abortSignal: controller.signal }),
    );
    controller.abort();
    const chunks = await readAll(stream);
    expect(signals[0]?.aborted).toBe(true);
    expect(errorOf(chunks)).toBeUndefined();
    expect(outcomeOf(chunks)).toMatchObject({ outcome: 'stopped', reason: 'stopped by the user' });
    expect(textOf(chunks)).toBe('Half ');
  });

  it('does not touch the runtime when the request was aborted before', async () => {
    const create = vi.fn(echo);
    const chunks = await readAll(
      await new OpenHarnessChatTransport(create).sendMessages(
        send('hi', { abortSignal: AbortSignal.abort() }),
      ),
    );
    expect(chunks.map(({ type }) => type)).toEqual(['start', 'finish']);
    expect(create).not.toHaveBeenCalled();
  });

  it('does not start a runtime when the request is aborted while it is being made', async () => {
    const controller = new AbortController();
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(async () => {
      controller.abort();
      return runtime;
    });
    await readAll(await transport.sendMessages(send('hi', { abortSignal: controller.signal })));
    expect(runtime.run).not.toHaveBeenCalled();
  });

  it('does nothing when the request is aborted after the end', async () => {
    const runtime = manualRuntime('idle');
    const controller = new AbortController();
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(
      send('hi', { abortSignal: controller.signal }),
    );
    runtime.emit({ type: 'flow:complete', status: 'complete' });
    await readAll(stream);
    controller.abort();
    expect(runtime.commands).toEqual([]);
  });

  it('stops the run when the last reader cancels', async () => {
    const runtime = manualRuntime('idle');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    await stream.cancel();
    expect(runtime.commands).toMatchObject([{ type: 'abort', reason: 'stopped by the user' }]);
    expect(runtime.listeners.size).toBe(0);
    expect(() => runtime.say('late')).not.toThrow();
  });

  it('survives a runtime that throws when it is stopped or left', async () => {
    const warn = vi.fn();
    const runtime = Object.assign(manualRuntime('idle'), {
      stop() {
        throw new Error('cannot stop');
      },
      onEvent: () => () => {
        throw new Error('cannot leave');
      },
    });
    const transport = new OpenHarnessChatTransport(runtime, { logger: { warn } });
    const stream = await transport.sendMessages(send('hi'));
    transport.stop('chat');
    await readAll(stream);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  it.each(CLIENTS)('stops when the Chat of $name is stopped', async ({ name }) => {
    const signals: AbortSignal[] = [];
    const { create } = waitingFlow((signal) => signals.push(signal));
    const { chat, result } = await createClient(name, new OpenHarnessChatTransport(create));
    const sent = chat.sendMessage({ text: 'hi' });
    await vi.waitFor(() => expect(result().message?.parts.length).toBeGreaterThan(1));
    await chat.stop();
    await sent;
    expect(signals[0]?.aborted).toBe(true);
    expect(result().status).toBe('ready');
    expect(result().message?.parts.at(-1)).toMatchObject({ text: 'Half ' });
  });
});

describe('reconnecting', () => {
  it('replays the running turn from its start, compacted, then goes on live [EC-6]', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(() => runtime);
    const first = await transport.sendMessages(send('hi'));
    for (const word of ['a', 'b', 'c']) runtime.say(word);
    const second = (await transport.reconnectToStream({ chatId: 'chat' })) as ReadableStream<Chunk>;
    const reader = second.getReader();
    const replay = [await reader.read(), await reader.read(), await reader.read()];
    expect(replay.map(({ value }) => value)).toMatchObject([
      { type: 'start' },
      { type: 'text-start' },
      { type: 'text-delta', delta: 'abc' },
    ]);
    reader.releaseLock();
    runtime.say('d');
    runtime.settle[0]?.resolve('complete');
    const rest: Chunk[] = [];
    for await (const chunk of second) rest.push(chunk);
    expect(textOf(rest)).toBe('d');
    expect(textOf(await readAll(first))).toBe('abcd');
  });

  it('gives null to who has left already', async () => {
    const { create, go } = waitingFlow();
    const transport = new OpenHarnessChatTransport(create);
    const stream = await transport.sendMessages(send('hi'));
    const abortSignal = AbortSignal.abort();
    expect(await transport.reconnectToStream({ chatId: 'chat', abortSignal })).toBeNull();
    go();
    await readAll(stream);
  });

  it('gives null where nothing runs: another chat, or a turn that is over', async () => {
    const transport = new OpenHarnessChatTransport(echo);
    expect(await transport.reconnectToStream({ chatId: 'chat' })).toBeNull();
    await readAll(await transport.sendMessages(send('hi')));
    expect(await transport.reconnectToStream({ chatId: 'chat' })).toBeNull();
  });

  it('goes on for the second viewer when the first leaves', async () => {
    const { create, go } = waitingFlow();
    const transport = new OpenHarnessChatTransport(create);
    const first = await transport.sendMessages(send('hi'));
    const second = await transport.reconnectToStream({ chatId: 'chat' });
    await first.cancel();
    go();
    expect(textOf(await readAll(second as ReadableStream<Chunk>))).toBe('Half and whole.');
  });

  it.each(CLIENTS)('resumes the real Chat of $name after it was made anew', async ({ name }) => {
    const { create, go } = waitingFlow();
    const transport = new OpenHarnessChatTransport(create);
    const before = await createClient(name, transport);
    const sent = before.chat.sendMessage({ text: 'hi' });
    await vi.waitFor(() => expect(before.result().message?.parts.length).toBeGreaterThan(1));
    const after = await createClient(name, transport);
    const resumed = after.chat.resumeStream();
    go();
    await Promise.all([sent, resumed]);
    expect(after.result().message).toEqual(before.result().message);
    expect(after.result().status).toBe('ready');
  });
});

describe('many and much', () => {
  it('keeps 100 concurrent streams from one factory apart [SC-010]', async () => {
    const transport = new OpenHarnessChatTransport(() =>
      createFlowRuntime({
        name: 'f',
        nodes: {
          a: async ({ input, emit }) => {
            const { message } = input as { message: string };
            for (let n = 0; n < 20; n++) {
              emit({ type: 'agent:text:delta', content: `${message}:${n} ` });
              emit({ type: 'agent:tool', toolName: 't', toolInput: message, toolOutput: n });
              await new Promise((resolve) => setTimeout(resolve, Math.random() * 3));
            }
          },
        },
      }),
    );
    const all = await Promise.all(
      Array.from({ length: 100 }, async (_, n) =>
        readAll(await transport.sendMessages(send(`m${n}`, { chatId: `c${n}` }))),
      ),
    );
    expect(new Set(all.map((chunks) => foldChunks(chunks).id)).size).toBe(100);
    for (const [n, chunks] of all.entries()) {
      const expected = Array.from({ length: 20 }, (_, k) => `m${n}:${k} `).join('');
      expect(textOf(chunks)).toBe(expected);
      const inputs = chunks.flatMap((chunk) => ('input' in chunk ? [chunk.input] : []));
      expect(new Set(inputs)).toEqual(new Set([`m${n}`]));
    }
  });

  it('knows every chat that was started at the same time', async () => {
    const flows = ['a', 'b', 'c'].map(() => waitingFlow());
    let made = 0;
    const transport = new OpenHarnessChatTransport(async () => flows[made++]?.create() as Runtime);
    const streams = await Promise.all(
      ['a', 'b', 'c'].map((chatId) => transport.sendMessages(send('hi', { chatId }))),
    );
    for (const chatId of ['a', 'b', 'c']) {
      expect(await transport.reconnectToStream({ chatId })).not.toBeNull();
      transport.stop(chatId);
    }
    for (const stream of streams) {
      expect(outcomeOf(await readAll(stream))).toMatchObject({ outcome: 'stopped' });
    }
  });

  it('sends two messages of one chat into one run, even at the same time', async () => {
    const runtime = manualRuntime('idle');
    const create = vi.fn(async () => runtime);
    const transport = new OpenHarnessChatTransport(create);
    await Promise.all([transport.sendMessages(send('one')), transport.sendMessages(send('two'))]);
    expect(create).toHaveBeenCalledOnce();
    expect(runtime.run).toHaveBeenCalledExactlyOnceWith({ message: 'one' });
    expect(runtime.commands).toMatchObject([{ type: 'send', message: 'two' }]);
  });

  it('streams 200,000 deltas with flat memory to a reader that discards them [EC-4]', async () => {
    const { gc } = globalThis as { gc?: () => void };
    if (!gc) throw new Error('run with --expose-gc');
    const runtime = manualRuntime('idle');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    const reader = stream.getReader();
    const heap = () => {
      gc();
      return process.memoryUsage().heapUsed;
    };
    const stretch = async (count: number) => {
      for (let n = 0; n < count; n++) {
        runtime.say('word ');
        await reader.read();
      }
      return heap();
    };
    const early = await stretch(10_000);
    const late = await stretch(190_000);
    // The log keeps the text itself for a reconnect, 0.95 MB here, and nothing per chunk.
    expect(late - early).toBeLessThan(3_000_000);
    await reader.cancel();
  }, 120_000);

  it('bounds what a reader that does not read can pile up, and loses nothing', async () => {
    const runtime = manualRuntime('idle');
    const stream = await new OpenHarnessChatTransport(runtime).sendMessages(send('hi'));
    let expected = '';
    for (let n = 0; n < 50_000; n++) {
      runtime.say(`${n} `);
      expected += `${n} `;
    }
    runtime.settle[0]?.resolve('complete');
    const chunks = await readAll(stream);
    expect(textOf(chunks)).toBe(expected);
    expect(chunks.length).toBeLessThan(2_000);
  });
});

describe('calling it wrongly', () => {
  it.each([undefined, null, 42, {}, 'runtime'])('refuses %j with what it wants', (value) => {
    expect(() => new OpenHarnessChatTransport(value as never)).toThrow(
      /Expected a runtime \(run, onEvent, getSnapshot\) or a function that returns one, got/,
    );
  });

  it('shows what is missing when a factory gives no runtime, or no user message came', async () => {
    const nothing = new OpenHarnessChatTransport((() => undefined) as never);
    expect(errorOf(await readAll(await nothing.sendMessages(send('hi'))))).toMatch(/not ready/);
    const transport = new OpenHarnessChatTransport(echo);
    const silent = await readAll(await transport.sendMessages(send('', { messages: [] })));
    expect(errorOf(silent)).toBe('There is no message to answer.');
    const broken = await transport.sendMessages(send('', { messages: undefined }));
    expect(errorOf(await readAll(broken))).toBeTruthy();
    expect(errorOf(await readAll(await transport.sendMessages(send('works again'))))).toBe(
      undefined,
    );
  });
});

describe('the recorded runtime', () => {
  const played = (name: string): Runtime => {
    const runtime = manualRuntime('idle');
    const events = readJsonl(
      new URL(`../../../test/fixtures/open-harness/${name}.events.jsonl`, import.meta.url),
    ) as (RuntimeEvent | AgentEvent)[];
    return Object.assign(runtime, {
      run: async () => {
        for (const event of events) {
          await Promise.resolve();
          runtime.emit(event);
        }
        return { status: 'complete' as const };
      },
    });
  };

  it.each(CLIENTS)('is shown whole by the Chat of $name [SC-003]', async ({ name }) => {
    const transport = new OpenHarnessChatTransport(() =>
      played('recorded-three-nodes-tools-thinking'),
    );
    const { message } = await runClientWithTransport(name, transport);
    const parts = message?.parts ?? [];
    expect(parts.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
      { input: { q: 'alpha' }, output: { hits: 1 } },
      { input: { q: 'beta' }, errorText: 'rate limited' },
      { input: { path: 'x' }, output: 'ok' },
    ]);
    expect(parts.filter(({ type }) => type === 'step-start')).toHaveLength(3);
    expect(message?.metadata).toMatchObject({
      outcome: 'finished',
      usage: { inputTokens: 30, outputTokens: 15 },
    });
  });
});
