/** Nothing of Sabir is in it. */
import {
  ActionBarPrimitive,
  type AppendMessage,
  AssistantRuntimeProvider,
  AuiIf,
  ComposerPrimitive,
  ErrorPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
} from '@assistant-ui/react';
import {
  AssistantChatTransport,
  createResumableSessionStorage,
  useChatRuntime,
} from '@assistant-ui/react-ai-sdk';
import {
  type CreateUIMessage,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { api, chatId, loadHistory, mount, stopTurn } from './chat-view.ts';

type Message = UIMessage<{ replaces?: string }>;

/** As its own guide has it, or so that every page that is opened asks for the chat's running turn, a second tab too. */
const resumable = new URLSearchParams(location.search).has('storage')
  ? {
      resumeApi: (streamId: string) => `${api}/${streamId}/stream`,
      storage: createResumableSessionStorage(),
    }
  : {
      resumeApi: `${api}/${chatId}/stream`,
      storage: { getStreamId: () => chatId, setStreamId: () => undefined, clear: () => undefined },
    };

const transport = new AssistantChatTransport<Message>({
  api,
  headers: { 'x-sabir-ai-sdk': '7' },
  prepareSendMessagesRequest: ({ messages, trigger, messageId }) => {
    // assistant-ui sends an edit as a new message: name the one that it replaces.
    const edited = trigger === 'submit-message' ? messages.at(-1)?.metadata?.replaces : undefined;
    // Its own id of a new thread is made anew by every page.
    const chat = { id: chatId, messages: messages.slice(-1) };
    return { body: { ...chat, trigger, messageId: messageId ?? edited } };
  },
  resumable,
});

const toCreateMessage = <M extends UIMessage>({ role, content, sourceId }: AppendMessage) =>
  ({
    role,
    parts: content.filter(({ type }) => type === 'text'),
    metadata: { ...(sourceId && { replaces: sourceId }) },
  }) as unknown as CreateUIMessage<M>;

function labelOf({ status, result, isError, approval }: ToolCallMessagePartProps): string {
  if (approval && approval.approved === undefined) return 'Awaiting Approval';
  if (approval?.approved === false) return 'Denied';
  if (isError) return 'Error';
  if (result !== undefined) return 'Completed';
  return status.type === 'running' ? 'Running' : 'Pending';
}

function ToolCard(props: ToolCallMessagePartProps) {
  const { toolName, result, approval, respondToApproval } = props;
  return (
    <section data-tool={toolName}>
      {toolName} <b data-label>{labelOf(props)}</b>
      {result !== undefined && <code>{JSON.stringify(result)}</code>}
      {approval && approval.approved === undefined && (
        <>
          <button type="button" onClick={() => respondToApproval({ approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => respondToApproval({ approved: false })}>
            Deny
          </button>
        </>
      )}
    </section>
  );
}

const Text = ({ text }: { text: string }) => <p data-text>{text}</p>;
const Parts = () => <MessagePrimitive.Parts components={{ Text, tools: { Fallback: ToolCard } }} />;

const UserMessage = () => (
  <MessagePrimitive.Root render={<article data-role="user" />}>
    <Parts />
    <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
  </MessagePrimitive.Root>
);

const EditComposer = () => (
  <ComposerPrimitive.Root>
    <ComposerPrimitive.Input name="edit" />
  </ComposerPrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root render={<article data-role="assistant" />}>
    <Parts />
    <MessagePrimitive.Error>
      <ErrorPrimitive.Root role="alert">
        <ErrorPrimitive.Message />
      </ErrorPrimitive.Root>
    </MessagePrimitive.Error>
    <ActionBarPrimitive.Reload>Regenerate</ActionBarPrimitive.Reload>
  </MessagePrimitive.Root>
);

const history = await loadHistory<Message>();

function Chat() {
  const runtime = useChatRuntime<Message>({
    messages: history,
    transport,
    toCreateMessage,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root render={<main />}>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage, EditComposer }} />
        <AuiIf condition={({ thread }) => thread.isRunning}>
          <p role="status">Answering…</p>
          <ComposerPrimitive.Cancel onClick={stopTurn}>Stop</ComposerPrimitive.Cancel>
        </AuiIf>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input name="message" />
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

mount(Chat);
