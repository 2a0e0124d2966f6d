import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { CLIENTS, createClient } from '../../test/real-clients.ts';
import {
  answerAll,
  CHUNKS,
  collect,
  cursorOf,
  message,
  SEND,
  startTransport,
  TEXTS,
  type TransportOptions,
  WAIT,
} from '../../test/scripted-transport.ts';
import { type SeenRequest, SSE } from '../../test/scripted-turn-server.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { SSE_DONE } from '../core/sse.ts';
import { SabirChatTransport } from './index.ts';

describe('sending', () => {
  it('rejects with what the server says, fit for people, and does not ask again', async () => {
    const refusal = { code: 'body-too-large', message: 'Too large.', remedy: 'Send less.' };
    for (const status of [400, 401, 413, 500, 503]) {
      const { transport, requests } = await startTransport((_request, response) => {
        response.writeHead(status).end(JSON.stringify(refusal));
      });
      await expect(transport.sendMessages(SEND)).rejects.toMatchObject({ ...refusal, status });
      expect(requests).toHaveLength(1);
    }
  });

  it('says something when the server says nothing', async () => {
    const { transport } = await startTransport((_request, response) => {
      response.writeHead(502).end('<html>');
    });
    await expect(transport.sendMessages(SEND)).rejects.toThrow('The server could not answer.');
  });

  it('does not take a page for an answer', async () => {
    const { transport } = await startTransport((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    });
    await expect(transport.sendMessages(SEND)).rejects.toThrow(/stream of events/);
  });

  it('puts paths in front of a query', async () => {
    const { transport: _, ...server } = await startTransport((request, response) => {
      if (request.method === 'GET') response.writeHead(204).end();
      else response.writeHead(202).end();
    });
    const transport = new SabirChatTransport({ api: `${server.api}/?channelId=x/y#here` });
    await transport.reconnectToStream({ chatId: 'a/b?' });
    await transport.stop('a/b?');
    expect(server.requests.map(({ url }) => url)).toEqual([
      '/api/sessions/s1/chat/a%2Fb%3F/stream?channelId=x/y',
      '/api/sessions/s1/chat/a%2Fb%3F/stop?channelId=x/y',
    ]);
    await expect(transport.stop('..')).rejects.toThrow('cannot be the id');
  });

  it('lets people prepare requests as in DefaultChatTransport', async () => {
    const prepareSendMessagesRequest = vi.fn(({ api, id, messages, headers }) => ({
      api: `${api}?prepared=1`,
      headers: { ...headers, 'x-prepared': 'yes' },
      body: { chat: id, last: messages.at(-1) },
    }));
    const prepareReconnectToStreamRequest = vi.fn(({ api, id }) => ({
      api: `${api}/of/${id}`,
      headers: { 'x-again': 'yes' },
    }));
    const { transport, requests } = await startTransport(
      (_request, response, index) => {
        if (index > 0) return answerAll(_request, response);
        response.writeHead(200, SSE).write(TEXTS[0], () => response.destroy());
      },
      {
        headers: new Headers({ 'x-own': '1' }),
        body: { own: 1 },
        credentials: 'include',
        prepareSendMessagesRequest,
        prepareReconnectToStreamRequest,
      },
    );
    const call = { headers: { 'x-call': '1' }, body: { call: 1 }, metadata: { about: 1 } };
    expect(await collect(await transport.sendMessages({ ...SEND, ...call }))).toEqual(CHUNKS);
    const [post, get] = requests;
    expect(post?.url).toContain('/chat?prepared=1');
    expect(JSON.parse(post?.body ?? '')).toEqual({ chat: 'c1', last: message });
    expect(post?.headers).toMatchObject({ 'x-prepared': 'yes', 'x-own': '1', 'x-call': '1' });
    expect(post?.headers).toMatchObject({ 'x-sabir-resume': '0' });
    expect(get?.url).toMatch(/\/of\/c1$/);
    expect(get?.headers).toMatchObject({ 'x-again': 'yes', 'last-event-id': 'turn:1:1' });
    expect(get?.headers['x-own']).toBeUndefined();
    expect(prepareSendMessagesRequest.mock.calls[0]?.[0]).toMatchObject({
      id: 'c1',
      body: { own: 1, call: 1 },
      credentials: 'include',
      requestMetadata: { about: 1 },
      trigger: 'submit-message',
    });
  });
});

