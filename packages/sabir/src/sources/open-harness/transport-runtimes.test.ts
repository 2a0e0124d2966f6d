import { describe, expect, it, vi } from 'vitest';
import {
  errorOf,
  manualRuntime,
  outcomeOf,
  readAll,
  send,
  textOf,
} from '../../../test/harness-runtime.ts';
import type { Runtime } from './events.ts';
import { OpenHarnessChatTransport } from './transport.ts';

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
  it('counts when it was paused in our turn and resumed by somebody else', async () => {
    const runtime = manualRuntime('idle');
    const transport = new OpenHarnessChatTransport(runtime);
    const first = await transport.sendMessages(send('one'));
    runtime.settle[0]?.resolve('paused');
    expect(outcomeOf(await readAll(first))).toMatchObject({ outcome: 'paused' });
    runtime.status = 'running';
    await transport.sendMessages(send('two'));
    expect(runtime.commands).toMatchObject([{ type: 'send', message: 'two' }]);
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
