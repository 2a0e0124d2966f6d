/** `useChatStream` in a real browser with React as it comes, on a server over real sockets. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findChromium, launchChromium, NO_CHROMIUM } from '../../../scripts/chromium.ts';
import { event } from './contract-server.ts';
import { buildHookPage } from './hook-page/build.ts';
import {
  DONE,
  delta,
  END,
  hurryToForget,
  META,
  type OpenOptions,
  openPage,
  reader,
  START,
} from './hook-page/open-page.ts';

const API = '/api/chat';
const C1 = { api: API, id: 'c1' };
const HISTORY = [
  { id: 'u0', role: 'user' as const, parts: [{ type: 'text' as const, text: 'before' }] },
];

describe.skipIf(!findChromium())(
  `useChatStream in a browser${findChromium() ? '' : NO_CHROMIUM}`,
  () => {
    let browser: Browser;
    let script: string;

    beforeAll(async () => {
      [browser, script] = await Promise.all([launchChromium(), buildHookPage()]);
    }, 120_000);
    afterAll(() => browser?.close());

    const open = (options?: OpenOptions) => openPage(browser, script, options);
    /** Long enough for whatever should not come. */
    const aWhile = () => new Promise((resolve) => setTimeout(resolve, 100));

    describe('one component', () => {
      it('sends, shows the answer as it comes, and is ready again', async () => {
        const { show, chats, stream, shows, has, calls } = await open();
        await show({ readers: [reader('a', { ...C1, body: { projectId: 'p' } })] });
        await chats.send('a', 'ahoy');
        const { send, end } = await stream();
        send(META, START, delta('Hel'));
        await shows('a', 'ahoy|Hel');
        await has('a', 'streaming');
        send(delta('lo'));
        await shows('a', 'ahoy|Hello');
        send(END, DONE);
        end();
        await has('a', 'ready');
        expect(calls()).toMatchObject([
          {
            method: 'POST',
            path: API,
            body: { sessionId: 'c1', projectId: 'p', messages: [{ role: 'user' }] },
          },
        ]);
        await chats.send('a', 'again');
        await stream(1);
        expect(calls()[1]?.body).toMatchObject({
          messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'user' }],
        });
      });

      it('shows what is sent before the server says anything', async () => {
        const { show, chats, shows, has, page, stream } = await open();
        await show({ readers: [reader('a', C1)] });
        const statuses = await page.evaluate(async () => {
          const { chats } = globalThis.page;
          void chats.a?.sendMessage('ahoy');
          await new Promise((resolve) => setTimeout(resolve));
          return [chats.a?.status, document.querySelector('li')?.textContent];
        });
        expect(statuses).toEqual(['submitted', 'ahoy']);
        await shows('a', 'ahoy');
        await has('a', 'submitted');
        (await stream()).send(META, event('status', { state: 'thinking', message: 'Reading' }));
        await page.waitForSelector('[role=status]:has-text("Reading")');
        expect((await chats.state('a')).messages).toHaveLength(1);
      });

      it('stops the answer on the server', async () => {
        const { show, chats, stream, shows, has, calls } = await open({
          answer: ({ path }) =>
            path.endsWith('/stop') ? Response.json({}, { status: 202 }) : undefined,
        });
        await show({ readers: [reader('a', C1, { label: 'x' })] });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START, delta('Hal'));
        await shows('a', 'go|Hal');
        await chats.call('a', 'abort');
        await vi.waitUntil(() => calls().some(({ path }) => path === '/api/chat/c1/stop'));
        send(delta('t'), END, event('done', { finishReason: 'other' }));
        await shows('a', 'go|Halt');
        await has('a', 'ready');
      });

      it('shows what went wrong, and asks once more', async () => {
        const { show, chats, stream, shows, has, page, calls } = await open();
        await show({ readers: [reader('a', C1)] });
        await chats.send('a', 'go');
        const failed = { message: 'It broke.', retryable: true, terminal: true };
        (await stream()).send(META, START, delta('Hal'), event('error', failed));
        await has('a', 'error');
        expect(await page.textContent('[role=alert]')).toBe('It broke.');
        await shows('a', 'go|Hal');
        await chats.call('a', 'regenerate');
        const { send, end } = await stream(1);
        await has('a', 'submitted');
        expect(await page.$('[role=alert]')).toBeNull();
        expect(calls()[1]?.body).toMatchObject({
          trigger: 'regenerate-message',
          messageId: 'a1',
          messages: [{ role: 'user' }],
        });
        send(META, event('message.start', { messageId: 'a2' }));
        send(event('message.delta', { messageId: 'a2', delta: 'Better.' }), DONE);
        end();
        await shows('a', 'go|Better.');
        await has('a', 'ready');
      });

      it('answers a question of the agent', async () => {
        const { show, chats, stream, page, has, calls } = await open({
          answer: ({ path }) =>
            path.endsWith('/answer') ? Response.json({}, { status: 202 }) : undefined,
        });
        await show({ readers: [reader('a', C1)] });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START, event('question', { messageId: 'a1', questionId: 'q1', text: 'Sure?' }));
        await has('a', 'streaming');
        const result = await page.evaluate(() =>
          globalThis.page.chats.a?.answer({ questionId: 'q1', answer: 'yes' }),
        );
        expect(result).toEqual({ status: 'accepted' });
        expect(calls()[1]).toMatchObject({
          path: '/api/chat/c1/answer',
          body: { questionId: 'q1', answer: 'yes' },
        });
        send(DONE);
        await has('a', 'ready');
      });

      it('calls whatever callbacks it was given last', async () => {
        const { page, show, chats, stream, shows, heard, has } = await open();
        await show({ readers: [reader('a', C1, { label: 'old' })] });
        await chats.send('a', 'go');
        const { send } = await stream();
        send(META, START, delta('one'));
        await shows('a', 'go|one');
        await show({ readers: [reader('a', C1, { label: 'new' })] });
        await page.waitForSelector('[data-label=new]');
        await aWhile();
        send(delta(' two'), DONE);
        await has('a', 'ready');
        expect(await heard()).toEqual([
          'old: meta',
          'old: message.start',
          'old: message.delta',
          'new: message.delta',
          'new: done',
          'new: finished',
        ]);
      });

      it('sends what is said as it comes up, and asks for nothing that runs', async () => {
        const { show, stream, shows, calls, has } = await open();
        // The child's effects come first.
        await show({ readers: [reader('a', { ...C1, resume: true }, { says: 'first' })] });
        await shows('a', 'first');
        (await stream()).send(META, START, delta('Hello'), DONE);
        await shows('a', 'first|Hello');
        await has('a', 'ready');
        expect(calls().map(({ method }) => method)).toEqual(['POST']);
      });

      it('takes up nothing while something is about to be sent', async () => {
        const { show, stream, shows, calls, page } = await open();
        await show({ readers: [reader('a', { ...C1, initialMessages: HISTORY })] });
        await shows('a', 'before');
        await page.evaluate(() => {
          void globalThis.page.chats.a?.regenerate();
          void globalThis.page.chats.a?.resume();
        });
        (await stream()).send(META, START, delta('Hello'));
        await shows('a', 'before|Hello');
        expect(calls().map(({ method }) => method)).toEqual(['POST']);
      });
    });

    describe('strict mode', () => {
      it('sends once, takes up once, and loses nothing', async () => {
        const { show, stream, streams, shows, chats, has, calls } = await open();
        const options = { ...C1, resume: true, initialMessages: HISTORY };
        await show({ isStrict: true, readers: [reader('a', options, { label: 'x' })] });
        const { send, seen, end } = await stream();
        await aWhile();
        expect(calls()).toMatchObject([{ method: 'GET', path: '/api/chat/c1/stream' }]);
        expect(seen.isCancelled).toBe(false);
        send(META, START, delta('Hello'), END, DONE);
        end();
        await shows('a', 'before|Hello');
        await has('a', 'ready');
        await chats.send('a', 'go');
        const next = await stream(1);
        next.send(META, event('message.start', { messageId: 'a2' }));
        next.send(event('message.delta', { messageId: 'a2', delta: 'Bye' }), DONE);
        await shows('a', 'before|Hello|go|Bye');
        expect(calls().map(({ method }) => method)).toEqual(['GET', 'POST']);
        expect(streams).toHaveLength(2);
      });

      it.each([['c1'], [undefined]])('leaves nothing behind: id %s', async (id) => {
        const { page, show, has } = await open({ before: hurryToForget });
        for (let i = 0; i < 10; i++) {
          const options = { api: API, ...(id && { id: `${id}-${i}` }) };
          await show({ isStrict: true, readers: [reader('a', options)] });
          await has('a', 'ready');
          await show({ isStrict: true, readers: [] });
        }
        await aWhile();
        await page.waitForFunction(() => forgetting.asked === forgetting.done);
        await page.evaluate(() => delete globalThis.page.chats.a);
        const session = await page.context().newCDPSession(page);
        const { result } = await session.send('Runtime.evaluate', {
          expression: 'page.ChatStream.prototype',
        });
        await session.send('HeapProfiler.collectGarbage');
        const { objects } = await session.send('Runtime.queryObjects', {
          prototypeObjectId: result.objectId as string,
        });
        const { result: count } = await session.send('Runtime.callFunctionOn', {
          objectId: objects.objectId as string,
          functionDeclaration: 'function () { return this.length; }',
        });
        // React keeps what it showed last, and a spare of it.
        expect(count.value).toBeLessThanOrEqual(3);
      });
    });

    describe('leaving', () => {
      it('in mid-answer drops the connection, stops nothing, and coming back takes it up', async () => {
        const { show, stream, shows, chats, has, calls } = await open();
        await show({ readers: [reader('a', C1, { label: 'x' })] });
        await chats.send('a', 'go');
        const { send, seen } = await stream();
        send(META, START, delta('Hel'));
        await shows('a', 'go|Hel');
        await show({ readers: [] });
        await vi.waitUntil(() => seen.isCancelled);
        await aWhile();
        expect(calls()).toHaveLength(1);
        const initialMessages = HISTORY;
        await show({ readers: [reader('a', { ...C1, resume: true, initialMessages })] });
        const next = await stream(1);
        expect(calls()[1]).toMatchObject({ method: 'GET', path: '/api/chat/c1/stream' });
        next.send(META, START, delta('Hello'), END, DONE);
        await shows('a', 'before|Hello');
        await has('a', 'ready');
      });

      it('a hidden one leaves too, and comes back to the chat that others show by then', async () => {
        const { show, stream, shows, chats } = await open();
        const hidden = reader('a', C1, { isHidden: true });
        await show({ readers: [reader('a', C1)] });
        await chats.send('a', 'go');
        const { send, seen } = await stream();
        send(META, START, delta('Hel'));
        await shows('a', 'go|Hel');
        await show({ readers: [hidden] });
        await vi.waitUntil(() => seen.isCancelled);
        await show({ readers: [hidden, reader('b', { ...C1, initialMessages: HISTORY })] });
        await shows('b', 'before');
        await show({ readers: [reader('a', C1), reader('b', C1)] });
        await shows('a', 'before');
        await chats.send('a', 'again');
        (await stream(1)).send(META, START, delta('Hello'));
        await shows('a', 'before|again|Hello');
        await shows('b', 'before|again|Hello');
      });
    });

    describe('more components', () => {
      it('with one id show one chat, and one that leaves does not disturb the other', async () => {
        const { show, stream, streams, shows, chats, calls, has } = await open();
        const resuming = { ...C1, resume: true };
        await show({ readers: [reader('a', resuming), reader('b', resuming)] });
        const { send, seen } = await stream();
        send(META, START, delta('Hel'));
        await shows('a', 'Hel');
        await shows('b', 'Hel');
        await show({ readers: [reader('b', resuming)] });
        await aWhile();
        expect(seen.isCancelled).toBe(false);
        send(delta('lo'), END, DONE);
        await shows('b', 'Hello');
        await has('b', 'ready');
        expect(calls()).toHaveLength(1);
        await show({ readers: [reader('c', C1), reader('b', C1)] });
        await shows('c', 'Hello');
        await chats.send('c', 'go');
        await shows('b', 'Hello|go');
        await stream(1);
        expect(streams).toHaveLength(2);
      });

      it('that give fewer options take nothing from those who gave more', async () => {
        const { show, stream, chats, calls, heard, has } = await open();
        const full = { ...C1, headers: { 'x-app': 'yes' }, body: { projectId: 'p' } };
        await show({ readers: [reader('a', full, { label: 'x' }), reader('b', C1)] });
        await chats.send('b', 'go');
        (await stream()).send(META, START, DONE);
        await has('b', 'ready');
        expect(calls()[0]?.headers.get('x-app')).toBe('yes');
        expect(calls()[0]?.body).toMatchObject({ projectId: 'p' });
        expect((await heard()).at(-1)).toBe('x: finished');
      });

      it('without an id show a chat each', async () => {
        const { show, stream, shows, chats, calls } = await open();
        await show({ readers: [reader('a', { api: API }), reader('b', { api: API })] });
        await chats.send('a', 'mine');
        await stream();
        await chats.send('b', 'yours');
        await stream(1);
        await shows('a', 'mine');
        await shows('b', 'yours');
        const [one, two] = calls().map(({ body }) => (body as { sessionId: string }).sessionId);
        expect(one).toMatch(/^chat_[0-9a-z]{32,64}$/);
        expect(two).toMatch(/^chat_[0-9a-z]{32,64}$/);
        expect(one).not.toBe(two);
      });
    });

    describe('another place', () => {
      it.each([
        ['id', C1, { api: API, id: 'c2' }, '/api/chat'],
        ['api', C1, { api: '/api/other', id: 'c1' }, '/api/other'],
        ['api, without an id', { api: API }, { api: '/api/other' }, '/api/other'],
      ])('another %s is another chat', async (_, from, to, path) => {
        const { show, stream, shows, chats, calls, has } = await open();
        await show({ readers: [reader('a', from)] });
        await chats.send('a', 'go');
        const { send, seen } = await stream();
        send(META, START, delta('Hel'));
        await shows('a', 'go|Hel');
        await show({ readers: [reader('a', { ...to, initialMessages: HISTORY })] });
        await shows('a', 'before');
        await has('a', 'ready');
        await vi.waitUntil(() => seen.isCancelled);
        await chats.send('a', 'there');
        (await stream(1)).send(META, START, delta('Hi'));
        await shows('a', 'before|there|Hi');
        expect(calls()).toHaveLength(2);
        expect(calls()[1]).toMatchObject({ path });
      });
    });
  },
);
