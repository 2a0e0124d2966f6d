import { useChat } from '../hooks/use-chat.ts';
import type { SessionProps } from '../session-editor.tsx';
import { Composer } from './composer.tsx';
import { ToolView } from './tool-view.tsx';

/** The panel that sessions have without the experiment, on the session's own WebSocket. */
export function ChatPanel({ sessionId, token }: SessionProps) {
  const { messages, isOpen, isBusy, error, send, abort } = useChat(sessionId, token);
  return (
    <section aria-label="WebSocket chat">
      {messages.map(({ id, role, content, tools }) => (
        <article data-role={role} key={id}>
          {tools.map(({ callId, toolName, status, args, result, error }) => (
            <ToolView
              errorText={error}
              input={args}
              key={callId}
              name={toolName}
              output={result}
              state={status}
            />
          ))}
          <p>{content}</p>
        </article>
      ))}
      {error && <p role="alert">{error}</p>}
      <Composer isBusy={isBusy || !isOpen} onSend={send} onStop={abort} />
    </section>
  );
}
