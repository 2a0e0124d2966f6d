/** assistant-ui on AG-UI, as its guide has it. Nothing of Sabir is in it. */
import {
  HttpAgent,
  type RunAgentInput,
  runHttpRequest,
  transformHttpEventStream,
} from '@ag-ui/client';
import {
  AssistantRuntimeProvider,
  AuiIf,
  ComposerPrimitive,
  ExportedMessageRepository,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
  useAssistantTool,
} from '@assistant-ui/react';
import {
  fromAgUiMessages,
  type UseAgUiRuntimeOptions,
  useAgUiInterrupts,
  useAgUiRuntime,
  useAgUiSteerAway,
  useAgUiSubmitInterruptResponses,
} from '@assistant-ui/react-ag-ui';
import { type FormEvent, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';

const session = '/api/sessions/s1';
const headers = { authorization: 'Bearer carl' };

/** A run that begins after a reload follows the turn that runs, as docs/AG-UI.md shows it. */
class FollowingAgent extends HttpAgent {
  isFollowing = false;

  override run(input: RunAgentInput) {
    if (!this.isFollowing) return super.run(input);
    this.isFollowing = false;
    const { threadId, runId, protocolVersion = '1.0' } = input;
    const run = new URLSearchParams({ runId, protocolVersion });
    return transformHttpEventStream(
      runHttpRequest(() => fetch(`${this.url}/${threadId}/stream?${run}`, { headers })),
    );
  }
}

const agent = new FollowingAgent({ url: `${session}/ag-ui`, headers, threadId: 'c1' });

type Stored = { id: string; role: 'user' | 'assistant'; parts: { type: string; text?: string }[] };

const history = {
  async load() {
    const stored: Stored[] = await (await fetch(`${session}/messages`, { headers })).json();
    const messages = stored.map(({ id, role, parts }) => {
      return { id, role, content: parts.map(({ text = '' }) => text).join('') };
    });
    // The history is without the answer that runs.
    agent.isFollowing = stored.at(-1)?.role === 'user';
    const repository = ExportedMessageRepository.fromArray(fromAgUiMessages(messages));
    return { ...repository, unstable_resume: agent.isFollowing };
  },
  append: async () => undefined,
};

function ToolCard({ toolName, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  return (
    <section data-tool={toolName}>
      {result !== undefined && <code>{JSON.stringify(result)}</code>}
      {approval && approval.approved === undefined && !approval.resolution && (
        <button type="button" onClick={() => respondToApproval({ approved: true })}>
          Approve
        </button>
      )}
    </section>
  );
}

const Text = ({ text }: { text: string }) => <p>{text}</p>;

const Message = () => (
  <MessagePrimitive.Root render={<article />}>
    <MessagePrimitive.Parts components={{ Text, tools: { Fallback: ToolCard } }} />
  </MessagePrimitive.Root>
);

/** What the agent asks, and a way to write something else instead. */
function Interrupts() {
  const interrupts = useAgUiInterrupts();
  const submit = useAgUiSubmitInterruptResponses();
  const steerAway = useAgUiSteerAway();
  if (interrupts.length === 0) return null;
  const answer = (payload: string) =>
    submit(interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload })));
  const write = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    void steerAway(String(new FormData(event.currentTarget).get('instead')));
  };
  return (
    <form onSubmit={write} data-interrupt={interrupts[0]?.reason}>
      {interrupts[0]?.message}
      <button type="button" onClick={() => void answer('Tunis')}>
        Tunis
      </button>
      <input name="instead" />
    </form>
  );
}

function Locator() {
  useAssistantTool({
    toolName: 'locate',
    description: 'Where the user is',
    parameters: { type: 'object', properties: {} },
    execute: async () => ({ port: 'Valletta' }),
  });
  return null;
}

function Chat() {
  const runtime = useAgUiRuntime({
    // It is made for AG-UI 0.0.58, and takes the agents of 1.0 too.
    agent: agent as unknown as UseAgUiRuntimeOptions['agent'],
    adapters: { history },
    onCancel: () => void fetch(`${session}/ag-ui/c1/stop`, { method: 'POST', headers }),
  });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <Locator />
      <ThreadPrimitive.Root render={<main />}>
        <ThreadPrimitive.Messages components={{ Message }} />
        <Interrupts />
        <AuiIf condition={({ thread }) => thread.isRunning}>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </AuiIf>
        <AuiIf condition={({ thread }) => !thread.isRunning}>
          <p role="status">Ready</p>
        </AuiIf>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input name="message" />
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <Chat />
  </StrictMode>,
);
