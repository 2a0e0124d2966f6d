import { describe, expect, it, vi } from 'vitest';
import { event } from '../../test/contract-server.ts';
import { DONE, delta, END, META, START, startChat as start } from '../../test/scripted-chat.ts';
import type { ContractEvent } from '../wires/contract/events.ts';

describe('stop, leave, resume, answer', () => {
  it('[CT-HOOK-2] abort stops on the server, and shows what that says last', async () => {
    const onFinish = vi.fn();
    const { chat, requests, stream, text } = await start(
      {
        answer: ({ path }) =>
          path.endsWith('/stop') ? Response.json({}, { status: 202 }) : undefined,
      },
      { id: 'c1', onFinish },
    );
    const sent = chat.sendMessage('hi');
    const { send } = await stream();
    send(META, START, delta('Hal'));
    await vi.waitUntil(() => text() === 'Hal');
    await chat.abort();
    expect(requests.at(-1)).toMatchObject({ method: 'POST', path: '/api/chat/c1/stop' });
    send(delta('t'), END, event('done', { finishReason: 'other' }));
    await sent;
    expect(text()).toBe('Halt');
    expect(chat.getSnapshot().status).toBe('ready');
    expect(onFinish).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ isAborted: true, isError: false, finishReason: 'other' }),
    );
  });

  it('abort ends the answer here where the server knows no stop', async () => {
    const { chat, stream, text, state } = await start({
      answer: ({ path }) =>
        path.endsWith('/stop') ? new Response(null, { status: 404 }) : undefined,
    });
    const sent = chat.sendMessage('hi');
    const { send, seen } = await stream();
    send(META, START, delta('Hal'));
    await vi.waitUntil(() => text() === 'Hal');
    await chat.abort();
    await sent;
    expect(state()).toMatchObject({ status: 'ready', error: undefined });
    expect(state().messages[1]?.parts).toMatchObject([{ text: 'Hal', state: 'done' }]);
    await vi.waitUntil(() => seen.isCancelled);
  });

  it('abort is no error where the server ends its stream without a word', async () => {
    const onError = vi.fn();
    const { chat, stream, text, state } = await start(
      { answer: ({ path }) => (path.endsWith('/stop') ? Response.json({}) : undefined) },
      { onError },
    );
    const sent = chat.sendMessage('hi');
    const { send, end } = await stream();
    send(META, START, delta('Hal'));
    await vi.waitUntil(() => text() === 'Hal');
    await chat.abort();
    end();
    await sent;
    expect(state().status).toBe('ready');
    expect(onError).not.toHaveBeenCalled();
  });

  it('abort does not wait for a server that hangs', async () => {
    const { chat, stream, text, state } = await start({
      answer: ({ path }) => (path.endsWith('/stop') ? new Promise(() => undefined) : undefined),
    });
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, START, delta('Hal'));
    await vi.waitUntil(() => text() === 'Hal');
    await chat.abort();
    await sent;
    expect(state()).toMatchObject({ status: 'ready', error: undefined });
  });

  it('abort asks again when a message that was on its way has arrived', async () => {
    const arrived = Promise.withResolvers<void>();
    let stops = 0;
    const { chat, stream, requests, until } = await start(
      {
        answer: ({ path }) =>
          path.endsWith('/stop')
            ? new Response(null, { status: ++stops === 1 ? 204 : 202 })
            : undefined,
      },
      {
        fetch: async (url, init) => {
          if (!`${url}`.endsWith('/stop')) await arrived.promise;
          return fetch(url, init);
        },
      },
    );
    const sent = chat.sendMessage('hi');
    await until(() => chat.getSnapshot().status === 'submitted');
    await chat.abort();
    expect(requests.map(({ path }) => path.split('/').at(-1))).toEqual(['stop']);
    arrived.resolve();
    const { send } = await stream();
    await until(() => stops === 2);
    send(META, START, END, DONE);
    await sent;
  });

  it('abort right behind a message sends nothing', async () => {
    const onFinish = vi.fn();
    const { chat, state, requests } = await start(
      { answer: () => new Response(null, { status: 204 }) },
      { onFinish },
    );
    const sent = chat.sendMessage('hi');
    await Promise.all([chat.abort(), sent]);
    expect(requests.map(({ path }) => path.split('/').at(-1))).toEqual(['stop']);
    expect(state()).toMatchObject({ status: 'ready', messages: [{ role: 'user' }] });
    expect(onFinish).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ isAborted: true, isError: false, message: undefined }),
    );
  });

  it('resume where nothing runs is no failure, also in browsers that give a 204 a body', async () => {
    const onError = vi.fn();
    const nothing = { ok: true, status: 204, headers: new Headers(), body: new Response('').body };
    const { chat, state } = await start(
      {},
      { id: 'c1', onError, fetch: async () => nothing as Response },
    );
    await chat.resume();
    expect(state()).toMatchObject({ status: 'ready', error: undefined });
    expect(onError).not.toHaveBeenCalled();
  });

  it('abort stops what nobody watches here', async () => {
    const { chat, requests } = await start(
      { answer: () => Response.json({}, { status: 202 }) },
      { id: 'c1' },
    );
    await chat.abort();
    expect(requests.map(({ path }) => path)).toEqual(['/api/chat/c1/stop']);
    expect(chat.getSnapshot().status).toBe('ready');
  });

  it('detach leaves without a word to the server', async () => {
    const onFinish = vi.fn();
    const { chat, stream, text, requests } = await start({}, { onFinish });
    const sent = chat.sendMessage('hi');
    const { send, seen } = await stream();
    send(META, START, delta('Hal'));
    await vi.waitUntil(() => text() === 'Hal');
    chat.detach();
    await sent;
    await vi.waitUntil(() => seen.isCancelled);
    expect(requests).toHaveLength(1);
    expect(onFinish).not.toHaveBeenCalled();
  });

  it('resume takes up what runs, in place of the half that is there', async () => {
    const half = {
      id: 'a1',
      role: 'assistant' as const,
      parts: [{ type: 'text' as const, text: 'He' }],
    };
    const { chat, stream, requests, text } = await start({}, { id: 'c1', initialMessages: [half] });
    const resumed = chat.resume();
    const { send } = await stream();
    expect(requests[0]).toMatchObject({ method: 'GET', path: '/api/chat/c1/stream' });
    send(META, START, delta('Hello'), END, DONE);
    await resumed;
    expect(chat.getSnapshot().messages).toHaveLength(1);
    expect(text()).toBe('Hello');
  });

  it('resume does nothing where nothing runs', async () => {
    const onFinish = vi.fn();
    const { chat, state, shown } = await start(
      { answer: () => new Response(null, { status: 204 }) },
      { onFinish },
    );
    await chat.resume();
    expect(state()).toMatchObject({ status: 'ready', messages: [] });
    expect(state().error).toBeUndefined();
    expect(new Set(shown.map(({ status }) => status))).toEqual(new Set(['ready']));
    expect(onFinish).not.toHaveBeenCalled();
  });

  it('resume is told where a server answers with its page instead', async () => {
    const html = { headers: { 'content-type': 'text/html' } };
    const { chat, state, requests } = await start({ answer: () => new Response('<html>', html) });
    await chat.resume();
    expect(state()).toMatchObject({ status: 'error', error: { status: 200 } });
    expect(requests).toHaveLength(1);
  });

  it.each([
    [202, {}, { status: 'accepted' }],
    [409, { answer: 'theirs' }, { status: 'answered', answer: 'theirs' }],
    [410, {}, { status: 'expired' }],
  ])('an answer to a question is told what became of it: %s', async (status, said, expected) => {
    const { chat, requests } = await start(
      { answer: () => Response.json(said, { status }) },
      { id: 'c1' },
    );
    expect(await chat.answer({ questionId: 'q', answer: 'mine' })).toEqual(expected);
    expect(requests[0]).toMatchObject({
      path: '/api/chat/c1/answer',
      body: { questionId: 'q', answer: 'mine' },
    });
  });
});

