import { DefaultChatTransport } from 'ai';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createClient, type RealClient } from '../../packages/sabir/test/real-clients.ts';
import type { ExampleServer } from './start-server.ts';

export const STOPPED = /The run was stopped\./;
/** Its answer takes many seconds: whatever stops in the middle of it was stopped. */
export const LONG = 'and so on '.repeat(100).trim();

/** What every example has to do, whatever it is built with. */
export function describeChatServer(
  name: string,
  start: () => Promise<ExampleServer>,
  more?: (server: () => ExampleServer) => void,
): void {
  describe(name, () => {
    let server: ExampleServer | undefined;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server?.stop());

    const running = () => {
      if (!server) throw new Error('The server is not running.');
      return server;
    };
    const post = (body: object) =>
      fetch(`${running().url}/api/chat`, { method: 'POST', body: JSON.stringify(body) });

    it('answers with its thoughts, a tool call and a text that has the message in it', async () => {
      const { chat, result } = await createChat(running());
      await chat.sendMessage({ text: 'good morning to you' });

      expect(result()).toMatchObject({ status: 'ready', error: undefined, toolCalls: [] });
      expect(result().message?.parts).toMatchObject([
        { type: 'step-start' },
        { type: 'reasoning', text: expect.stringContaining('count'), state: 'done' },
        {
          type: 'tool-countWords',
          state: 'output-available',
          input: { text: 'good morning to you' },
          output: { count: 4 },
        },
        {
          type: 'text',
          text: 'You wrote “good morning to you”. Words counted: 4.',
          state: 'done',
        },
      ]);
      expect(result().message?.metadata).toMatchObject({ outcome: 'finished' });
    });

    it('answers two people at once, each with their own message', async () => {
      const words = ['tea', 'coffee'];
      const texts = await Promise.all(
        words.map(async (text) => {
          const { chat, result } = await createChat(running());
          await chat.sendMessage({ text });
          return textOf(result().message);
        }),
      );
      expect(texts).toEqual(words.map((word) => `You wrote “${word}”. Words counted: 1.`));
    });

    it('sends words as they come, and stops the run when the person stops', async () => {
      const { chat, result } = await createChat(running());
      const sent = chat.sendMessage({ text: LONG });
      await vi.waitUntil(() => textOf(result().message), { interval: 10, timeout: 9_000 });
      await chat.stop();
      await sent;

      await running().waitFor(STOPPED);
      expect(result()).toMatchObject({ status: 'ready', error: undefined });
      expect(textOf(result().message)).not.toContain('Words counted');
    });

    it('stops the run when the connection breaks', async () => {
      const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: LONG }] };
      const response = await post({ id: 'c', messages: [message] });
      const reader = response.body?.getReader();
      await reader?.read();
      await reader?.cancel();
      await running().waitFor(STOPPED);
    });

    it('has nothing to resume, and says so in a way that useChat understands', async () => {
      const { chat, result } = await createChat(running());
      await chat.resumeStream();
      expect(result()).toMatchObject({ status: 'ready', error: undefined, messages: [] });
    });

    it('refuses a wrong request with a 400 that says what is wrong and what to do', async () => {
      const response = await post({ prompt: 'hi' });
      expect(response.status).toBe(400);
      expect(response.headers.get('content-type')).toContain('application/json');
      expect(await response.json()).toEqual({
        code: 'bad-request',
        message: 'messages is not an array.',
        remedy: expect.stringContaining('POST JSON as useChat does'),
      });
    });

    more?.(running);
  });
}

function createChat({ url }: ExampleServer): Promise<RealClient> {
  return createClient('ai@7', new DefaultChatTransport({ api: `${url}/api/chat` }));
}

type Message = ReturnType<RealClient['result']>['message'];

function textOf(message: Message): string {
  return (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}
