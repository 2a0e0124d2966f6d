import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { chunkSequences } from '../../test/arbitrary-chunks.ts';
import { CLIENTS, createClient } from '../../test/real-clients.ts';
import {
  collect,
  FAST,
  message,
  SEND as SEND_ANY,
  type TransportOptions,
} from '../../test/scripted-transport.ts';
import {
  cutAfter,
  framesAfter,
  type Intercept,
  type ScriptedFrame,
  SSE,
  startScriptedServer,
  toFrames,
} from '../../test/scripted-turn-server.ts';
import type { Chunk } from '../core/chunks.ts';
import { TURN_LOST } from '../core/errors.ts';
import { foldChunks } from '../core/fold.ts';
import { SSE_DONE } from '../core/sse.ts';
import { SabirChatTransport } from './index.ts';

const LOST = { type: 'error', errorText: TURN_LOST.userMessage };
const CHUNKS: Chunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'start-step' },
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hé' },
  { type: 'text-delta', id: 't', delta: 'llo' },
  { type: 'text-end', id: 't' },
  { type: 'finish-step' },
  { type: 'finish', finishReason: 'stop' },
];
const SEND = { ...SEND_ANY, chatId: 'c 1' };

async function start(
  server: Partial<Parameters<typeof startScriptedServer>[0]> = {},
  options: TransportOptions = {},
) {
  const running = await startScriptedServer({ frames: toFrames(CHUNKS), ...server });
  onTestFinished(() => running.close());
  const transport = new SabirChatTransport({ api: running.api, backoff: FAST, ...options });
  return { ...running, transport };
}

const textOf = (frames: ScriptedFrame[]) => frames.map(({ text }) => text).join('');

/** Cuts the first answer after so many frames, and leaves the second to the test. */
const afterCut =
  (count: number, then: Intercept): Intercept =>
  (request, response, index) => {
    if (index > 0) return then(request, response, index);
    cutAfter(response.writeHead(200, SSE), Buffer.from(textOf(toFrames(CHUNKS).slice(0, count))));
    return true;
  };

describe('cut anywhere', () => {
  it('delivers every chunk once, in order, whatever is cut and how often', async () => {
    const seen = { cuts: 0, midFrame: 0, midGroup: 0 };
    await fc.assert(
      fc.asyncProperty(
        chunkSequences(7, 'whole'),
        fc.array(fc.nat({ max: 100_000 }), { minLength: 2, maxLength: 8 }),
        fc.infiniteStream(fc.boolean()),
        async (chunks, cuts, ids) => {
          const isLast = chunks.map(() => ids.next().value as boolean);
          const frames = toFrames(chunks, 'turn:1', (index) => isLast[index] === true);
          const server = await startScriptedServer({
            frames,
            cuts,
            onCut(body, at) {
              seen.cuts += 1;
              const before = Buffer.from(body.subarray(0, at)).toString();
              if (!before.endsWith('\n\n') && at > 0) seen.midFrame += 1;
              const whole = before.split('\n\n').at(-2);
              if (whole && !whole.includes('\nid: ')) seen.midGroup += 1;
            },
          });
          try {
            const transport = new SabirChatTransport({ api: server.api, backoff: FAST });
            expect(await collect(await transport.sendMessages(SEND))).toEqual(chunks);
          } finally {
            await server.close();
          }
        },
      ),
      { numRuns: 500 },
    );
    expect(seen.cuts).toBeGreaterThan(2_000);
    expect(seen.midFrame / seen.cuts).toBeGreaterThan(0.3);
    expect(seen.midGroup / seen.cuts).toBeGreaterThan(0.2);
  });

  it('goes on behind every byte of an answer', async () => {
    const frames = toFrames(CHUNKS, 'turn:1', (index) => index !== 2 && index !== 3);
    const body = Buffer.from(textOf(frames) + SSE_DONE);
    // One answer is cut, and what is asked for then is not.
    const cuts = Array.from({ length: body.length * 2 }, (_, i) => (i % 2 ? undefined : i / 2));
    const { transport } = await start({ frames, cuts });
    for (let at = 0; at < body.length; at++) {
      expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    }
  });

  it.each(CLIENTS)(
    'gives a real useChat of $name the same message as without a cut',
    async ({ name }) => {
      const { transport, requests } = await start({ cuts: [300, 200, 90] });
      const { chat, result } = await createClient(name, transport);
      await chat.sendMessage({ text: 'hi' });
      expect(requests.length).toBe(4);
      const { status, error, message: folded } = result();
      expect({ status, error }).toEqual({ status: 'ready', error: undefined });
      expect(folded).toMatchObject(JSON.parse(JSON.stringify(foldChunks(CHUNKS))));
    },
  );
});

