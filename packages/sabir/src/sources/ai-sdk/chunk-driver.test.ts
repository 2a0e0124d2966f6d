import { describe, expect, it } from 'vitest';
import { findToolFaults, runPrompt, until } from '../../../test/driver-run.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { DriverEvent } from '../../turns/driver.ts';
import { chunkDriver } from './chunk-driver.ts';

async function* giving(chunks: unknown[]): AsyncGenerator<Chunk> {
  for (const chunk of chunks) yield chunk as Chunk;
}

async function eventsOf(...chunks: unknown[]): Promise<DriverEvent[]> {
  const turn = runPrompt(chunkDriver({ answer: () => giving(chunks) }), 'hi');
  await turn.done;
  return turn.events;
}

const text = (type: 'start' | 'end', id: string) => ({ type: `text-${type}`, id });
const delta = (id: string, said: string) => ({ type: 'text-delta', id, delta: said });
const call = { toolCallId: 'c', toolName: 'pay' };
const called = { type: 'tool-input-available', ...call, input: { eur: 5 } };
const tool = { type: 'tool', callId: 'c', toolName: 'pay' };

describe('what becomes of a chunk', () => {
  it('text and reasoning are told as they come', async () => {
    const events = await eventsOf(
      { type: 'start', messageId: 'm' },
      { type: 'start-step' },
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
      { type: 'reasoning-end', id: 'r' },
      text('start', 't'),
      delta('t', 'Hello, '),
      delta('t', ''),
      delta('t', 'world!'),
      text('end', 't'),
      { type: 'finish-step' },
      { type: 'finish', finishReason: 'stop' },
    );
    expect(events).toEqual([
      { type: 'reasoning', delta: 'Hm' },
      { type: 'text', delta: 'Hello, ' },
      { type: 'text', delta: 'world!' },
    ]);
  });

  it('a tool goes from its name to its result', async () => {
    const events = await eventsOf(
      { type: 'tool-input-start', ...call },
      { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{"eur":5}' },
      called,
      { type: 'tool-output-available', toolCallId: 'c', output: 'paid' },
    );
    expect(events).toEqual([
      { ...tool, status: 'pending' },
      { type: 'tool-input', callId: 'c', toolName: 'pay', delta: '{"eur":5}' },
      { ...tool, status: 'running', args: { eur: 5 } },
      { ...tool, status: 'completed', result: 'paid' },
    ]);
  });

  it('a preliminary output is told of the call that runs', async () => {
    const events = await eventsOf(
      called,
      { type: 'tool-output-available', toolCallId: 'c', output: 1, preliminary: true },
      { type: 'tool-output-available', toolCallId: 'c', output: 2 },
    );
    expect(events.slice(1)).toEqual([
      { ...tool, status: 'running', result: 1 },
      { ...tool, status: 'completed', result: 2 },
    ]);
  });

  it('the last of only preliminary outputs is the result', async () => {
    const preliminary = { type: 'tool-output-available', toolCallId: 'c', preliminary: true };
    const events = await eventsOf(called, { ...preliminary, output: 1 });
    expect(events.at(-1)).toEqual({ ...tool, status: 'completed', result: 1 });
  });

  it('an input that was refused ends the call once', async () => {
    const events = await eventsOf(
      { type: 'tool-input-error', ...call, input: 'x', errorText: 'No number.' },
      { type: 'tool-output-error', toolCallId: 'c', errorText: 'No number.' },
    );
    expect(events).toEqual([{ ...tool, status: 'error', args: 'x', error: 'No number.' }]);
  });

  it('a call that is never answered ends with the turn', async () => {
    const events = await eventsOf(called);
    expect(events.at(-1)).toEqual({ ...tool, status: 'error', error: 'No result came.' });
  });

  it('a call that is denied says why', async () => {
    const events = await eventsOf(
      called,
      { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c', isAutomatic: true },
      { type: 'tool-approval-response', approvalId: 'a', approved: false, reason: 'Too much.' },
      { type: 'tool-output-denied', toolCallId: 'c' },
    );
    expect(events.at(-1)).toEqual({ ...tool, status: 'error', error: 'Too much.' });
  });

  it('sources, files and data lose nothing', async () => {
    const url = { sourceId: 's', url: 'https://example.com' };
    const document = { sourceId: 'd', mediaType: 'text/plain', title: 'Notes' };
    const file = { url: 'data:text/plain,x', mediaType: 'text/plain' };
    const events = await eventsOf(
      { type: 'source-url', ...url, title: undefined },
      { type: 'source-url', ...url, title: 'Example' },
      { type: 'source-document', ...document, filename: 'notes.txt' },
      { type: 'file', ...file },
      { type: 'reasoning-file', ...file },
      { type: 'data-plan', id: '1', data: { steps: 2 } },
      { type: 'data-plan', data: null, transient: true },
      { type: 'custom', kind: 'acme.note' },
      { type: 'steering-message', id: 'm2', parts: [{ type: 'text', text: 'Faster' }] },
    );
    expect(events).toEqual([
      { type: 'source', ...url },
      { type: 'source', ...url, title: 'Example' },
      { type: 'source', ...document, filename: 'notes.txt' },
      { type: 'file', ...file },
      { type: 'file', ...file },
      { type: 'data', name: 'plan', id: '1', data: { steps: 2 } },
      { type: 'data', name: 'plan', data: null, transient: true },
      { type: 'data', name: 'custom', data: { kind: 'acme.note' } },
      {
        type: 'data',
        name: 'steering-message',
        id: 'm2',
        data: { parts: [{ type: 'text', text: 'Faster' }] },
      },
    ]);
  });

  it('only steps between which something was said are told', async () => {
    const step = { type: 'start-step' };
    const events = await eventsOf(step, step, called, { type: 'finish-step' }, step, step);
    expect(events.map(({ type }) => type)).toEqual(['tool', 'step', 'tool']);
  });

  it('a step that is begun again ends its open calls and is followed by another', async () => {
    const events = await eventsOf(
      { type: 'start-step' },
      called,
      { type: 'start-step' },
      { type: 'tool-input-start', toolCallId: 'd', toolName: 'look' },
      { type: 'reset-step' },
      { type: 'tool-output-available', toolCallId: 'c', output: 1 },
    );
    expect(events.map((event) => ('status' in event ? event.status : event.type))).toEqual([
      ...['running', 'step', 'pending', 'error', 'step', 'completed'],
    ]);
  });

  it('usage is told once a stream, the other metadata at the end', async () => {
    const events = await eventsOf(
      { type: 'start', messageMetadata: { model: 'm', usage: { inputTokens: 1 } } },
      {
        type: 'message-metadata',
        messageMetadata: { usage: { inputTokens: 2 }, cost: { eur: 1 } },
      },
      delta('t', 'x'),
      { type: 'finish', finishReason: 'length', messageMetadata: { outcome: 'finished' } },
    );
    expect(events).toEqual([
      { type: 'text', delta: 'x' },
      { type: 'usage', usage: { inputTokens: 2 } },
      {
        type: 'data',
        name: 'message-metadata',
        id: 'message-metadata',
        data: { model: 'm', cost: { eur: 1 }, finishReason: 'length' },
      },
    ]);
  });

  it('an error fails the turn with its text, behind all that was said', async () => {
    const chunks = [
      ...[text('start', 'a'), text('start', 'b'), delta('b', 'B'), delta('a', 'A')],
      { type: 'error', errorText: 'It broke.' },
      ...[text('start', 'c'), delta('c', 'C')],
    ];
    const turn = runPrompt(chunkDriver({ answer: () => giving(chunks) }), 'hi');
    await expect(turn.done).rejects.toThrow('It broke.');
    expect(turn.text).toBe('AB');
  });

  it('an abort ends the answer', async () => {
    const events = await eventsOf(delta('t', 'A'), called, { type: 'abort' }, delta('t', 'B'));
    expect(events.map(({ type }) => type)).toEqual(['text', 'tool', 'tool']);
    expect(findToolFaults(events)).toEqual([]);
  });

  it('what is no chunk is left out', async () => {
    const odd = { type: 'text-delta', id: 't', delta: 5 };
    const chunks = [null, 'x', { type: 'nonsense' }, odd, { type: 'toString' }, delta('t', 'A')];
    expect(await eventsOf(...chunks)).toEqual([{ type: 'text', delta: 'A' }]);
  });

  it('an output that JSON cannot carry is made to fit', async () => {
    const output = { type: 'tool-output-available', toolCallId: 'c', output: undefined };
    const events = await eventsOf({ ...called, input: { big: 5n } }, output);
    expect(events).toMatchObject([{ args: { big: '5' } }, { result: null }]);
  });

  it('usage, status and events of a generator are passed on', async () => {
    const beside: DriverEvent[] = [
      { type: 'usage', usage: { inputTokens: 1 }, model: 'm' },
      { type: 'status', status: 'thinking' },
      { type: 'event', event: { type: 'title', title: 'Hello' } },
    ];
    expect(await eventsOf(...beside)).toEqual(beside);
  });
});

describe('texts that are open at the same time', () => {
  it('come one after the other', async () => {
    const events = await eventsOf(
      ...[text('start', 'a'), delta('a', '1'), text('start', 'b'), delta('b', 'x')],
      ...[text('start', 'c'), delta('c', '!'), delta('a', '2'), text('end', 'b')],
      ...[text('end', 'a'), delta('c', '?')],
    );
    const said = events.map((event) => (event as { delta: string }).delta);
    expect(said).toEqual(['1', '2', 'x', '!', '?']);
  });

  it('do not hold up reasoning or tools', async () => {
    const events = await eventsOf(
      ...[
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
      ],
      ...[text('start', 'a'), delta('a', 'A'), called],
    );
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual(['reasoning', 'text', 'tool']);
  });

  it('are let out at the end of their step', async () => {
    const events = await eventsOf(
      ...[text('start', 'a'), delta('a', 'A'), text('start', 'b'), delta('b', 'B')],
      ...[{ type: 'finish-step' }, { type: 'start-step' }, text('start', 'a'), delta('a', 'C')],
    );
    expect(events).toMatchObject([
      { delta: 'A' },
      { delta: 'B' },
      { type: 'step' },
      { delta: 'C' },
    ]);
  });
});

describe('where chunks come from', () => {
  it('a stream that ignores its reader is left when the turn stops', async () => {
    const canceled = Promise.withResolvers<void>();
    const stream = new ReadableStream<Chunk>({
      start: (controller) => controller.enqueue({ type: 'text-delta', id: 't', delta: 'Half ' }),
      cancel: () => canceled.resolve(),
    });
    const turn = runPrompt(chunkDriver({ answer: async () => stream }), 'slow');
    await until(() => turn.text === 'Half ');
    turn.abort();
    await turn.done;
    await canceled.promise;
  });

  it('a stream that comes too late is left', async () => {
    const canceled = Promise.withResolvers<void>();
    const coming = Promise.withResolvers<ReadableStream<Chunk>>();
    const turn = runPrompt(chunkDriver({ answer: () => coming.promise }), 'slow');
    turn.abort();
    await turn.done;
    coming.resolve(new ReadableStream<Chunk>({ cancel: () => canceled.resolve() }));
    await canceled.promise;
  });

  it('nothing is opened for a turn that was stopped before', async () => {
    let isOpened = false;
    const answer = () => {
      isOpened = true;
      return giving([]);
    };
    const stopping = new AbortController();
    stopping.abort();
    await runPrompt(chunkDriver({ answer }), 'x', {}, stopping).done;
    expect(isOpened).toBe(false);
  });

  it('what an answer throws fails the turn as it is', async () => {
    const error = new Error('No such agent.');
    const rejected = runPrompt(chunkDriver({ answer: () => Promise.reject(error) }), 'x');
    await expect(rejected.done).rejects.toBe(error);
    const odd = runPrompt(chunkDriver({ answer: () => ({}) as never }), 'x');
    await expect(odd.done).rejects.toThrow('no async iterable');
  });

  it('the name and the wish for history are the application’s', () => {
    const answer = () => giving([]);
    expect(chunkDriver({ answer })).toMatchObject({ name: 'chunks' });
    const named = chunkDriver({ name: 'mine', needsHistory: true, answer });
    expect(named).toMatchObject({ name: 'mine', needsHistory: true });
  });
});
