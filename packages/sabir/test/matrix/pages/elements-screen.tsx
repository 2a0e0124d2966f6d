/**
 * A chat with the components of AI Elements, which exist only in its repository: the same names, props
 * and states. `ToolInput` fails without an input, as theirs does.
 */
import { createContext, type PropsWithChildren, useContext, useState } from 'react';
import {
  type Message as ChatMessage,
  type ChatView,
  LABELS,
  type Tool as ToolPart,
  toolOf,
} from './chat-view.ts';
import { TextForm } from './plain-screen.tsx';

const Conversation = ({ children }: PropsWithChildren) => <div role="log">{children}</div>;
const ConversationContent = ({ children }: PropsWithChildren) => <div>{children}</div>;

const Message = ({ from, children }: PropsWithChildren<{ from: string }>) => (
  <article data-role={from}>{children}</article>
);
const MessageContent = ({ children }: PropsWithChildren) => <div>{children}</div>;
const MessageResponse = ({ children }: { children: string }) => <p data-text>{children}</p>;

const Tool = ({ name, children }: PropsWithChildren<{ name: string }>) => (
  <details open data-tool={name}>
    {children}
  </details>
);
const ToolHeader = ({ type, state }: { type: string; state: string }) => (
  <summary>
    {type} <b data-label>{LABELS[state]}</b>
  </summary>
);
const ToolInput = ({ input }: { input: unknown }) => (
  <pre>{(JSON.stringify(input, null, 2) as string).split('\n').length} lines</pre>
);
function ToolOutput({ output, errorText }: { output: unknown; errorText: string | undefined }) {
  if (!(output || errorText)) return null;
  return <code>{errorText ?? JSON.stringify(output)}</code>;
}

type Approval = { id: string; approved?: boolean };
const ConfirmationContext = createContext<{ approval: Approval; state: string } | undefined>(
  undefined,
);
function Confirmation({
  approval,
  state,
  children,
}: PropsWithChildren<{ approval: Approval | undefined; state: string }>) {
  if (!approval || state === 'input-streaming' || state === 'input-available') return null;
  return <ConfirmationContext value={{ approval, state }}>{children}</ConfirmationContext>;
}
function ConfirmationRequest({ children }: PropsWithChildren) {
  return useContext(ConfirmationContext)?.state === 'approval-requested' ? children : null;
}
const ConfirmationActions = ConfirmationRequest;

function MessageTool({ tool, view }: { tool: ToolPart; view: ChatView }) {
  const { name, state, input, output, errorText, approvalId } = tool;
  return (
    <Tool name={name}>
      <ToolHeader type={`tool-${name}`} state={state} />
      <ToolInput input={input} />
      <Confirmation approval={approvalId ? { id: approvalId } : undefined} state={state}>
        <ConfirmationRequest>This tool asks before it runs.</ConfirmationRequest>
        <ConfirmationActions>
          <button type="button" onClick={() => view.answer(String(approvalId), false)}>
            Deny
          </button>
          <button type="button" onClick={() => view.answer(String(approvalId), true)}>
            Approve
          </button>
        </ConfirmationActions>
      </Confirmation>
      <ToolOutput output={output} errorText={errorText} />
    </Tool>
  );
}

function ElementsMessage({ message, view }: { message: ChatMessage; view: ChatView }) {
  const { id, role, parts } = message;
  const [isEditing, setEditing] = useState(false);
  const save = (text: string) => {
    setEditing(false);
    view.edit(id, text);
  };
  return (
    <Message from={role}>
      <MessageContent>
        {parts.map((part, i) => {
          const tool = toolOf(part);
          if (tool) return <MessageTool key={tool.name} tool={tool} view={view} />;
          if (part.type !== 'text') return null;
          // biome-ignore lint/suspicious/noArrayIndexKey: as in the examples of AI Elements
          return <MessageResponse key={`${id}-${i}`}>{String(part.text)}</MessageResponse>;
        })}
      </MessageContent>
      {isEditing && <TextForm name="edit" onText={save} />}
      {role === 'user' ? (
        <button type="button" onClick={() => setEditing(true)}>
          Edit
        </button>
      ) : (
        <button type="button" onClick={() => view.regenerate(id)}>
          Regenerate
        </button>
      )}
    </Message>
  );
}

export function ElementsScreen(view: ChatView) {
  const { messages, isBusy, error } = view;
  return (
    <main>
      <Conversation>
        <ConversationContent>
          {messages.map((message) => (
            <ElementsMessage key={message.id} message={message} view={view} />
          ))}
        </ConversationContent>
      </Conversation>
      {isBusy && <p role="status">Answering…</p>}
      {error && <p role="alert">{error.message}</p>}
      <TextForm name="message" onText={view.send} />
      {isBusy && (
        <button type="button" onClick={view.stop}>
          Stop
        </button>
      )}
    </main>
  );
}
