import { describe, expect, it, vi } from 'vitest';
import {
  echo,
  errorOf,
  manualRuntime,
  outcomeOf,
  readAll,
  send,
  textOf,
  waitingFlow,
} from '../../../test/harness-runtime.ts';
import { CLIENTS, createClient } from '../../../test/real-clients.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { Runtime, RuntimeEvent } from './events.ts';
import { OpenHarnessChatTransport } from './transport.ts';

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