describe('what a reconnect asks for', () => {
  it('names the cursor and the chat, with headers made afresh', async () => {
    let tokens = 0;
    const headers = async () => ({ authorization: `Bearer ${++tokens}` });
    const { transport, requests } = await start(
      { intercept: afterCut(4, () => undefined) },
      { headers, aiSdk: 7 },
    );
    const call = { headers: { 'x-call': 'yes' }, body: { more: 1 } };
    expect(await collect(await transport.sendMessages({ ...SEND, ...call }))).toEqual(CHUNKS);
    const [post, get] = requests;
    expect(post).toMatchObject({ method: 'POST', url: '/api/sessions/s1/chat' });
    expect(JSON.parse(post?.body ?? '')).toEqual({
      more: 1,
      id: 'c 1',
      messages: [message],
      trigger: 'submit-message',
    });
    expect(get).toMatchObject({ method: 'GET', url: '/api/sessions/s1/chat/c%201/stream' });
    const common = { 'x-sabir-ai-sdk': '7', 'x-call': 'yes' };
    expect(post?.headers).toMatchObject({
      ...common,
      'x-sabir-resume': '0',
      authorization: 'Bearer 1',
    });
    expect(get?.headers).toMatchObject({
      ...common,
      authorization: 'Bearer 2',
      'x-sabir-resume': '1',
      'last-event-id': 'turn:1:4',
    });
  });

  it('sends the same words again when nothing with a number has come', async () => {
    let count = 0;
    const { transport, requests } = await start(
      { cuts: [0, 5, 20] },
      { body: () => ({ n: ++count }) },
    );
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'POST']);
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
  });

  it('tries a request again that nobody answered', async () => {
    const { transport, requests } = await start({
      intercept: (_request, response, index) => {
        if (index >= 2) return;
        response.socket?.destroy();
        return true;
      },
    });
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    expect(requests).toHaveLength(3);
  });

  it('gives up a send that nobody ever answers, with the error of fetch', async () => {
    const { transport, requests } = await start({
      intercept: (_request, response) => {
        response.socket?.destroy();
        return true;
      },
    });
    await expect(transport.sendMessages(SEND)).rejects.toThrow(/fetch failed/);
    expect(requests).toHaveLength(4);
  });

  it('waits as long as the server asks, and tries again what may succeed', async () => {
    const statuses = [503, 429, 408, 401, 502];
    const { transport, requests } = await start({
      intercept: afterCut(4, (_request, response, index) => {
        const status = statuses[index - 1];
        if (status === undefined) return;
        response.writeHead(status, status === 429 ? { 'retry-after': '1' } : {}).end('{}');
        return true;
      }),
    });
    const startedAt = Date.now();
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
    expect(requests).toHaveLength(statuses.length + 2);
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(990);
  });

  it('counts neither being offline nor connections that lasted', async () => {
    const backoff = { initialMs: 1, maxMs: 10, attempts: 2 };
    const fail: Record<string, Intercept> = {
      offline: (_request, response) => void response.writeHead(502).end('{}'),
      lasting: (_request, response) => {
        response.writeHead(200, SSE).flushHeaders();
        setTimeout(() => response.destroy(), 40);
      },
    };
    for (const [name, then] of Object.entries(fail)) {
      vi.stubGlobal('navigator', { onLine: name !== 'offline' });
      onTestFinished(() => void vi.unstubAllGlobals());
      const { transport, requests } = await start(
        {
          intercept: afterCut(4, (request, response, index) => {
            if (index > 5) return;
            then(request, response, index);
            return true;
          }),
        },
        { backoff },
      );
      expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
      expect(requests).toHaveLength(7);
    }
  });

  it('tells what it is doing, to somebody who may throw', async () => {
    const events: unknown[] = [];
    const { transport } = await start(
      { intercept: afterCut(4, () => undefined) },
      {
        onReconnect(event) {
          events.push(event);
          throw new Error('mine');
        },
      },
    );
    await collect(await transport.sendMessages(SEND));
    expect(events).toEqual([
      { chatId: 'c 1', status: 'waiting', attempt: 1 },
      { chatId: 'c 1', status: 'connected', attempt: 1 },
    ]);
  });
});