it('stops and answers where the chat was sent to', async () => {
  const { transport, requests } = await startTransport(answerAll, {
    prepareSendMessagesRequest: ({ api, id }) => ({ api: `${api}-of-${id}`, body: { id } }),
  });
  await collect(await transport.sendMessages(SEND));
  await transport.stop('c1');
  expect(requests.at(-1)?.url).toMatch(/chat-of-c1\/c1\/stop$/);
  await transport.stop('another');
  expect(requests.at(-1)?.url).toMatch(/chat\/another\/stop$/);
});

describe('resuming after a reload', () => {
  it('is null where nothing runs', async () => {
    const { transport, requests } = await startTransport((_request, response) => {
      response.writeHead(204).end();
    });
    expect(await transport.reconnectToStream({ chatId: 'c1' })).toBeNull();
    expect(cursorOf(requests[0] as SeenRequest)).toBeUndefined();
    expect(transport.resumeStreamIsReplay).toBe(true);
  });

  it('replays the turn, and goes on when that drops', async () => {
    const { transport, requests } = await startTransport((_request, response, index) => {
      if (index === 0) response.writeHead(503).end();
      if (index === 1) response.writeHead(200, SSE).write(TEXTS[0], () => response.destroy());
      if (index === 2) response.writeHead(200, SSE).end(TEXTS.slice(1).join(''));
    });
    expect(await collect(await transport.reconnectToStream({ chatId: 'c1' }))).toEqual(CHUNKS);
    expect(requests.map(cursorOf)).toEqual([undefined, undefined, 'turn:1:1']);
  });

  it('rejects where the server refuses', async () => {
    const { transport } = await startTransport((_request, response) => {
      response.writeHead(404).end('{"code":"not-found","message":"There is nothing here."}');
    });
    await expect(transport.reconnectToStream({ chatId: 'c1' })).rejects.toMatchObject({
      message: 'There is nothing here.',
      code: 'not-found',
      status: 404,
    });
  });

  it.each(CLIENTS)('brings a real useChat of $name to the same message', async ({ name }) => {
    const { transport } = await startTransport(answerAll);
    const { chat, result } = await createClient(name, transport);
    chat.messages = [message];
    await chat.resumeStream();
    expect(result().error).toBeUndefined();
    expect(result().messages).toHaveLength(2);
    expect(result().message).toMatchObject(JSON.parse(JSON.stringify(foldChunks(CHUNKS))));
  });
});

