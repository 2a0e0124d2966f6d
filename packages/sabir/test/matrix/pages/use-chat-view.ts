/** `useChat` of whichever release the page is bundled with, as the documents of the gateway show it. */
import { Chat, useChat } from '@ai-sdk/react';
import * as ai from 'ai';
import { useRef, useState } from 'react';
import { api, type ChatView, chatId, type Message, sdk, stopTurn } from './chat-view.ts';

type Transport = ai.ChatTransport<ai.UIMessage>;

/** 6.0.9 has one that overlooks tools of the server. */
function isAnswered({ messages }: { messages: ai.UIMessage[] }): boolean {
  const parts = messages.at(-1)?.parts ?? [];
  const step = parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1);
  const states = step.map((part) => ('state' in part ? part.state : undefined));
  return states.includes('approval-responded') && !states.includes('approval-requested');
}

const isWaiting = ({ metadata }: ai.UIMessage) => 'queue' in Object(metadata);

const sendAutomaticallyWhen =
  sdk === '7' || sdk === '6' ? ai.lastAssistantMessageIsCompleteWithApprovalResponses : isAnswered;

export function stockTransport(): Transport {
  return new ai.DefaultChatTransport({
    api,
    headers: { 'x-sabir-ai-sdk': sdk[0] as string },
  });
}

const postAnswer = (body: object) =>
  fetch(`${api}/${chatId}/answer`, { method: 'POST', body: JSON.stringify(body) });

type ViewOptions = {
  /** A page without it follows its session, which brings the history and what runs. */
  history?: ai.UIMessage[];
  stop?: () => unknown;
  /** The page makes the `Chat` itself, instead of the hook. */
  hasOwnChat?: boolean;
};

export function useChatView(
  transport: Transport,
  { history, stop = stopTurn, hasOwnChat = false }: ViewOptions,
): ChatView & { chat: ReturnType<typeof useChat> } {
  // Of the messages that waited when the page was loaded, those whose answers it has not resumed yet. 6.0.9 can resume only once.
  const waiting = useRef(sdk === '6.0.9' ? 0 : (history?.filter(isWaiting).length ?? 0));
  const onFinish = () => void (waiting.current-- > 0 && chat.resumeStream());
  const init = {
    id: chatId,
    transport,
    sendAutomaticallyWhen,
    onFinish,
    ...(history && { messages: history }),
  };
  const [ownChat] = useState(() => new Chat(init));
  const chat = useChat({
    ...(hasOwnChat ? { chat: ownChat } : init),
    resume: history !== undefined,
  });
  const hasQuestions = sdk === '5';
  return {
    chat,
    messages: chat.messages as unknown as Message[],
    isBusy: chat.status === 'submitted' || chat.status === 'streaming',
    error: chat.error,
    send: (text) => void chat.sendMessage({ text }),
    edit: (messageId, text) => void chat.sendMessage({ text, messageId }),
    regenerate: (messageId) => void chat.regenerate({ messageId }),
    stop() {
      void chat.stop();
      void stop();
    },
    answer(id, approved) {
      if (hasQuestions) void postAnswer({ questionId: id, answer: approved });
      else void chat.addToolApprovalResponse({ id, approved });
    },
    hasQuestions,
  };
}