describe('what cannot be taken up again', () => {
  const seenBefore = CHUNKS.slice(0, 4);
  const answerWith = (status: number, body = '') =>
    afterCut(4, (_request, response) => {
      response.writeHead(status).end(body);
      return true;
    });

  it('says that a turn is gone', async () => {
    const { transport } = await start({ intercept: answerWith(204) });
    expect(await collect(await transport.sendMessages(SEND))).toEqual([...seenBefore, LOST]);
  });

  it('passes on why the server refuses, without asking again', async () => {
    const refusal = JSON.stringify({ code: 'not-found', message: 'There is nothing here.' });
    const { transport, requests } = await start({ intercept: answerWith(404, refusal) });
    expect(await collect(await transport.sendMessages(SEND))).toEqual([
      ...seenBefore,
      { type: 'error', errorText: 'There is nothing here.' },
    ]);
    expect(requests).toHaveLength(2);
  });

  it('asks once more with a fresh token, and believes the second no', async () => {
    const refusal = JSON.stringify({ message: 'You are not signed in.' });
    const { transport, requests } = await start({ intercept: answerWith(401, refusal) });
    expect((await collect(await transport.sendMessages(SEND))).at(-1)).toEqual({
      type: 'error',
      errorText: 'You are not signed in.',
    });
    expect(requests).toHaveLength(3);
  });

  it('gives up when nothing helps', async () => {
    const backoff = { ...FAST, attempts: 4 };
    const { transport, requests } = await start(
      { intercept: answerWith(502, '<html>') },
      { backoff },
    );
    expect((await collect(await transport.sendMessages(SEND))).at(-1)).toEqual({
      type: 'error',
      errorText: 'The server could not answer.',
    });
    expect(requests).toHaveLength(5);
  });

  it('does not mix another turn into this one', async () => {
    const other = textOf(toFrames(CHUNKS, 'turn:2')) + SSE_DONE;
    const { transport } = await start({
      intercept: afterCut(4, (_request, response) => {
        response.writeHead(200, SSE).end(other);
        return true;
      }),
    });
    expect(await collect(await transport.sendMessages(SEND))).toEqual([...seenBefore, LOST]);
  });

  it('skips what it has when the server begins again', async () => {
    const { transport } = await start({
      intercept: afterCut(4, (_request, response) => {
        response.writeHead(200, SSE).end(textOf(toFrames(CHUNKS)) + SSE_DONE);
        return true;
      }),
    });
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
  });

  it('does not guess what is new in a frame that covers the cursor', async () => {
    const merged: Chunk[] = CHUNKS.toSpliced(3, 2, { type: 'text-delta', id: 't', delta: 'Héllo' });
    const frames = toFrames(merged).map(({ text, seq }) =>
      text.replace(`turn:1:${seq}`, `turn:1:${seq > 3 ? seq + 1 : seq}`),
    );
    const { transport } = await start({
      intercept: afterCut(4, (_request, response) => {
        response.writeHead(200, SSE).end(frames.join(''));
        return true;
      }),
    });
    expect(await collect(await transport.sendMessages(SEND))).toEqual([...seenBefore, LOST]);
  });

  it('drops a connection that sends what is no chunk, and goes on behind it', async () => {
    const { transport } = await start({
      intercept: (_request, response, index) => {
        if (index > 0) return;
        const good = textOf(toFrames(CHUNKS).slice(0, 3));
        response.writeHead(200, SSE).end(`${good}data: {"type":\n\ndata: [DONE]\n\n`);
        return true;
      },
    });
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
  });

  it('takes an end without finish for a drop, also a tidy one', async () => {
    const frames = toFrames(CHUNKS);
    const { transport } = await start({
      frames,
      intercept: (request, response, index) => {
        if (index > 1) return;
        const cursor = request.headers['last-event-id'] as string | undefined;
        const some = framesAfter(frames, 'turn:1', cursor).slice(0, 3);
        response.writeHead(200, SSE).end(textOf(some) + (index === 0 ? '' : SSE_DONE));
        return true;
      },
    });
    expect(await collect(await transport.sendMessages(SEND))).toEqual(CHUNKS);
  });
});
