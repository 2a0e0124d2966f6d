import { describe, expect, it, vi } from 'vitest';
import {
  echo,
  errorOf,
  manualRuntime,
  outcomeOf,
  readAll,
  send,
  textOf,
  user,
  waitingFlow,
} from '../../../test/harness-runtime.ts';
import { readJsonl } from '../../../test/jsonl.ts';
import { CLIENTS, runClientWithTransport } from '../../../test/real-clients.ts';
import { foldChunks } from '../../core/fold.ts';
import type { AgentEvent, Runtime, RuntimeEvent, RuntimeStatus } from './events.ts';
import { createFlowRuntime } from './flow-runtime.ts';
import { OpenHarnessChatTransport } from './transport.ts';

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
      /Expected a runtime \(run, onEvent, getSnapshot\) or a function that gives one, got/,
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
