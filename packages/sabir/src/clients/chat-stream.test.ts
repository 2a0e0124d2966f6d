import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { event } from '../../test/contract-server.ts';
import { stubPage } from '../../test/page-events.ts';
import { DONE, delta, END, META, START, startChat as start } from '../../test/scripted-chat.ts';

const JSON_HEADERS = { 'content-type': 'application/json' };

describe('a message that is sent', () => {
  it('[CT-HOOK-1] [CT-HOOK-2] [CT-STEP-8] is shown at once, goes out as the contract says, and is answered', async () => {
    const { chat, requests, state, stream, shown } = await start(
      {},
      { id: 'c1', body: { projectId: 'p', toolChoice: 'auto' }, headers: { 'x-app': 'yes' } },
    );
    const sent = chat.sendMessage({ text: 'ahoy', metadata: { from: 'me' } });
    await vi.waitUntil(() => state().status === 'submitted');
    expect(state().messages).toMatchObject([
      { role: 'user', parts: [{ type: 'text', text: 'ahoy' }], metadata: { from: 'me' } },
    ]);
    const { send, end } = await stream();
    send(META, START, delta('Hello'), delta(' there'), END, DONE);
    end();
    await sent;
    expect(requests[0]).toMatchObject({ method: 'POST', path: '/api/chat' });
    expect(requests[0]?.headers.get('x-app')).toBe('yes');
    expect(requests[0]?.headers.get('x-sabir-resume')).toBe('0');
    expect(requests[0]?.body).toEqual({
      sessionId: 'c1',
      projectId: 'p',
      toolChoice: 'auto',
      messages: state().messages.slice(0, 1),
    });
    expect(state()).toMatchObject({
      status: 'ready',
      error: undefined,
      meta: { runId: 'r1', model: 'm' },
      messages: [
        { role: 'user' },
        {
          id: 'a1',
          role: 'assistant',
          parts: [{ type: 'text', text: 'Hello there', state: 'done' }],
        },
      ],
    });
    expect(shown.map(({ status }) => status)).toEqual(
      expect.arrayContaining(['submitted', 'ready']),
    );
  });

  it('waits for the answer before it', async () => {
    const { chat, requests, stream, until } = await start();
    const first = chat.sendMessage('one');
    const { send, end } = await stream();
    const second = chat.sendMessage('two');
    const roles = () => chat.getSnapshot().messages.map(({ role }) => role);
    await until(() => roles().length === 2);
    send(META, START, delta('1'));
    await until(() => roles().length === 3);
    // It is shown behind the answer that it waits for, and is asked behind it.
    expect(roles()).toEqual(['user', 'assistant', 'user']);
    expect(requests).toHaveLength(1);
    send(END, DONE);
    end();
    await first;
    const next = await stream(1);
    const asked = chat.getSnapshot().messages;
    expect(requests[1]?.body).toMatchObject({ messages: asked });
    expect(roles()).toEqual(['user', 'assistant', 'user']);
    next.send(META, event('message.start', { messageId: 'a2' }), DONE);
    next.end();
    await second;
    expect(roles()).toEqual(['user', 'assistant', 'user', 'assistant']);
  });

  it('waits, and takes the place of another when its time has come', async () => {
    const { chat, requests, stream, until } = await start();
    const first = chat.sendMessage({ text: 'one', messageId: 'u1' });
    const { send } = await stream();
    send(META, START, delta('1'));
    await until(() => chat.getSnapshot().messages.length === 2);
    const edited = chat.sendMessage({ text: 'other', messageId: 'u1' });
    // What it will be is shown at once.
    await until(() => chat.getSnapshot().messages.length === 1);
    send(delta('2'), END, DONE);
    await first;
    (await stream(1)).send(META, event('message.start', { messageId: 'a2' }), DONE);
    await edited;
    expect(requests[1]?.body).toMatchObject({
      messages: [{ id: 'u1', parts: [{ text: 'other' }] }],
    });
    expect(chat.getSnapshot().messages.map(({ id }) => id)).toEqual(['u1', 'a2']);
  });

  it('is asked for another answer only when there is one', async () => {
    const { chat, requests, stream } = await start();
    const first = chat.sendMessage('one');
    const again = chat.regenerate();
    (await stream()).send(META, START, delta('1'), END, DONE);
    await first;
    (await stream(1)).send(META, event('message.start', { messageId: 'a2' }), DONE);
    await again;
    const body = { messageId: 'a1', trigger: 'regenerate-message', messages: [{ role: 'user' }] };
    expect(requests[1]?.body).toMatchObject(body);
    expect(chat.getSnapshot().messages.map(({ id }) => id)).toEqual([expect.anything(), 'a2']);
  });

  it('that waits and is worded anew is sent once, and what was cut off with it is not', async () => {
    const { chat, requests, stream, until } = await start();
    const first = chat.sendMessage('one');
    const { send } = await stream();
    const all = [
      chat.sendMessage({ text: 'delete all', messageId: 'b' }),
      chat.sendMessage('and more'),
      chat.sendMessage({ text: 'delete none', messageId: 'b' }),
    ];
    const shown = () => chat.getSnapshot().messages.map(({ parts }) => parts[0]);
    await until(() => shown().length === 2);
    expect(shown()).toMatchObject([{ text: 'one' }, { text: 'delete none' }]);
    send(META, START, delta('1'), END, DONE);
    await first;
    (await stream(1)).send(META, event('message.start', { messageId: 'a2' }), DONE);
    await Promise.all(all);
    expect(requests).toHaveLength(2);
    expect(requests[1]?.body).toMatchObject({
      messages: [{ role: 'user' }, { role: 'assistant' }, { parts: [{ text: 'delete none' }] }],
    });
  });

  it('that waits and is copied is still sent', async () => {
    const { chat, requests, stream, until } = await start();
    const first = chat.sendMessage('one');
    const { send } = await stream();
    const second = chat.sendMessage('two');
    await until(() => chat.getSnapshot().messages.length === 2);
    chat.setMessages((messages) => messages.map((message) => ({ ...message, metadata: 'seen' })));
    send(META, START, delta('1'), END, DONE);
    await first;
    (await stream(1)).send(META, event('message.start', { messageId: 'a2' }), DONE);
    await second;
    expect(requests[1]?.body).toMatchObject({
      messages: [{ metadata: 'seen' }, { role: 'assistant' }, { metadata: 'seen' }],
    });
  });

  it('can be taken back while it waits', async () => {
    const { chat, requests, stream, until } = await start();
    const first = chat.sendMessage('one');
    const { send } = await stream();
    const second = chat.sendMessage('two');
    await until(() => chat.getSnapshot().messages.length === 2);
    chat.setMessages((messages) => messages.slice(0, 1));
    send(META, START, delta('1'), END, DONE);
    await Promise.all([first, second]);
    expect(requests).toHaveLength(1);
    expect(chat.getSnapshot().messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  it('that cannot be read is told, and holds up no other', async () => {
    const { chat, stream, text } = await start();
    const files = [
      {
        get url(): string {
          throw new Error('unreadable');
        },
      },
    ] as never;
    const broken = chat.sendMessage({ text: 'look', files });
    const sent = chat.sendMessage('hi');
    await expect(broken).rejects.toThrow('unreadable');
    (await stream()).send(META, START, delta('hello'), END, DONE);
    await sent;
    expect(text()).toBe('hello');
  });

  it('carries files, and takes the place of another with its id', async () => {
    const { chat, stream, requests } = await start();
    const file = { url: 'data:text/plain,hi', mediaType: 'text/plain', filename: 'hi.txt' };
    const sent = chat.sendMessage({ text: 'look', files: [file], messageId: 'u1' });
    const { send } = await stream();
    send(META, START, DONE);
    await sent;
    expect(requests[0]?.body).toMatchObject({
      messages: [
        {
          id: 'u1',
          parts: [
            { type: 'file', ...file },
            { type: 'text', text: 'look' },
          ],
        },
      ],
    });
    const edited = chat.sendMessage({ text: 'look again', messageId: 'u1' });
    const next = await stream(1);
    next.send(META, START, DONE);
    await edited;
    const { messages } = chat.getSnapshot();
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(messages[0]?.parts).toEqual([{ type: 'text', text: 'look again' }]);
  });

  it('is answered anew, in place of the answer before', async () => {
    const { chat, stream, requests } = await start();
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, START, delta('first'), DONE);
    await sent;
    const again = chat.regenerate();
    const { send } = await stream(1);
    expect(requests[1]?.body).toMatchObject({
      trigger: 'regenerate-message',
      messageId: 'a1',
      messages: [{ role: 'user' }],
    });
    send(META, event('message.start', { messageId: 'a2' }), DONE);
    await again;
    expect(chat.getSnapshot().messages.map(({ id }) => id)).toEqual([expect.any(String), 'a2']);
  });

  it('that was never answered is answered, and what came before it stays', async () => {
    let isDown = true;
    const { chat, stream, requests } = await start({
      answer: () => (isDown ? new Response(null, { status: 500 }) : undefined),
    });
    chat.setMessages([
      { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'one' }] },
      { id: 'a0', role: 'assistant', parts: [{ type: 'text', text: 'first' }] },
    ]);
    await chat.sendMessage({ text: 'two', messageId: 'u2' });
    isDown = false;
    const again = chat.regenerate();
    (await stream()).send(META, START, DONE);
    await again;
    expect(requests[1]?.body).toMatchObject({
      messages: [{ id: 'u1' }, { id: 'a0' }, { id: 'u2' }],
    });
    expect(chat.getSnapshot().messages.map(({ id }) => id)).toEqual(['u1', 'a0', 'u2', 'a1']);
  });
});