describe('events that come another way', () => {
  it('are applied, told and shown like those of a request', async () => {
    const onEvent = vi.fn();
    const { chat, state, text } = await start({}, { onEvent });
    chat.apply(META as ContractEvent);
    chat.apply(START as ContractEvent);
    chat.apply(delta('Hello') as ContractEvent);
    expect(text()).toBe('Hello');
    expect(state().status).toBe('streaming');
    chat.apply(END as ContractEvent);
    chat.apply(DONE as ContractEvent);
    expect(state()).toMatchObject({ status: 'ready', meta: { runId: 'r1' } });
    await vi.waitUntil(() => onEvent.mock.calls.length === 5);
  });
});

describe('notifications', () => {
  it('come at once for what begins or ends, and once a frame for words', async () => {
    const { chat, stream, shown, text } = await start();
    const sent = chat.sendMessage('hi');
    const { send } = await stream();
    send(META, START);
    await vi.waitUntil(() => chat.getSnapshot().messages.length === 2);
    const before = shown.length;
    for (let i = 0; i < 500; i++) send(delta('x'));
    await vi.waitUntil(() => text()?.length === 500);
    expect(shown.length - before).toBeLessThan(60);
    send(END, DONE);
    await sent;
    expect(chat.getSnapshot().status).toBe('ready');
  });

  it('share what has not changed', async () => {
    const { chat, stream, text } = await start(
      {},
      {
        initialMessages: [{ id: 'u0', role: 'user', parts: [{ type: 'text', text: 'old' }] }],
      },
    );
    const sent = chat.sendMessage('hi');
    const { send } = await stream();
    send(META, START, event('step', { messageId: 'a1', state: 'start' }), delta('a'));
    await vi.waitUntil(() => text() === 'a');
    const one = chat.getSnapshot();
    send(delta('b'));
    await vi.waitUntil(() => text() === 'ab');
    const two = chat.getSnapshot();
    expect(two).not.toBe(one);
    expect(two.messages[0]).toBe(one.messages[0]);
    expect(two.messages[1]).toBe(one.messages[1]);
    expect(two.messages[2]).not.toBe(one.messages[2]);
    expect(two.messages[2]?.parts[0]).toBe(one.messages[2]?.parts[0]);
    expect(chat.getSnapshot()).toBe(two);
    send(DONE);
    await sent;
  });

  it('tell what the agent says it is doing, while it does', async () => {
    const { chat, stream, state } = await start();
    const sent = chat.sendMessage('hi');
    const { send } = await stream();
    send(META, event('status', { state: 'thinking', message: 'Reading' }));
    await vi.waitUntil(() => state().runStatus);
    expect(state()).toMatchObject({
      runStatus: { state: 'thinking', message: 'Reading' },
      status: 'submitted',
    });
    send(START, DONE);
    await sent;
    expect(state().runStatus).toBeUndefined();
  });
});