describe('leaving, stopping, answering', () => {
  /** An answer that goes on until it is stopped. */
  async function startEndless(options: TransportOptions = {}) {
    const open = new Set<ServerResponse>();
    const server = await startTransport((request, response) => {
      if (request.url.endsWith('/stop')) {
        for (const one of open) one.end(TEXTS.slice(3).join('') + SSE_DONE);
        response.writeHead(202).end('{}');
        return;
      }
      open.add(response);
      response.writeHead(200, SSE).write(TEXTS.slice(0, 3).join(''));
      response.once('close', () => open.delete(response));
    }, options);
    const stops = () => server.requests.filter(({ url }) => url.endsWith('/stop')).length;
    return { ...server, open, stops };
  }

  it('detaches on abort: the request goes, the turn stays', async () => {
    const { transport, open, stops, requests } = await startEndless();
    const leaving = new AbortController();
    const stream = await transport.sendMessages({ ...SEND, abortSignal: leaving.signal });
    const reader = stream.getReader();
    await reader.read();
    leaving.abort();
    await expect(reader.read()).rejects.toMatchObject({ name: 'AbortError' });
    await vi.waitUntil(() => open.size === 0, WAIT);
    await setTimeout(30);
    expect([stops(), requests.length]).toEqual([0, 1]);
  });

  it('detaches when its reader has had enough', async () => {
    const { transport, open, stops, requests } = await startEndless();
    await (await transport.sendMessages(SEND)).cancel();
    await vi.waitUntil(() => open.size === 0, WAIT);
    await setTimeout(30);
    expect([stops(), requests.length]).toEqual([0, 1]);
  });

  it('leaves at once while it waits, for headers or for another try', async () => {
    const hanging = new SabirChatTransport<UIMessage>({
      api: 'http://127.0.0.1:9/chat',
      headers: () => new Promise(() => undefined),
    });
    const trying = new SabirChatTransport<UIMessage>({
      api: 'http://127.0.0.1:9/chat',
      backoff: { initialMs: 600_000, maxMs: 600_000 },
    });
    for (const transport of [hanging, trying]) {
      const leaving = new AbortController();
      const sending = transport.sendMessages({ ...SEND, abortSignal: leaving.signal });
      setTimeout(50).then(() => leaving.abort());
      await expect(sending).rejects.toMatchObject({ name: 'AbortError' });
      const late = transport.sendMessages({ ...SEND, abortSignal: leaving.signal });
      await expect(late).rejects.toMatchObject({ name: 'AbortError' });
    }
  });

  it('stops for everybody, and the stream tells how it ended', async () => {
    const { transport, stops } = await startEndless();
    const stream = await transport.sendMessages(SEND);
    await transport.stop('c1');
    expect(await collect(stream)).toEqual(CHUNKS);
    expect(stops()).toBe(1);
  });

  it.each(CLIENTS)(
    'lets useChat of $name stop by itself where that is wanted',
    async ({ name }) => {
      for (const stopOnAbort of [false, true]) {
        const { transport, open, stops } = await startEndless({ stopOnAbort });
        const { chat, result } = await createClient(name, transport);
        const sending = chat.sendMessage({ text: 'hi' });
        await vi.waitUntil(() => result().message?.parts.length, WAIT);
        await chat.stop();
        await sending;
        expect(result()).toMatchObject({ status: 'ready', error: undefined });
        await vi.waitUntil(() => open.size === 0, WAIT);
        await setTimeout(stopOnAbort ? 0 : 30);
        await vi.waitUntil(() => stops() === Number(stopOnAbort), WAIT);
      }
    },
  );

  it('does not stop a later turn when a signal aborts late', async () => {
    const { transport, requests } = await startTransport(answerAll, { stopOnAbort: true });
    const leaving = new AbortController();
    await collect(await transport.sendMessages({ ...SEND, abortSignal: leaving.signal }));
    leaving.abort();
    await setTimeout(30);
    expect(requests).toHaveLength(1);
  });

  it('answers, and tells whose answer won', async () => {
    const answers = [
      [202, {}],
      [409, { code: 'question-answered', answer: 'no' }],
      [410, { code: 'question-expired' }],
      [403, { code: 'forbidden', message: 'Not yours.' }],
    ] as const;
    const { transport, requests } = await startTransport((_request, response, index) => {
      const [status, body] = answers[index] ?? [500, {}];
      response.writeHead(status).end(JSON.stringify(body));
    });
    const answer = () => transport.answer('c1', { questionId: 'q', answer: 'yes' });
    expect(await answer()).toEqual({ status: 'accepted' });
    expect(await answer()).toEqual({ status: 'answered', answer: 'no' });
    expect(await answer()).toEqual({ status: 'expired' });
    await expect(answer()).rejects.toMatchObject({ message: 'Not yours.', status: 403 });
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ questionId: 'q', answer: 'yes' });
    expect(requests[0]?.url).toMatch(/\/chat\/c1\/answer$/);
  });

  it('leaves no timer and no listener behind', async () => {
    const { transport } = await startTransport(answerAll);
    const leaving = new AbortController();
    const add = vi.spyOn(leaving.signal, 'addEventListener');
    const remove = vi.spyOn(leaving.signal, 'removeEventListener');
    await collect(await transport.sendMessages({ ...SEND, abortSignal: leaving.signal }));
    expect(remove).toHaveBeenCalledTimes(add.mock.calls.length);
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout');
    const before = timers().length;
    for (let i = 0; i < 20; i++) await collect(await transport.sendMessages(SEND));
    expect(timers().length).toBeLessThanOrEqual(before);
  });
});