describe('what goes wrong', () => {
  it('a refusal is told in the words of the server', async () => {
    const onError = vi.fn();
    const onFinish = vi.fn();
    const said = { code: 'no', message: 'You may not.', remedy: 'Ask.' };
    const { chat, state, requests } = await start(
      { answer: () => Response.json(said, { status: 403 }) },
      { onError, onFinish },
    );
    await chat.sendMessage('hi');
    expect(state()).toMatchObject({
      status: 'error',
      error: { message: 'You may not.', code: 'no' },
    });
    expect(requests).toHaveLength(1);
    expect(onError).toHaveBeenCalledTimes(1);
    expect(onFinish).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ isError: true }));
    chat.clearError();
    expect(state()).toMatchObject({ status: 'ready', error: undefined });
  });

  it('[CT-STEP-9] a terminal error ends the answer, with its code', async () => {
    const { chat, state, stream } = await start({ isNumbered: true });
    const sent = chat.sendMessage('hi');
    const failed = { message: 'It broke.', code: 'run-failed', retryable: true, terminal: true };
    (await stream()).send(META, START, delta('Hal'), { ...event('error', failed), seq: 4 });
    await sent;
    expect(state()).toMatchObject({
      status: 'error',
      error: { message: 'It broke.', code: 'run-failed', retryable: true },
      messages: [{}, { parts: [{ type: 'text', text: 'Hal', state: 'done' }] }],
    });
  });

  it('an error without words has some', async () => {
    const { chat, state, stream } = await start();
    const sent = chat.sendMessage('hi');
    const odd = { message: { a: 1 }, name: 5, stack: {}, terminal: true };
    (await stream()).send(META, event('error', odd));
    await sent;
    expect(state().error).toBeInstanceOf(Error);
    expect(state().error?.message).toBeTypeOf('string');
    expect(state().error?.stack).toBeTypeOf('string');
  });

  it('an error of a server written to the seed is the end when nothing follows it', async () => {
    const { chat, state, stream } = await start();
    const sent = chat.sendMessage('hi');
    const { send, end } = await stream();
    send(META, START, event('error', { message: 'It broke.' }));
    end();
    await sent;
    expect(state()).toMatchObject({ status: 'error', error: { message: 'It broke.' } });
  });

  it('an error without a word on whether it is the end is one when done follows', async () => {
    const onFinish = vi.fn();
    const { chat, state, stream } = await start({}, { onFinish });
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, START, event('error', { message: 'It broke.' }), DONE);
    await sent;
    expect(state()).toMatchObject({ status: 'error', error: { message: 'It broke.' } });
    expect(onFinish).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ isError: true }));
  });

  it('an error is over when something is taken up', async () => {
    const onFinish = vi.fn();
    let isBroken = true;
    const { chat, state } = await start(
      { answer: () => new Response(null, { status: isBroken ? 500 : 204 }) },
      { onFinish },
    );
    await chat.sendMessage('hi');
    expect(state().status).toBe('error');
    isBroken = false;
    await chat.resume();
    expect(state().status).toBe('ready');
    expect(state().error).toBeUndefined();
    expect(onFinish).toHaveBeenCalledTimes(1);
  });

  it('a stream that breaks and has no name is not asked for again', async () => {
    const { chat, state, stream, requests } = await start();
    const sent = chat.sendMessage('hi');
    const { send, controller } = await stream();
    send(META, START, delta('Half'));
    await vi.waitUntil(() => state().messages.length === 2);
    controller.error(new Error('cut'));
    await sent;
    expect(requests).toHaveLength(1);
    expect(state().status).toBe('error');
    expect(state().messages[1]?.parts).toMatchObject([{ text: 'Half', state: 'done' }]);
  });

  it('a connection is dead after its time of silence, not before', async () => {
    const { chat, state, stream, requests } = await start({ isNumbered: true }, { silenceMs: 600 });
    const sent = chat.sendMessage('hi');
    const { send } = await stream();
    send(META, { ...START, seq: 1 });
    await vi.waitUntil(() => state().messages.length === 2);
    const heardAt = Date.now();
    await vi.waitUntil(() => requests.length === 2, { timeout: 5000, interval: 5 });
    expect(Date.now() - heardAt).toBeGreaterThan(550);
    (await stream(1)).send({ ...END, seq: 2 }, { ...DONE, seq: 3 });
    await sent;
  });

  it('a stream that just stops is not taken for a whole one', async () => {
    const { chat, state, stream } = await start();
    const sent = chat.sendMessage('hi');
    const { send, end } = await stream();
    send(META, START, delta('Hal'), END);
    end();
    await sent;
    expect(state()).toMatchObject({ status: 'error', error: { code: 'turn-lost' } });
  });

  it('frames that nobody can read are passed over, counted, and reported once', async () => {
    const onError = vi.fn();
    const { chat, state, stream } = await start({}, { onError });
    const sent = chat.sendMessage('hi');
    const { send, write } = await stream();
    send(META, START);
    write('event: message.delta\ndata: {"messageId":\n\ndata: {"a":1}\n\nevent: x\ndata: null\n\n');
    send(delta('fine'), END, DONE);
    await sent;
    expect(state()).toMatchObject({
      status: 'ready',
      messages: [{}, { parts: [{ text: 'fine' }] }],
    });
    expect(chat.malformed).toBe(3);
    expect(onError).toHaveBeenCalledTimes(1);
  });

  it('listeners that throw are heard of, and disturb nothing', async () => {
    const caught = vi.fn();
    process.once('uncaughtException', caught);
    const { chat, state, stream } = await start(
      {},
      {
        onFinish: () => {
          throw new Error('mine');
        },
      },
    );
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, START, DONE);
    await sent;
    expect(state().status).toBe('ready');
    await vi.waitUntil(() => caught.mock.calls.length > 0);
    expect(caught.mock.calls[0]?.[0]).toMatchObject({ message: 'mine' });
  });
});

