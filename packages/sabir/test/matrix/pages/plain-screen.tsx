/** A chat in plain HTML. */
import { type FormEvent, useState } from 'react';
import { type ChatView, LABELS, type Message, type Part, toolOf } from './chat-view.ts';

function PlainPart({ part, view }: { part: Part; view: ChatView }) {
  const tool = toolOf(part);
  if (part.type === 'text') return <p data-text>{String(part.text)}</p>;
  if (tool) {
    const { name, state, output, errorText, approvalId } = tool;
    return (
      <section data-tool={name}>
        {name} <b data-label>{LABELS[state]}</b>
        {output !== undefined && <code>{JSON.stringify(output)}</code>}
        {errorText && <code>{errorText}</code>}
        {state === 'approval-requested' && approvalId && <Buttons id={approvalId} view={view} />}
      </section>
    );
  }
  const { status, questionId, text } = (part.data ?? {}) as Record<string, string>;
  if (part.type === 'data-question' && status === 'open' && view.hasQuestions && questionId)
    return (
      <section>
        {text} <Buttons id={questionId} view={view} />
      </section>
    );
  return null;
}

function Buttons({ id, view }: { id: string; view: ChatView }) {
  return (
    <>
      <button type="button" onClick={() => view.answer(id, true)}>
        Approve
      </button>
      <button type="button" onClick={() => view.answer(id, false)}>
        Deny
      </button>
    </>
  );
}

function PlainMessage({ message, view }: { message: Message; view: ChatView }) {
  const { id, role, parts } = message;
  const [isEditing, setEditing] = useState(false);
  return (
    <article data-role={role}>
      {parts.map((part, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts have no ids of their own
        <PlainPart key={i} part={part} view={view} />
      ))}
      {isEditing ? (
        <TextForm
          name="edit"
          onText={(text) => {
            setEditing(false);
            view.edit(id, text);
          }}
        />
      ) : role === 'user' ? (
        <button type="button" onClick={() => setEditing(true)}>
          Edit
        </button>
      ) : (
        <button type="button" onClick={() => view.regenerate(id)}>
          Regenerate
        </button>
      )}
    </article>
  );
}

export function TextForm({ name, onText }: { name: string; onText(text: string): void }) {
  const [text, setText] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onText(text);
    setText('');
  };
  return (
    <form onSubmit={submit}>
      <input name={name} value={text} onChange={({ target }) => setText(target.value)} />
    </form>
  );
}

export function PlainScreen(view: ChatView) {
  const { messages, isBusy, error } = view;
  return (
    <main>
      {messages.map((message) => (
        <PlainMessage key={message.id} message={message} view={view} />
      ))}
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
