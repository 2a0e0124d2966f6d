/** What only a compiler can prove about following. Checked by `vitest --typecheck`; nothing here runs. */

import type { useChat as useChat5 } from 'ai-sdk-react-v5';
import type { useChat as useChat6 } from 'ai-sdk-react-v6';
import type { useChat as useChat7 } from 'ai-sdk-react-v7';
import type { UIMessage as UIMessage5 } from 'ai-v5';
import type { UIMessage as UIMessage6 } from 'ai-v6';
import type { UIMessage as UIMessage7 } from 'ai-v7';
import { describe, expectTypeOf, it } from 'vitest';
import { ChatSession, ChatStream, followChat } from '../src/clients/index.ts';
import { useChatStream, useFollow, useSession } from '../src/clients/react/index.ts';
import type { UIMessage } from '../src/core/message.ts';

type MyMessage = UIMessage<{ seconds: number }>;
const at = { api: '/api/sessions/s1/chat', id: 'c1' };
const useMine = () => useSession<MyMessage>(at);
const useOurs = () => useFollow(useChatStream<MyMessage>(at), useMine().session);
const use5 = (chat: ReturnType<typeof useChat5<UIMessage5>>) =>
  useFollow(chat, useSession(at).session);
const use6 = (chat: ReturnType<typeof useChat6<UIMessage6>>) =>
  useFollow(chat, useSession(at).session);
const use7 = (chat: ReturnType<typeof useChat7<UIMessage7>>) =>
  useFollow(chat, useSession<UIMessage7>(at).session);
const useTooLittle = (messages: MyMessage[], setMessages: () => void) =>
  // @ts-expect-error it has neither resumeStream nor resume
  useFollow({ messages, setMessages, status: 'ready' }, useMine().session);

describe('useFollow', () => {
  it('takes what useChat of every major returns, with any session', () => {
    expectTypeOf([use5, use6, use7, useOurs]).toBeArray();
  });

  it('needs a chat that can take up a running turn', () => {
    expectTypeOf(useTooLittle).toBeFunction();
  });
});

describe('followChat', () => {
  it('takes a ChatStream as it is', () => {
    const session = new ChatSession<MyMessage>(at);
    const chat = new ChatStream<MyMessage>({ ...at, fetch: session.fetch });
    expectTypeOf(followChat(session, chat)).toEqualTypeOf<() => void>();
  });
});

describe('useSession', () => {
  it('has queued messages of the type that was named', () => {
    type Queued = ReturnType<typeof useMine>['queue'][number];
    expectTypeOf<Queued['message']>().toEqualTypeOf<MyMessage>();
  });
});