describe('a connection that drops', () => {
  const seq = (given: object, n: number) => ({ ...(given as ReturnType<typeof event>), seq: n });

  it('is taken up again behind what came whole', async () => {
    const { chat, text, state, stream, requests } = await start({ isNumbered: true }, { id: 'c1' });
    const sent = chat.sendMessage('hi');
    const { send, controller } = await stream();
    // The last has no number yet: it comes again.
    send(
      META,
      seq(START, 1),
      seq(delta('one '), 2),
      event('step', { messageId: 'a1', state: 'start' }),
    );
    await vi.waitUntil(() => text() === 'one ');
    controller.error(new Error('cut'));
    const next = await stream(1);
    expect(requests[1]).toMatchObject({ method: 'GET', path: '/api/chat/c1/stream' });
    expect(requests[1]?.headers.get('last-event-id')).toBe('turn-1:2');
    next.send(seq(event('step', { messageId: 'a1', state: 'start' }), 3), seq(delta('two'), 4));
    next.send(END, seq(DONE, 5));
    await sent;
    expect(state().status).toBe('ready');
    expect(state().messages[1]?.parts).toMatchObject([
      { type: 'text', text: 'one ' },
      { type: 'step-start' },
      { type: 'text', text: 'two' },
    ]);
  });

  it('may be told from the beginning again', async () => {
    const { chat, text, stream } = await start({ isNumbered: true });
    const sent = chat.sendMessage('hi');
    const { send, controller } = await stream();
    send(META, seq(START, 1), seq(delta('one '), 2));
    await vi.waitUntil(() => text() === 'one ');
    controller.error(new Error('cut'));
    (await stream(1)).send(META, seq(START, 1), seq(delta('one two'), 3), END, seq(DONE, 4));
    await sent;
    expect(text()).toBe('one two');
    expect(chat.getSnapshot().messages).toHaveLength(2);
  });

  it('is noticed by its silence', async () => {
    const { chat, text, stream } = await start({ isNumbered: true }, { silenceMs: 60 });
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, seq(START, 1), seq(delta('one'), 2));
    (await stream(1)).send(END, seq(DONE, 3));
    await sent;
    expect(text()).toBe('one');
  });

  it('half-open is cut when the network is back, unless nothing can be taken up again', async () => {
    const page = stubPage();
    for (const isNumbered of [true, false]) {
      const { chat, text, stream, requests } = await start({ isNumbered });
      const sent = chat.sendMessage('hi');
      const first = await stream();
      first.send(META, seq(START, 1), seq(delta('one'), 2));
      await vi.waitUntil(() => text() === 'one');
      page.fire('online');
      const next = isNumbered ? await stream(1) : first;
      next.send(END, seq(DONE, 3));
      await sent;
      expect(text()).toBe('one');
      expect(requests).toHaveLength(isNumbered ? 2 : 1);
      expect(page.listeners()).toBe(0);
    }
  });

  it.each(['pageshow', 'visibilitychange'])(
    'that missed a sign of life is cut on %s, and one that did not is kept',
    async (type) => {
      const page = stubPage();
      const { chat, text, stream, requests } = await start(
        { isNumbered: true },
        { silenceMs: 1_000 },
      );
      const sent = chat.sendMessage('hi');
      const first = await stream();
      first.send(META, seq(START, 1), seq(delta('one'), 2));
      await vi.waitUntil(() => text() === 'one');
      page.fire(type);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(requests).toHaveLength(1);
      vi.setSystemTime(Date.now() + 600);
      onTestFinished(() => void vi.useRealTimers());
      page.fire(type);
      (await stream(1)).send(END, seq(DONE, 3));
      await sent;
      expect(text()).toBe('one');
    },
  );

  it('does not count the attempts that it makes offline', async () => {
    vi.stubGlobal('navigator', { onLine: false });
    onTestFinished(() => void vi.unstubAllGlobals());
    let failures = 0;
    const { chat, text, stream } = await start(
      { isNumbered: true },
      {
        maxWaitMs: 1,
        async fetch(input, init) {
          if (failures++ < 30) throw new TypeError('Load failed');
          return fetch(input, init);
        },
      },
    );
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, seq(START, 1), seq(delta('one'), 2), END, seq(DONE, 3));
    await sent;
    expect(text()).toBe('one');
  });

  it('is given up when the server has forgotten the turn', async () => {
    const { chat, state, stream } = await start({
      isNumbered: true,
      answer: ({ method }) => (method === 'GET' ? new Response(null, { status: 204 }) : undefined),
    });
    const sent = chat.sendMessage('hi');
    const { send, end } = await stream();
    send(META, seq(START, 1));
    end();
    await sent;
    expect(state()).toMatchObject({ status: 'error', error: { code: 'turn-lost' } });
  });

  it('is tried again while the server is busy, and not when it refuses', async () => {
    const statuses = [503, 429, 404];
    const { chat, state, stream, requests } = await start({
      isNumbered: true,
      answer: ({ method }) =>
        method === 'GET'
          ? new Response('{"message":"Gone."}', {
              status: statuses.shift() ?? 0,
              headers: JSON_HEADERS,
            })
          : undefined,
    });
    const sent = chat.sendMessage('hi');
    const { send, end } = await stream();
    send(META, seq(START, 1));
    end();
    await sent;
    expect(requests).toHaveLength(4);
    expect(state().error?.message).toBe('Gone.');
  });

  it('before any answer is sent again: the server knows a message by its id', async () => {
    let calls = 0;
    const { chat, text, stream, requests } = await start(
      { isNumbered: true },
      {
        fetch: (input, init) =>
          ++calls === 1 ? Promise.reject(new TypeError('network')) : fetch(input, init),
      },
    );
    const sent = chat.sendMessage('hi');
    (await stream()).send(META, seq(START, 1), seq(delta('hello'), 2), END, seq(DONE, 3));
    await sent;
    expect(text()).toBe('hello');
    expect(requests.map(({ method }) => method)).toEqual(['POST']);
  });

  it('again and again without getting any further is lost in the end', async () => {
    const { chat, state, requests } = await start(
      {
        answer: () =>
          new Response('id: turn-1:0\nevent: status\ndata: {"state":"busy"}\n\n', {
            headers: { 'content-type': 'text/event-stream', 'x-sabir-turn': 'turn-1' },
          }),
      },
      { maxWaitMs: 1 },
    );
    await chat.sendMessage('hi');
    expect(state()).toMatchObject({ status: 'error', error: { code: 'turn-lost' } });
    expect(requests).toHaveLength(21);
  });
});
