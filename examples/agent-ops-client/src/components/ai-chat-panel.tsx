import { getToolName, isToolUIPart, type UIMessage } from 'ai';
import { type AiChatOptions, useAiChat, useHistory } from '../hooks/use-ai-chat.ts';
import { Composer } from './composer.tsx';
import { ToolView } from './tool-view.tsx';

/** The experiment: it knows no WebSocket and no event of Agent Ops. */
export function AiChatPanel(options: AiChatOptions) {
  const history = useHistory(options);
  return history ? <OpenPanel {...options} messages={history} /> : <p>Loading the history…</p>;
}

function OpenPanel(options: AiChatOptions & { messages: UIMessage[] }) {
  const { messages, sendMessage, stop, status, error } = useAiChat(options);
  const isBusy = status === 'submitted' || status === 'streaming';
  return (
    <section aria-label="AI SDK chat">
      {messages.map((message) => (
        <article data-role={message.role} key={message.id}>
          {message.parts.map((part, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: parts are only ever added at the end
            <Part key={i} part={part} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <Composer
        isBusy={isBusy}
        onSend={(text) => void sendMessage({ text })}
        onStop={() => void stop()}
      />
    </section>
  );
}

function Part({ part }: { part: UIMessage['parts'][number] }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (!isToolUIPart(part)) return null;
  const { input, output, errorText, state } = part;
  return <ToolView name={getToolName(part)} {...{ state, input, output, errorText }} />;
}
