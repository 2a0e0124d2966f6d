import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { ChatStream } from 'sabir/client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ExampleServer, startServer } from './test/start-server.ts';

let server: ExampleServer;
beforeAll(async () => {
  server = await startServer('openai-agents/server.ts');
});
afterAll(() => server?.stop());

type Parts = ReadonlyArray<{ type: string } & Record<string, unknown>>;
const textOf = (parts: Parts = []) =>
  parts.map(({ type, text }) => (type === 'text' ? text : '')).join('');
const toolOf = (parts: Parts = []) => parts.find(({ type }) => type === 'tool-delete_file');

describe('an Agents SDK agent behind the gateway', () => {
  it('is approved by a stock useChat, and goes on in the same message', async () => {
    const chat = new Chat({
      id: 'stock',
      transport: new DefaultChatTransport({
        api: `${server.url}/api/sessions/any/chat`,
        headers: { 'x-sabir-ai-sdk': '7' },
      }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    await chat.sendMessage({ text: 'Please delete notes.txt.' });
    const asked = chat.lastMessage;
    const waits = toolOf(asked?.parts as Parts);
    expect(waits).toMatchObject({ state: 'approval-requested', input: { path: 'notes.txt' } });
    const id = (waits?.approval as { id: string } | undefined)?.id ?? '';
    await chat.addToolApprovalResponse({ id, approved: true });
    await vi.waitUntil(() => textOf(chat.lastMessage?.parts as Parts).endsWith('is gone.'));
    expect(chat.messages).toHaveLength(2);
    expect(chat.lastMessage?.id).toBe(asked?.id);
    expect(toolOf(chat.lastMessage?.parts as Parts)).toMatchObject({
      state: 'output-available',
      output: 'notes.txt is gone.',
    });
  });

  it('is refused on the contract, with a reason that the agent is told', async () => {
    const chat = new ChatStream({ api: `${server.url}/api/chat` });
    const sent = chat.sendMessage('delete notes.txt');
    const question = () =>
      (chat.getSnapshot().messages.at(-1)?.parts as Parts | undefined)?.find(
        ({ type, data }) =>
          type === 'data-question' && (data as { status: string }).status === 'open',
      )?.data as { questionId: string } | undefined;
    await vi.waitUntil(question);
    const answer = { approved: false, reason: 'I still need it.' };
    await chat.answer({ questionId: question()?.questionId as string, answer });
    await sent;
    const parts = chat.getSnapshot().messages.at(-1)?.parts as Parts;
    expect(toolOf(parts)).toMatchObject({ state: 'output-denied' });
    expect(textOf(parts)).toContain('I still need it.');
    chat.detach();
  });
});
